"""Warm relaunches from outside: cold the first time, then on from above the edit."""

import os
import re
import signal
import subprocess
import sys
import time

import pytest
from tests.supervising import PATIENCE_S, is_running, wait_until
from tests.warming import (
    BEGIN,
    edit,
    files,
    first,
    on_terminal,
    plain,
    programs,
    running,
    snapshots,
    told,
    trial,
)

# --- as a cold run


def test_after_an_edit_it_goes_on_above_it_and_shows_all_output(warm):
    edit(warm, "print('old')")
    cold = first(warm, "--at", "train.py:5")
    assert "rl: cold: no snapshots yet" in cold.stderr
    edit(warm, "print('new')", "sys.exit(3)")
    again = warm.rl("warm")
    assert (again.returncode, again.stdout) == (3, "begin\nnew\n")
    assert "rl: resumed at train.py:5 (" in again.stderr
    assert " instead of 0." in again.stderr
    assert "\ncareful\n" in again.stderr
    assert trial(warm, "1", "start.json")["warm"] is True
    assert trial(warm, "1", "end.json")["cold"] == "no snapshots yet"
    resumed = trial(warm, "2", "end.json")["resumed"]
    assert resumed["at"] == "train.py:5"
    assert 0.3 <= resumed["saved_s"] <= trial(warm, "1", "end.json")["duration_s"]
    assert "resumed at train.py:5" in warm.rl("show").stdout


def test_a_chain_of_edits_goes_on_from_each_other(warm):
    edit(warm, "print('1')")
    first(warm)
    for number in range(2, 6):
        edit(warm, f"print('{number}')", "time.sleep(0.2)", "print('end')")
        done = warm.rl("warm")
        assert done.stdout == f"begin\n{number}\nend\n"
        assert "resumed at" in done.stderr


def test_it_dies_of_the_same_signal(warm):
    edit(warm, "pass")
    first(warm)
    edit(warm, "print('last', flush=True)", "os.kill(os.getpid(), signal.SIGTERM)")
    done = warm.rl("warm")
    assert (done.returncode, done.stdout) == (-signal.SIGTERM, "begin\nlast\n")
    assert trial(warm, "2", "end.json")["signal"] == signal.SIGTERM


def test_a_failure_after_the_edit_is_known_by_its_signature(warm):
    edit(warm, "pass")
    first(warm)
    edit(warm, "raise ValueError('loss is nan')")
    done = warm.rl("warm")
    assert done.returncode == 1
    assert (
        trial(warm, "2", "end.json")["signature"]["title"] == "train.py:5 ValueError: loss is nan"
    )


def test_what_is_typed_goes_to_the_resumed_program(warm):
    edit(warm, "print('old')")
    first(warm)
    edit(warm, "print('got', sys.stdin.read())")
    assert warm.rl("warm", input="words").stdout == "begin\ngot words\n"


def test_a_long_output_is_shown_again_byte_for_byte(warm):
    lines = "for n in range(60000): print('line', n, 'x' * 20)"
    warm.write("train.py", f"import time\n{lines}\ntime.sleep(0.3)\nprint('old')\n")
    cold = first(warm)
    warm.write("train.py", f"import time\n{lines}\ntime.sleep(0.3)\nprint('new')\n")
    done = warm.rl("warm")
    assert "resumed at" in done.stderr
    assert done.stdout == cold.stdout.removesuffix("old\n") + "new\n"


# --- signals and ends


def test_signals_reach_the_resumed_program_once(warm):
    edit(warm, "pass")
    first(warm)
    edit(
        warm,
        # Not print: `ready` is read before the print that wrote it has returned.
        "signal.signal(signal.SIGUSR1, lambda *_: os.write(1, b'usr1\\n'))",
        "signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'term\\n'), sys.exit(9)))",
        "print('ready', flush=True)",
        "while True: time.sleep(0.01)",
    )
    process = running(warm)
    process.send_signal(signal.SIGUSR1)
    shown = os.read(process.stdout.fileno(), 100)
    assert shown == b"usr1\n", process.stderr.read()
    process.send_signal(signal.SIGTERM)
    shown, _ = process.communicate(timeout=PATIENCE_S)
    assert (shown, process.returncode) == (b"term\n", 9)


def test_a_timeout_ends_the_resumed_program(warm):
    edit(warm, "pass")
    first(warm)
    note = warm.project / "pid"
    edit(warm, f"open({str(note)!r}, 'w').write(str(os.getpid()))", "time.sleep(100)")
    done = warm.rl("warm", "--timeout", "1")
    assert done.returncode == 124
    assert "resumed at" in done.stderr
    assert not is_running(int(note.read_text()))


@pytest.mark.parametrize("ignores", ["", "signal.signal(signal.SIGTERM, signal.SIG_IGN)"])
def test_the_resumed_program_does_not_outlive_a_killed_rl(warm, ignores):
    edit(warm, "pass")
    first(warm)
    note = warm.project / "pid"
    edit(
        warm,
        ignores,
        f"open({str(note)!r}, 'w').write(str(os.getpid()))",
        "print('ready', flush=True)",
        "time.sleep(100)",
    )
    process = running(warm)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    wait_until(lambda: not is_running(int(note.read_text())))
    assert snapshots(warm)


def test_who_outlives_a_resumed_program_is_ended_with_it(warm):
    edit(warm, "pass")
    first(warm)
    edit(warm, "print(subprocess.Popen(['sleep', '1003']).pid)")
    done = warm.rl("warm")
    assert "resumed at" in done.stderr
    assert "ended 1 process that outlived it" in done.stderr
    assert not is_running(int(done.stdout.split()[-1]))


def test_who_outlives_a_cold_run_is_ended_but_not_its_snapshots(warm):
    edit(warm, "print(subprocess.Popen(['sleep', '1004']).pid)")
    done = first(warm)
    assert "ended 1 process that outlived it" in done.stderr
    assert not is_running(int(done.stdout.split()[-1]))
    assert snapshots(warm)


def test_a_killed_host_or_snapshot_never_leaves_it_hanging(warm):
    edit(warm, "pass")
    first(warm)
    go = warm.root / "go"
    waits = f"while not __import__('os').path.exists({str(go)!r}): time.sleep(0.01)"
    edit(warm, "print('ready', flush=True)", waits, "print('done')")
    process = running(warm)
    (host,) = programs(warm)
    os.kill(host["pid"], signal.SIGKILL)
    wait_until(lambda: not is_running(host["pid"]))
    go.touch()
    shown, said = process.communicate(timeout=PATIENCE_S)
    assert (shown, process.returncode) == (b"done\n", 125)
    assert b"its host was killed" in said
    wait_until(lambda: not any(is_running(one["pid"]) for one in host["snapshots"]))
    assert "no snapshots yet" in warm.rl("warm").stderr

    edit(warm, "print('ready', flush=True)", "time.sleep(100)")
    process = running(warm)
    for one in snapshots(warm):
        os.kill(one["pid"], signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -signal.SIGKILL


# --- on a terminal


def test_on_a_terminal_it_looks_and_is_interrupted_as_a_cold_run(warm):
    edit(warm, "print('old')")
    argv = [sys.executable, "-m", "relaunch", "warm", "--", sys.executable, "train.py"]
    cold = on_terminal(warm, argv)
    assert cold.end() == 0
    edit(
        warm,
        "print('new', input('name? '))",
        "try: print('waits'); time.sleep(100)",
        "except KeyboardInterrupt: sys.exit(5)",
    )
    screen = on_terminal(warm, argv)
    shown = screen.until(b"name? ")
    assert b"resumed at" in shown
    assert b"\r\nbegin\r\ncareful\r\nname? " in shown
    assert b"\r\r\n" not in shown
    screen.type(b"ada\n")
    screen.until(b"new ada\r\nwaits\r\n")
    screen.type(b"\x03")
    assert screen.end() == 5
    for one in (cold, screen):
        one.close()


def test_ctrl_z_stops_the_resumed_program_and_fg_lets_it_go_on(warm):
    edit(warm, "pass")
    command = f"{sys.executable} -m relaunch warm"
    shell = on_terminal(warm, ["bash", "--norc", "--noprofile", "-i"])
    shell.until(b"$ ")
    shell.type(f"{command} -- {sys.executable} train.py\n".encode())
    shell.until(b"exit 0 in")
    note = warm.project / "pid"
    edit(
        warm,
        f"open({str(note)!r}, 'w').write(str(os.getpid()))",
        "print('rea' + 'dy')",
        "print('got', input())",
    )
    shell.type(f"{command}\n".encode())
    shell.until(b"ready\r\n")
    shell.type(b"\x1a")
    shell.until(b"Stopped")
    wait_until(lambda: _state(int(note.read_text())) == "T")
    shell.type(b"fg\n")
    wait_until(lambda: _state(int(note.read_text())) == "S")
    shell.type(b"words\n")
    shell.until(b"got words\r\n")
    shell.until(b"exit 0 in")
    shell.close()


def _state(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


# --- other ways


def test_when_a_snapshot_cannot_go_on_it_runs_cold_once(warm):
    edit(warm, "print('old')")
    first(warm)
    for tape in (warm.root / "run/relaunch").glob("*.tape"):
        tape.write_bytes(b"")
    edit(warm, "print('new')")
    done = warm.rl("warm")
    assert done.stdout == "begin\nnew\n"
    assert "rl: cold: train.py:5 did not go on: " in done.stderr


def test_other_words_another_environment_or_no_terminal_have_snapshots_of_their_own(warm):
    edit(warm, "print(sys.argv[1:], os.environ.get('MODE'))")
    first(warm)
    more = warm.rl("warm", "--", sys.executable, "train.py", "x")
    assert "no snapshots yet" in more.stderr
    other = first(warm, env={"MODE": "fast"})
    assert "no snapshots yet" in other.stderr
    assert "fast" in other.stdout
    joined = warm.shell(f"rl warm -- {sys.executable} train.py 2>&1")
    assert "no snapshots yet" in joined.stdout


def test_what_cannot_be_warm_runs_plainly_and_says_why(warm):
    done = warm.rl("warm", "--", "sh", "-c", "echo hello; exit 4")
    assert (done.returncode, done.stdout) == (4, "hello\n")
    assert "rl: cold: `sh` is no Python program that can be read" in done.stderr
    typed = warm.rl("warm", "--", sys.executable, "-c", "print('typed')")
    assert (typed.returncode, typed.stdout) == (0, "typed\n")
    assert "rl: cold: only scripts and modules have snapshots" in typed.stderr


def test_a_module_is_resumed_and_fails_as_python_lets_it_fail(warm):
    warm.write("tool/__init__.py", "")
    main = "import sys, time\nprint(sys.argv[1:])\ntime.sleep(0.3)\n"
    main += "print({word!r})\nraise ValueError(1)\n"
    warm.write("tool/__main__.py", main.format(word="old"))
    wanted = ("--at", "tool/__main__.py:4")
    warm.rl("warm", *wanted, "--", sys.executable, "-m", "tool", "x")
    warm.write("tool/__main__.py", main.format(word="new"))
    done = warm.rl("warm")
    cold = subprocess.run(
        [sys.executable, "-m", "tool", "x"],
        cwd=warm.project,
        env=warm.env,
        capture_output=True,
        text=True,
    )
    assert "rl: resumed at tool/__main__.py:4" in done.stderr
    assert (done.returncode, done.stdout) == (1, cold.stdout) == (1, "['x']\nnew\n")
    assert cold.stderr in done.stderr


TESTS = """\
import time
import pytest
time.sleep(0.3)
@pytest.fixture(scope="session")
def data():
    time.sleep(0.3)
    return [1, 2]
def test_one(data):
    print("captured")
    assert sum(data) == 3
def test_two(data, tmp_path):
    n = len(data)
    assert n == {n}
"""


def test_pytest_goes_on_in_the_middle_of_its_tests(warm):
    warm.write("test_it.py", TESTS.format(n=3))
    words = ("-m", "pytest", "-q", "-p", "no:xdist", "test_it.py")
    first = warm.rl("warm", "--at", "test_it.py:7", "--", sys.executable, *words)
    assert "1 failed, 1 passed" in first.stdout
    warm.write("test_it.py", TESTS.format(n=4))
    again = warm.rl("warm")
    assert "rl: resumed at test_it.py:7" in again.stderr, again.stderr
    alone = [sys.executable, *words, "-o", "relaunch_keep=false"]
    cold = subprocess.run(alone, cwd=warm.project, env=warm.env, capture_output=True, text=True)
    assert _timeless(again.stdout) == _timeless(cold.stdout)
    warm.write("test_it.py", TESTS.format(n=2))
    fixed = warm.rl("warm")
    assert "rl: resumed at test_it.py:" in fixed.stderr
    assert (fixed.returncode, "2 passed" in fixed.stdout) == (0, True)


def _timeless(output):
    return re.sub(r"in \d+\.\d+s|pytest-\d+", "", output)


def test_a_snapshot_is_where_a_person_wants_one(warm):
    warm.write("quick.py", "a = 1\nb = 2\nc = 3\nprint(a + b + c)\n")
    warm.rl("warm", "--at", "quick.py:3", "--", sys.executable, "quick.py")
    assert "quick.py:3" in [one["at"] for one in snapshots(warm)]


def test_a_resumed_run_leaves_a_snapshot_too_where_a_person_wants_one(warm):
    edit(warm, "a = 1", "b = 2", "print(a + b)")
    first(warm)
    edit(warm, "a = 1", "b = 3", "print(a + b)")  # so that it goes on above
    assert "resumed at" in warm.rl("warm", "--at", "train.py:7").stderr
    (wanted,) = [one for one in snapshots(warm) if one["at"] == "train.py:7"]
    assert wanted["id"] == max((one["id"] for one in snapshots(warm)), key=int)


def test_where_no_snapshot_can_be_kept_the_program_runs_plainly_and_the_next_line_says_why(warm):
    edit(warm, "print('x')")
    first(warm)
    (socket,) = (warm.root / "run" / "relaunch").glob("*.sock")
    warm.rl("warm", "stop")
    socket.mkdir()
    plain = warm.rl("warm")
    assert (plain.returncode, plain.stdout) == (0, "begin\nx\n")
    assert "Traceback" not in plain.stderr
    socket.rmdir()
    again = warm.rl("warm")
    assert "rl: cold: snapshots failed: IsADirectoryError: " in again.stderr
    assert "resumed at" in warm.rl("warm").stderr


def test_there_is_a_snapshot_right_after_the_imports(warm):
    warm.write("slow.py", "import time\ntime.sleep(0.2)\n")
    warm.write("train.py", "import slow\nprint(slow)\nimport slow as late\na = 1\nprint(a)\n")
    first(warm)
    assert "train.py:4" in [one["at"] for one in snapshots(warm)]


def test_a_traceback_that_was_shown_keeps_its_lines(warm):
    lines = (
        "import atexit, time\natexit.register(lambda: last())\ndef last():\n    time.sleep(0.2)\n"
    )
    lines += "    print('over')\nraise ValueError(1)\n"
    warm.write("train.py", lines)
    first(warm, "--at", "train.py:5")
    assert snapshots(warm)[-1]["at"] == "train.py:5"  # when all has been shown
    warm.write("train.py", "\n" + lines)
    moved = warm.rl("warm")
    assert 'train.py", line 7, in <module>' in moved.stderr


def test_an_exception_on_its_way_keeps_its_lines(warm):
    lines = [
        "class Guard:",
        "    def __enter__(self): pass",
        "    def __exit__(self, *_):",
        "        self.a = 1",
        "        self.b = {}",
        "{}def fail():",
        "    raise ValueError(1)",
        "with Guard():",
        "    fail()",
    ]
    edit(warm, *lines[:4], lines[4].format(1), lines[5].format(""), *lines[6:])
    first(warm, "--at", "train.py:9")
    assert "train.py:9" in [one["at"] for one in snapshots(warm)]
    edit(warm, *lines[:4], lines[4].format(2), lines[5].format("\n"), *lines[6:])
    assert 'train.py", line 12, in fail' in warm.rl("warm").stderr


GENERATOR = """\
def inner():
    yield 1
    yield 2
    raise ValueError(3)
def outer():
    {first}
    yield from inner()
waiting = outer()
next(waiting)
a = 1
{between}
b = 2
next(waiting), next(waiting)
"""


@pytest.mark.parametrize(("opening", "between"), [("pass", "pass"), ("yield 0", "next(waiting)")])
def test_a_generator_that_waits_keeps_its_lines_true_through_many_edits(warm, opening, between):
    """It waits in the code of the first version, or in its own copy of that of the second."""
    text = GENERATOR.format(first=opening, between=between)
    for blank, stop in ((0, "a = 1"), (1, "b = 2"), (2, "b = 2"), (3, "b = 2")):
        script = BEGIN + "\n" * blank + text.replace("b = 2", f"b = 2 + {blank}")
        warm.write("train.py", script)
        at = 1 + script[: script.index(stop)].count("\n")
        done = warm.rl("warm", "--at", f"train.py:{at}", "--", sys.executable, "train.py")
        assert told(done) == told(plain(warm))
        assert ("resumed at" in done.stderr) == (blank > 0)


def test_a_plain_relaunch_of_a_warm_trial_is_plain(warm):
    edit(warm, "print('x')")
    first(warm)
    plain = warm.rl()
    assert plain.stdout == "begin\nx\n"
    assert "cold" not in plain.stderr
    assert "warm" not in trial(warm, "1.2", "start.json")
    assert "resumed at" in warm.rl("warm").stderr


def test_a_place_that_a_resumed_run_asks_for_is_kept_with_preference(warm):
    edit(warm, "print('x')", "print('y')")
    first(warm, "--at", "train.py:5")
    assert {one["at"]: one["wanted"] for one in snapshots(warm)}["train.py:5"]
    assert "resumed at" in warm.rl("warm", "--at", "train.py:6").stderr
    wanted = {one["at"]: one["wanted"] for one in snapshots(warm)}
    assert (wanted["train.py:5"], wanted["train.py:6"]) == (False, True)


def test_status_lists_the_snapshots_and_stop_ends_them(warm):
    assert "no snapshots" in warm.rl("warm", "status").stderr
    edit(warm, "print('x')")
    first(warm, "--at", "train.py:5")
    (program,) = programs(warm)
    pids = [one["pid"] for one in program["snapshots"]]
    assert pids
    assert all(is_running(pid) for pid in pids)
    shown = warm.rl("warm", "status").stdout
    assert "train.py:5" in shown
    assert "MiB" in shown
    other = warm.root / "home"
    assert warm.rl("warm", "status", cwd=other).stdout == ""
    assert "ended 0 snapshots" in warm.rl("warm", "stop", cwd=other).stderr
    assert "train.py:5" in warm.rl("warm", "status", "--all", cwd=other).stdout
    assert "rl: ended" in warm.rl("warm", "stop").stderr
    wait_until(lambda: not any(is_running(pid) for pid in pids))
    assert programs(warm) == []


PID = "os.readlink('/proc/self')"
"""How a program learns its number without our hearing of it."""


def test_who_knows_the_number_of_its_process_goes_on_from_before_that(warm):
    edit(warm, "mine = os.getpid()", "time.sleep(0.3)", "print(mine == os.getpid())")
    first(warm)
    edit(warm, "mine = os.getpid()", "time.sleep(0.3)", "print('same:', mine == os.getpid())")
    again = warm.rl("warm")
    assert again.stdout == "begin\nsame: True\n"
    assert "resumed at train.py:5 " in again.stderr


def test_verify_finds_what_a_cold_run_does_otherwise(warm):
    edit(warm, "print('same')")
    first(warm)
    same = warm.rl("warm", "--verify")
    assert same.returncode == 0
    assert "verified" in same.stderr
    first_line = f'begun = {PID}; print("begin", time.perf_counter_ns())'
    script = BEGIN.replace('print("begin")', first_line)
    warm.write("train.py", script + f"print('same process:', begun == {PID})\n")
    first(warm, "--at", "train.py:5")
    other = warm.rl("warm", "--verify")
    assert other.returncode == 1
    difference = "standard output differs in line 2: `same process: False` warm, "
    assert f"NOT as a cold run: {difference}" in other.stderr
    assert "rl: lines that no two cold runs have in common were left out: 1" in other.stderr
    place = other.stderr.partition("resumed at ")[2].split()[0]
    assert f"resumed at {place} " not in warm.rl("warm").stderr
    verdict = trial(warm, "2.2", "verified.json")
    assert verdict["difference"].startswith(difference)


def test_what_no_two_cold_runs_have_in_common_is_not_held_against_a_place(warm):
    edit(warm, "print(time.perf_counter_ns())", "print('end')")
    first(warm)
    done = warm.rl("warm", "--verify")
    assert done.returncode == 0
    assert "rl: verified: a cold run told the same" in done.stderr
    assert "rl: lines that no two cold runs have in common were left out: 1\n" in done.stderr
    place = int(done.stderr.partition("resumed at train.py:")[2].split()[0])
    again = warm.rl("warm").stderr.partition("resumed at train.py:")[2].split()[0]
    assert int(again) >= place  # or at a later one, if what came before it took its time
    left_out = "lines that no two cold runs have in common were left out: 1"
    assert trial(warm, "1.2", "verified.json") == {
        "against": "1.3", "difference": "", "left_out": left_out,
    }  # fmt: skip
    assert left_out in warm.rl("show", "1.2").stdout


def test_verify_compares_the_files_that_were_written(warm):
    same, other = "open('same', 'w').write('x')", "open('log', 'a').write('x')"
    edit(warm, same, other, "print('end')")
    first(warm)
    done = warm.rl("warm", "--verify")
    assert (done.returncode, warm.project.joinpath("log").read_text()) == (0, "xxxx")
    assert "rl: files that no two cold runs leave alike were left out: 1\n" in done.stderr
    script = BEGIN.replace('print("begin")', f"begun = {PID}")
    warm.write("train.py", f"{script}open('pid', 'w').write(str(begun == {PID}))\n")
    first(warm, "--at", "train.py:5")
    differs = warm.rl("warm", "--verify")
    assert differs.returncode == 1
    assert "NOT as a cold run: pid differs: 5 bytes warm, 4 bytes cold" in differs.stderr
    assert not [name for name in files(warm) if name.endswith(".written")]


def test_on_a_terminal_too_a_time_is_not_held_against_a_place(warm):
    argv = [sys.executable, "-m", "relaunch", "warm", "--at", "train.py:5"]
    edit(warm, "print(time.perf_counter_ns())", "print('end')")
    cold = on_terminal(warm, [*argv, "--", sys.executable, "train.py"])
    assert cold.end() == 0
    cold.close()
    screen = on_terminal(warm, [*argv[:4], "--verify"])
    screen.until(b"resumed at")
    screen.until(b"verified: a cold run told the same")
    screen.until(b"lines that no two cold runs have in common were left out: 1")
    assert screen.end() == 0
    screen.close()


def test_a_cold_run_that_was_interrupted_bans_nothing(warm):
    warm.write(
        "train.py",
        f"import os, time\nopen('begun-' + {PID}, 'w').close()\ntime.sleep(2)\nprint('end')\n",
    )
    first(warm, "--at", "train.py:4")
    process = warm.start(["rl", "warm", "--verify"])
    wait_until(lambda: len([*warm.project.glob("begun-*")]) == 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert b"rl: not verified: the cold run was interrupted" in errors
    assert process.returncode == 1
    assert "resumed at train.py:4 " in warm.rl("warm").stderr


def test_every_save_is_a_relaunch(warm):
    edit(warm, "print('one')")
    process = warm.start(["rl", "warm", "--watch", "--", sys.executable, "train.py"])
    _read_until(process.stdout, b"one\n")
    _read_until(process.stderr, b"watching")
    edit(warm, "print('two')")
    _read_until(process.stdout, b"two\n")
    _read_until(process.stderr, b"watching")
    edit(warm, "print('three')")
    _read_until(process.stdout, b"three\n")
    _read_until(process.stderr, b"watching")
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    process.communicate()


def _read_until(stream, wanted):
    shown = b""
    deadline = time.monotonic() + PATIENCE_S
    while wanted not in shown and time.monotonic() < deadline:
        block = os.read(stream.fileno(), 4096)
        assert block, shown
        shown += block
    assert wanted in shown


def test_a_plain_launch_loads_nothing_of_it(warm):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "relaunch", "--", "true"],
        env=warm.env, cwd=warm.project, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "relaunch.trial.engine" in done.stderr
    for module in ("launch.warm", "launch.words", "proc.tape", "proc.standin", "_socket"):
        assert module not in done.stderr


FONTS = """\
import os
files = [open(__file__) for _ in range(8)]
os.register_at_fork(after_in_child=lambda: [file.close() for file in files])
"""


def test_open_files_come_back_whatever_numbers_they_had(warm):
    """As matplotlib's fonts: a library closes them in forked processes, and we take the numbers."""
    library = warm.root / "library"
    library.mkdir()
    (library / "fonts.py").write_text(FONTS)
    warm.env["PYTHONPATH"] = str(library)
    lines = ["import fonts", "time.sleep(0.3)"]
    edit(warm, *lines, "print('old')")
    first(warm, "--at", "train.py:7")
    for word in ("new", "newer", "newest"):
        edit(warm, *lines, f"print({word!r})")
        again = warm.rl("warm")
        assert again.stdout == f"begin\n{word}\n"
        assert "rl: resumed at train.py:7" in again.stderr


def test_a_program_that_acts_at_forks_is_not_made_to_act_by_ours(warm):
    line = "os.register_at_fork(before=lambda: print(1), after_in_child=lambda: print(2))"
    edit(warm, line, "time.sleep(0.2)", "print('old')")
    assert told(first(warm, "--at", "train.py:7")) == told(plain(warm))
    edit(warm, line, "time.sleep(0.2)", "print('new')")
    assert told(warm.rl("warm")) == told(plain(warm))


def test_our_own_objects_do_not_make_the_collector_s_lists_longer(warm):
    # As where it is installed: to compile the hook is work that the collector counts.
    warm.rl("warm", "--", sys.executable, "-c", "", env={"PYTHONDONTWRITEBYTECODE": ""})
    warm.write("train.py", "import gc\nprint(len(gc.get_objects()), gc.get_stats())\n")
    ours, stats = first(warm).stdout.split(" ", 1)
    theirs, cold_stats = plain(warm).stdout.split(" ", 1)
    assert stats == cold_stats
    assert abs(int(ours) - int(theirs)) < 300
