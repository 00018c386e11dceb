"""What a person is told of warm relaunches: in the journal, by the status, when words are wrong."""

import json
import os
import re
import select
import signal
import sys
import time

import pytest
from tests.supervising import PATIENCE_S, Screen, is_running, wait_until
from tests.warming import edit, first

from relaunch.proc.tree import is_warm, processes

# --- the journal


def test_the_journal_shows_cold_time_against_warm_time(warm):
    edit(warm, "print('old')")
    first(warm)
    edit(warm, "print('new')")
    warm.rl("warm")
    cold, resumed = json.loads(warm.rl("log", "--json").stdout)["trials"]
    assert (cold["warm"], cold["resumed"], cold["cold"]) == (True, None, "no snapshots yet")
    assert (resumed["warm"], resumed["cold"]) == (True, "")
    assert resumed["resumed"]["at"] == "train.py:5"
    assert resumed["resumed"]["took_s"] > 0
    assert 0.3 <= resumed["resumed"]["saved_s"] <= cold["duration_s"]
    title, *rows = warm.rl("log").stdout.splitlines()
    assert "time" in title.split()
    assert "cold" in title.split()
    assert "same" in rows[0].split()
    card = warm.rl("show").stdout
    times = r"\([\d.]+ s instead of [\d.]+ s\)"
    assert re.search(rf"warm      resumed at train\.py:5 {times}\n", card), card
    assert "because sleep() and above are unchanged" in card
    assert "warm      cold: no snapshots yet" in warm.rl("show", "1").stdout
    assert re.search(r"#2 passed: .* \(cold: [\d.]+ s\)", warm.rl("diff", "1", "2").stdout)


def test_plain_and_warm_runs_of_one_recipe_are_compared(warm):
    edit(warm, "def fail(n):", "    raise ValueError(f'loss {n}')", "fail(3)")
    plain = warm.rl("--", sys.executable, "train.py")
    cold = first(warm)
    resumed = warm.rl("warm")
    assert "resumed at" in resumed.stderr
    again = warm.rl()
    for done in (cold, resumed, again):
        assert "identical to #1" in done.stderr
        assert "same failure as #1" in done.stderr
        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert "or edit and rl warm\n" in resumed.stderr
    assert again.stderr.rstrip().endswith("or edit and rl")
    found = json.loads(warm.rl("diff", "1", "1.3", "--json").stdout)
    assert found["same_failure"] is True
    assert found["code"]["same"] is True
    assert (found["command"], found["recipe"], found["env"]) == ([], [], [])
    assert found["output"] is None


def test_what_was_verified_is_on_the_card(warm):
    edit(warm, "print('x')")
    first(warm)
    warm.rl("warm", "--verify")
    assert "verified  as the cold #1.3" in warm.rl("show", "1.2").stdout
    assert json.loads(warm.rl("show", "1.2", "--json").stdout)["verified"]["against"] == "1.3"


READS = "print('got', __import__('sys').stdin.read())"


def test_a_file_on_standard_input_is_read_by_both_runs(warm):
    edit(warm, READS)
    warm.write("words.txt", "some words")
    command = f"{sys.executable} train.py < words.txt"
    warm.shell(f"rl warm -- {command}")
    done = warm.shell("rl warm --verify < words.txt")
    assert (done.returncode, done.stdout) == (0, "begin\ngot some words\n")
    assert "resumed at" in done.stderr
    assert "rl: verified: a cold run told the same" in done.stderr


def test_a_pipe_that_was_read_is_not_held_against_the_warm_run(warm):
    edit(warm, READS)
    warm.rl("warm", "--", sys.executable, "train.py", input="words")
    done = warm.rl("warm", "--verify", input="words")
    assert (done.returncode, done.stdout) == (1, "begin\ngot words\n")
    assert "rl: not as a cold run, which could not read the input again: " in done.stderr
    assert "resumed at" in warm.rl("warm", input="words").stderr


# --- wrong words


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("", "nothing to repeat yet   try: rl warm -- python train.py"),
        ("--bogus", "no option `--bogus`   try: rl warm --help"),
        ("--wach", "no option `--wach`; did you mean --watch?   try: rl warm --help"),
        ("-m", "-m needs a value: WHY   try: rl warm --help"),
        ("-n 3", "-n is no option of `rl warm`   try: rl -n 3"),
        ("--", "no command after `--`   try: rl warm -- python train.py"),
        ("python x.py", "`python` came before `--`   try: rl warm -- python x.py"),
        ("stautus", "no word `stautus`; did you mean status?   try: rl warm status"),
        ("status x", "`rl warm status` takes --json and --all, not `x`   try: rl warm status"),
        ("--at x.py", "--at takes FILE:LINE, not `x.py`   try: rl warm --at train.py:180"),
        ("--at x.py:3", "--at: x.py: No such file or directory   try: rl warm --at FILE:LINE"),
        ("--at t.py:3", "--at: no statement at line 3   try: rl warm --at t.py:2"),
        ("--at t.py:0", "--at: no statement at line 0   try: rl warm --at t.py:2"),
        ("--at notes:1", "--at: notes is no Python that can be read   try: rl warm"),
    ],
)
def test_wrong_words_get_one_clear_line_and_exit_2(warm, words, line):
    warm.write("t.py", "a = 1\nb = 2\n")
    warm.write("notes", "to do: all\n of it\n")
    done = warm.rl("warm", *words.split())
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"rl: {line}\n")


def test_a_place_is_seen_from_where_it_is_typed(warm):
    edit(warm, "a = 1", "b = 2", "print(a + b)")
    first(warm)
    warm.rl("warm", "stop")
    (warm.project / "sub").mkdir()
    warm.rl("warm", "--at", "../train.py:5", cwd=warm.project / "sub")
    (program,) = json.loads(warm.rl("warm", "status", "--json").stdout)["programs"]
    assert "train.py:5" in [one["at"] for one in program["snapshots"]]


def test_when_there_can_be_no_snapshot_where_one_is_wanted_it_says_why(warm):
    edit(warm, "a = 1", "if a > 1:", "    print('never')", "print('end')")
    never = first(warm, "--at", "train.py:7")
    assert "rl: no snapshot at train.py:7: the program did not come there\n" in never.stderr
    assert "no snapshot at" not in first(warm, "--at", "train.py:8").stderr
    above = warm.rl("warm", "--at", "train.py:6")
    assert "rl: no snapshot at train.py:6: it went on at train.py:8 " in above.stderr
    plain = warm.rl("warm", "--at", "train.py:6", "--", sys.executable, "-c", "1")
    assert "rl: no snapshot at train.py:6: only scripts and modules have" in plain.stderr


# --- on every save


LONG = "print('ready', flush=True)", "time.sleep(100)"


def watching(world, *words):
    return world.start(["rl", "warm", "--watch", *words])


def read_until(stream, wanted):
    shown = b""
    deadline = time.monotonic() + PATIENCE_S
    while wanted not in shown:
        left = deadline - time.monotonic()
        assert select.select([stream], [], [], max(0, left))[0], shown
        block = os.read(stream.fileno(), 4096)
        assert block, shown
        shown += block
    return shown


def test_a_save_ends_the_program_that_still_runs_and_relaunches_it(warm):
    note = warm.project / "pid"
    pid = f"open({str(note)!r}, 'w').write(str(__import__('os').getpid()))"
    edit(warm, pid, "try: print('ready', flush=True); time.sleep(100)", "finally: print('left')")
    process = watching(warm, "--at", "train.py:5", "--", sys.executable, "train.py")
    read_until(process.stdout, b"ready\n")
    running = int(note.read_text())
    edit(warm, "print('second')")
    shown = read_until(process.stdout, b"second\n")
    assert b"left\n" in shown
    said = read_until(process.stderr, b"watching")
    assert b"rl #1  interrupted after" in said
    assert b"rl: train.py was saved while it ran: once more\n" in said
    assert b"resumed at train.py:5" in said
    assert b"changed while it ran" not in said
    assert not is_running(running)
    edit(warm, *LONG)
    read_until(process.stdout, b"ready\n")
    edit(warm, "print('third')")  # of one that was resumed
    read_until(process.stdout, b"third\n")
    read_until(process.stderr, b"watching")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    process.communicate()
    states = [row["state"] for row in json.loads(warm.rl("log", "--json").stdout)["trials"]]
    assert states == ["interrupted", "passed", "interrupted", "passed"]


def test_a_program_that_will_not_end_is_killed_after_a_save(warm):
    edit(warm, "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)", *LONG)
    process = watching(warm, "--", sys.executable, "train.py")
    read_until(process.stdout, b"ready\n")
    edit(warm, "print('second')")
    read_until(process.stdout, b"second\n")
    read_until(process.stderr, b"watching")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    process.communicate()


def test_a_save_that_changes_nothing_leaves_the_running_program_alone(warm):
    edit(warm, *LONG)
    process = watching(warm, "--", sys.executable, "train.py")
    read_until(process.stdout, b"ready\n")
    edit(warm, *LONG)
    edit(warm, "print('second')")
    assert b"ready" not in read_until(process.stdout, b"second\n")
    process.kill()
    process.communicate()


def test_sources_that_no_snapshot_knows_yet_are_watched_too(warm):
    warm.write("model.py", "import time\nprint('ready', flush=True)\ntime.sleep(100)\n")
    warm.write("train.py", "import model\nprint(model.size)\n")
    process = watching(warm, "--", sys.executable, "train.py")
    read_until(process.stdout, b"ready\n")
    warm.write("model.py", "size = 7\n")
    read_until(process.stdout, b"7\n")
    process.kill()
    process.communicate()


def test_ctrl_c_ends_the_program_and_once_more_the_watching(warm):
    # Many short sleeps: Python may miss a signal that comes just before it sleeps, until it wakes.
    waits = "try: print('rea' + 'dy'); [time.sleep(0.1) for _ in range(1000)]"
    edit(warm, waits, "except KeyboardInterrupt: print('bye')")
    argv = [sys.executable, "-m", "relaunch", "warm", "--watch", "--", sys.executable, "train.py"]
    there = ["sh", "-c", 'cd "$0" && exec "$@"', str(warm.project), *argv]
    screen = Screen(*there, env=warm.env)
    screen.until(b"ready\r\n")
    screen.type(b"\x03")
    shown = screen.until(b"watching 1 file; Ctrl-C ends")
    assert b"bye\r\n" in shown
    screen.type(b"\x03")
    assert screen.end() == 0
    screen.close()


def test_a_killed_rl_leaves_nobody_who_watches(warm):
    edit(warm, *LONG)
    process = watching(warm, "--", sys.executable, "train.py")
    read_until(process.stdout, b"ready\n")
    below = [one for one in processes() if one.parent == process.pid]
    beside = [one.pid for one in below if not is_warm(one)]  # a host may stay
    assert len(beside) >= 3  # the program, its guard, and who watches
    process.kill()
    process.communicate()
    wait_until(lambda: not any(is_running(pid) for pid in beside))


def test_what_is_no_python_program_is_relaunched_when_its_file_is_saved(warm):
    warm.write("go.sh", "echo one\n")
    process = watching(warm, "--", "sh", "go.sh")
    read_until(process.stdout, b"one\n")
    read_until(process.stderr, b"watching 1 file;")
    warm.write("go.sh", "echo two\n")
    read_until(process.stdout, b"two\n")
    process.kill()
    process.communicate()


def test_with_json_every_line_of_ours_is_json(warm):
    edit(warm, "print('x')", "if time is None:", "    print('never')")
    first(warm)
    done = warm.rl("warm", "--json", "--verify", "--at", "train.py:7")
    events = [json.loads(line) for line in done.stderr.splitlines() if line[0] == "{"]
    assert [one["event"] for one in events] == [
        "announced", "warmed", "finished", "remarked", "remarked",
    ], events  # fmt: skip
    assert events[-1]["text"] == "verified: a cold run told the same"
    assert "rl:" not in done.stderr
    assert "verified" not in warm.rl("warm", "-q", "--verify").stderr


def test_with_nothing_to_watch_it_says_so_and_ends(warm):
    done = warm.rl("warm", "--watch", "--", "true")
    assert done.returncode == 0
    assert done.stderr.endswith("rl: nothing to watch: no file of this folder is known to matter\n")


# --- where there is no snapshot


SPY = """\
import threading
threading.Thread(target=threading.Event().wait, name="spy", daemon=True).start()
"""


def spied(world):
    """Return options with which a thread runs from the first statement on."""
    world.write("site/sitecustomize.py", SPY)
    return "--env", f"PYTHONPATH={world.project / 'site'}"


def status(world):
    (program,) = json.loads(world.rl("warm", "status", "--json").stdout)["programs"]
    return program


def test_who_never_gets_a_snapshot_learns_why(warm):
    edit(warm, "for n in range(6):", "    time.sleep(0.15)", "print('old')")
    first(warm, *spied(warm))
    program = status(warm)
    assert program["snapshots"] == []
    (refused,) = program["refused"]
    assert refused["why"] == "a thread is running: spy"
    assert refused["count"] >= 3
    assert refused["at"].startswith("train.py:")
    shown = warm.rl("warm", "status").stdout
    assert "  no snapshot: a thread is running: spy (" in shown
    assert " times, last at train.py:" in shown
    edit(warm, "print('new')")
    again = warm.rl("warm")
    assert "rl: cold: no snapshots: a thread is running: spy (at train.py:" in again.stderr
    assert again.stdout == "begin\nnew\n"


def test_what_was_refused_is_that_of_the_last_run(warm):
    spy = spied(warm)
    edit(warm, "print('x')")
    first(warm, *spy)
    assert status(warm)["refused"]
    warm.write("site/sitecustomize.py", "")
    first(warm, *spy)
    assert status(warm)["refused"] == []
    assert status(warm)["snapshots"]


def test_a_program_that_closes_all_files_is_not_written_into(warm):
    edit(
        warm,
        "import os, threading",
        "os.closerange(3, 100)",
        "file = open('data.txt', 'w')",
        "more = [open(f'{n}.txt', 'w') for n in range(20)]",
        "done = threading.Event()",
        "threading.Thread(target=done.wait).start()",
        "for n in range(3):",
        "    time.sleep(0.15)",
        "done.set()",
    )
    done = first(warm)
    assert done.returncode == 0, done.stderr
    written = [path for path in warm.project.glob("*.txt") if path.read_bytes()]
    assert written == []
