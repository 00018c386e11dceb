"""`rl watch` without a terminal, and `rl run --watch`: real processes, real numbers."""

from __future__ import annotations

import json
import os
import pwd
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.people import plain
from tests.watching import HELD, Holder, is_alive, usage, wait_for

from relaunch.journal.store import Journal
from relaunch.look.series import read
from relaunch.session.watched import last_peak, peak_of

__all__ = ["plain"]

MIB = 1 << 20


def objects(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# --- processes ------------------------------------------------------------------------------------


def test_a_tree_is_one_line_with_what_all_its_processes_use(world):
    with Holder(world, mib=64, children=2) as holder:
        done = world.rl("watch", str(holder.pid), "--json", "--every", "300ms", "--times", "2")
    assert done.returncode == 0, done.stderr
    first, second = objects(done.stdout)
    assert first["schema"] == "relaunch/watch/1"
    (tree,) = second["trees"]
    assert tree["pid"] == holder.pid
    assert len(tree["processes"]) == 3
    assert tree["rss_bytes"] > 3 * 64 * MIB
    # What forked processes share is theirs together, once.
    assert 64 * MIB < tree["pss_bytes"] < 2 * 64 * MIB
    assert tree["peak_bytes"] >= tree["rss_bytes"]
    assert tree["threads"] == 3
    assert tree["fds"] >= 9
    assert tree["user"]


def test_lines_have_a_head_and_end_with_the_process(world):
    with Holder(world, mib=32) as holder:
        running = world.start(["rl", "watch", str(holder.pid), "--every", "100ms"])
        assert running.stdout is not None
        head = running.stdout.readline().decode().split()
        assert head[:4] == ["time", "pid", "rss", "GB"]
        row = running.stdout.readline().decode()
        assert f" {holder.pid} " in row
        assert "holder.py 32 0" in row
        holder.let_go()
        rest = running.communicate()[0].decode()
        assert running.returncode == 0
    assert "ended: peak " in rest.splitlines()[-1]


def test_a_process_that_is_not_started_yet_is_waited_for(world):
    running = world.start(["rl", "watch", "late_holder", "--json", "--every", "100ms"])
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["trees"] == []
    with Holder(world, mib=16, name="late_holder.py") as holder:
        seen: list[dict[str, Any]] = []
        while not seen:
            seen = json.loads(running.stdout.readline())["trees"]
        assert seen[0]["pid"] == holder.pid
    while (line := json.loads(running.stdout.readline()))["trees"] == []:
        pass
    while line["trees"] and line["trees"][0]["state"] != "ended":
        line = json.loads(running.stdout.readline())
    running.terminate()
    running.communicate()


def test_a_program_is_found_though_its_process_was_another_before(world):
    world.write("becomes_me.py", "import sys; print('ready', flush=True); sys.stdin.read()")
    line = f"read x; exec {sys.executable} becomes_me.py"
    shell = subprocess.Popen(
        ["sh", "-c", line], cwd=world.project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert shell.stdin is not None
    assert shell.stdout is not None
    running = world.start(["rl", "watch", "^(?!sh).*becomes_me", "--json", "--every", "100ms"])
    assert running.stdout is not None
    assert json.loads(running.stdout.readline())["trees"] == []
    shell.stdin.write(b"go\n")
    shell.stdin.flush()
    assert shell.stdout.readline() == b"ready\n"
    while not json.loads(running.stdout.readline())["trees"]:
        pass
    running.terminate()
    running.communicate()
    shell.communicate()


def test_neither_rl_nor_the_shell_that_started_it_matches(world):
    done = world.shell("rl watch 'nothing-[l]ike-this|rl watch' --times 2 --every 100ms --json")
    assert done.returncode == 0
    assert [one["trees"] for one in objects(done.stdout)] == [[], []]


def test_disks_are_shown_as_df_counts_them(world):
    done = world.rl("watch", "--disk", str(world.root), "--json", "--times", "1")
    (disk,) = objects(done.stdout)[0]["disks"]
    found = os.statvfs(world.root)
    assert disk["total"] == found.f_blocks * found.f_frsize
    assert disk["path"] == str(world.root)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["4194305"], "rl: no process 4194305   try: rl watch --match 4194305"),
        (["("], "rl: `(` is no regular expression: missing ), unterminated subpattern"),
        (["x", "--every", "soon"], "rl: --every takes a time such as"),
        (["x", "--every", "xms"], "rl: --every takes a time such as"),
        (["x", "--every", "0"], "rl: --every takes a time such as"),
        (["x", "--every", "1ms"], "rl: --every 1ms: at least 20ms"),
        (["x", "--times", "0"], "rl: --times takes 1 or more, not `0`"),
        (["x", "--sort", "colour"], "rl: --sort takes pid, rss, pss, peak"),
        (["x", "--user", "nobody-like-this"], "rl: no user `nobody-like-this`"),
        (["x", "--disk", "/no/where"], "rl: --disk /no/where: no such path"),
        (["last"], "rl: there is no trial here yet"),
        (["--trial", "7"], "rl: no trial #7"),
        ([], "rl: what to watch?"),
        (["--cmd", " "], "rl: --cmd is empty"),
        (["x", "--cmd", "df"], "rl: --cmd alone, or processes alone"),
        ([""], "rl: an empty pattern matches everything"),
        (["--", "x", "--wat"], "`x`: command not found"),
        (["--wat"], "rl: no option `--wat`"),
        (["--tmux", "--", "true"], "rl: --tmux: this is no tmux, and no terminal for one"),
    ],
)
def test_wrong_words_get_one_line(world, words, said):
    done = world.rl("watch", *words)
    assert done.returncode == (127 if "not found" in said else 2), done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 2:
        assert len(done.stderr.splitlines()) == 1


def test_another_users_process_is_watched_as_far_as_that_may_be_read(world):
    if os.geteuid() != 0:
        pytest.skip("only root can become two users")
    os.chmod(world.root, 0o755)
    with Holder(world, mib=32) as holder:
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--clear-groups", sys.executable, "-m", "relaunch",
             "watch", str(holder.pid), "--json", "--times", "1"],
            cwd="/", env={**world.env, "HOME": "/nonexistent"}, capture_output=True, text=True,
        )  # fmt: skip
    (tree,) = objects(done.stdout)[0]["trees"]
    assert tree["rss_bytes"] > 32 * MIB
    assert tree["fds"] is None
    assert tree["read_bytes"] is None


def test_only_the_processes_of_the_asked_user_are_shown(world):
    if os.geteuid() != 0:
        pytest.skip("only root can become two users")
    mark = f"of-two-users-{os.getpid()}"
    argv = [sys.executable, "-c", f"{HELD}# {mark}", "1", "0"]
    nobody = ["setpriv", "--reuid", "65534", "--clear-groups"]
    running = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for words in (argv, [*nobody, *argv])
    ]
    try:
        for one in running:
            assert one.stdout is not None
            assert one.stdout.readline() == b"ready\n"
        names = [pwd.getpwuid(uid).pw_name for uid in (0, 65534)]
        shown = {}
        for name in names:
            words = ("watch", mark, "--user", name, "--json", "--times", "1")
            (line,) = objects(world.rl(*words).stdout)
            shown[name] = [(tree["pid"], tree["user"]) for tree in line["trees"]]
    finally:
        for one in running:
            one.communicate(b"")
    assert shown == {name: [(one.pid, name)] for name, one in zip(names, running, strict=True)}


BUSY = """
import os, sys
if os.fork() == 0:
    while True: pass
print("ready", flush=True)
file = os.memfd_create("data")  # no disk, which others may keep busy
while os.getppid() == int(sys.argv[1]):
    os.pwrite(file, bytes(1 << 20), 0)
    os.pread(file, 1 << 19, 0)
"""
"""Two processes: one computes, the other writes twice as much as it reads."""


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    argv = [sys.executable, "-c", BUSY, str(os.getpid())]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def test_what_a_tree_computes_reads_and_writes_is_told_by_the_second(world, busy):
    words = ("watch", str(busy.pid), "--json", "--every", "300ms", "--times", "7")
    trees = [line["trees"][0] for line in objects(world.rl(*words).stdout)]
    first, last = trees[0], trees[-1]
    assert len(last["processes"]) == 2
    assert last["cpu_s"] > first["cpu_s"]
    assert 0 < last["cpu_percent"] <= 210  # two processes of one thread each
    assert last["write_bytes"] > first["write_bytes"] > 0
    assert last["write_bytes_s"] > MIB
    assert 1.5 < last["write_bytes_s"] / last["read_bytes_s"] < 2.5


def test_the_lines_say_it_too(world, busy):
    done = world.rl("watch", str(busy.pid), "--every", "300ms", "--times", "3")
    head, *rows = (line.split() for line in done.stdout.replace(" GB", "-GB").splitlines())
    row = dict(zip(head, rows[-1], strict=False))
    assert int(row["cpu%"]) > 0, done.stdout
    assert row["read/s"] != "0", done.stdout
    assert row["write/s"] != "0", done.stdout


# --- commands -------------------------------------------------------------------------------------


def test_a_command_is_printed_whole_and_then_what_changed(world):
    world.write("counts", "0")
    line = "echo same; echo n $(cat counts) end; echo x >> counts; tr -d '\\n' < counts > c; "
    line += "mv c counts"
    done = world.rl("watch", "--cmd", line, "--every", "50ms", "--times", "3")
    rows = done.stdout.splitlines()
    assert rows[1:3] == ["  same", "  n 0 end"]
    assert [row for row in rows if row.startswith("+")] == ["+ n 0x end", "+ n 0xx end"]


def test_several_words_that_begin_with_a_program_are_a_command(world):
    done = world.rl("watch", "echo one two", "--every", "50ms", "--times", "2", "--json")
    first, second = objects(done.stdout)
    assert first["lines"] == second["lines"] == ["one two"]
    assert (first["exit_code"], second["changed"]) == (0, [])


def test_a_command_that_fails_says_so(world):
    done = world.rl("watch", "--cmd", "echo out; exit 3", "--times", "1")
    assert done.stdout.splitlines()[0].endswith("  exit 3")
    assert done.returncode == 0


# --- a watched trial ------------------------------------------------------------------------------

GROWS = """
import os, time
blocks = []
pid = os.fork()
if pid == 0:
    mine = bytearray(40 << 20)
    time.sleep(0.4)
    os._exit(0)
for _ in range(4):
    blocks.append(bytearray(20 << 20))
    time.sleep(0.1)
os.waitpid(pid, 0)
open("out.bin", "wb").write(bytes(5 << 20))
print("done")
"""


def test_a_watched_trial_keeps_its_series_and_shows_it_under_its_output(world):
    world.write("grows.py", GROWS)
    done = world.rl("run", "--watch", "--", sys.executable, "grows.py")
    assert done.returncode == 0
    assert done.stdout == "done\n"
    assert "peak " in done.stderr
    assert "CPU " in done.stderr
    used = usage(world)
    assert 80 * MIB < used["peak_bytes"] < 250 * MIB
    assert used["processes"] == 2
    assert used["cpu_s"] > 0
    assert used["write_bytes"] >= 5 * MIB
    series = read(str(world.journal / "trials/1/usage.jsonl"))
    assert series is not None
    assert len(series.points) >= 5
    assert max(series.column("processes")) == 2
    assert series.column("t") == sorted(series.column("t"))
    shown = world.rl("show", "1").stdout
    assert "\nused      peak " in shown
    assert "memory " in shown
    assert "█" in shown
    kept = json.loads(world.rl("show", "1", "--json").stdout)["usage"]
    assert kept["columns"][:2] == ["t", "rss"]
    assert len(kept["points"]) == len(series.points)


def test_the_output_and_the_end_of_a_watched_program_are_its_own(world):
    watched = world.rl("run", "--watch", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (watched.returncode, watched.stdout) == (7, "out\n")
    assert "err\n" in watched.stderr
    killed = world.rl("run", "--watch", "--", "sh", "-c", "kill -9 $$")
    assert killed.returncode == -signal.SIGKILL


def test_a_peak_between_two_looks_is_known_all_the_same(world):
    world.write("spike.py", "x = b'x' * (300 << 20)\n")
    world.rl("run", "--watch", "--", sys.executable, "spike.py")
    assert usage(world)["peak_bytes"] > 300 * MIB


def test_a_peak_is_known_when_rl_was_started_by_a_larger_process(world):
    world.write("spike.py", "x = b'x' * (300 << 20)\n")
    world.write(
        "large.py", "import os, sys\nx = b'x' * (600 << 20)\nos.execv(sys.argv[1], sys.argv[1:])\n"
    )
    words = shlex.join([sys.executable, "-m", "relaunch", "run", "--watch", "--", sys.executable])
    done = world.shell(f"{sys.executable} large.py {words} spike.py")
    assert done.returncode == 0, done.stderr
    assert usage(world)["peak_bytes"] > 300 * MIB


def test_a_program_that_is_over_at_once_is_no_problem(world):
    done = world.rl("run", "--watch", "--", "true")
    assert done.returncode == 0
    assert usage(world)["peak_bytes"] < 64 * MIB


def test_ctrl_c_ends_the_program_and_who_watched_it(world):
    world.write("holds.py", "print('ready', flush=True); input()")
    rl = world.start(["rl", "run", "--watch", "--", sys.executable, "holds.py"],
                     stdin=subprocess.PIPE)  # fmt: skip
    assert rl.stdout is not None
    assert rl.stdout.readline() == b"ready\n"
    children = _below(rl.pid)
    wait_for(lambda: _was_seen(world.journal / "trials/1/usage.jsonl"))
    os.killpg(rl.pid, signal.SIGINT)
    rl.communicate()
    assert rl.returncode == -signal.SIGINT
    assert not any(map(is_alive, children))
    assert usage(world)["peak_bytes"] > MIB


def _was_seen(series: Path) -> bool:
    """Tell whether a moment with memory of the program was written down."""
    lines = series.read_text().splitlines()[1:] if series.exists() else []
    whole = [line for line in lines if line.startswith("[") and line.endswith("]")]
    return any((value or 0) > MIB for line in whole for value in json.loads(line))


def _below(pid: int) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout
    return [int(one) for one in found.split()]


def test_a_program_that_cannot_be_started_leaves_nothing(world):
    done = world.rl("run", "--watch", "--", "no-such-program")
    assert done.returncode == 127
    end = json.loads((world.journal / "trials/1/end.json").read_text())
    assert end["not_started"]


def test_processes_whose_parents_left_are_still_of_the_tree(world):
    world.write(
        "daemon.py",
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0:\n"
        "        os.setsid(); x = b'x' * (90 << 20); time.sleep(1.2)\n"
        "    os._exit(0)\n"
        "os.wait(); time.sleep(1.0)\n",
    )
    world.rl("run", "--watch", "--let-live", "--", sys.executable, "daemon.py")
    series = read(str(world.journal / "trials/1/usage.jsonl"))
    assert series is not None
    assert series.peak_bytes > 90 * MIB


def test_the_series_of_a_killed_rl_is_there_with_its_peak(world):
    world.write("holds.py", "x = b'x' * (120 << 20); print('ready', flush=True); input()")
    rl = world.start(["rl", "run", "--watch", "--", sys.executable, "holds.py"],
                     stdin=subprocess.PIPE)  # fmt: skip
    assert rl.stdout is not None
    assert rl.stdout.readline() == b"ready\n"
    path = world.journal / "trials/1/usage.jsonl"

    def peak() -> int:
        series = read(str(path))
        return series.peak_bytes if series is not None else 0

    wait_for(lambda: peak() > 120 * MIB, "the peak was never written")
    children = _below(rl.pid)
    assert len(children) >= 3  # the program, the guard, and who watches
    rl.kill()
    rl.communicate()
    wait_for(lambda: not any(map(is_alive, children)), "somebody was left")
    trial = Journal(str(world.journal)).load("1")
    assert trial.end is None
    assert peak_of(trial) > 120 * MIB
    shown = world.rl("show", "1").stdout
    assert "rl was killed before it ended" in shown
    assert "memory " in shown


def test_the_peak_of_the_last_watched_run_of_a_command_is_found(world):
    world.write("spike.py", "import time\nx = b'x' * (200 << 20)\ntime.sleep(0.5)\n")
    command = [sys.executable, "spike.py"]
    world.rl("run", "--watch", "--", *command)
    world.rl("--env", "A=1", "--", *command)
    world.rl("--env", "A=2", "--", *command)
    journal = Journal(str(world.journal))
    third = journal.load("3")
    assert last_peak(journal, third) > 200 * MIB
    assert last_peak(journal, journal.load("1")) == 0


def test_rl_watch_last_sees_the_trial_that_runs_and_keeps_what_nobody_keeps(world):
    world.write("holds.py", "x = b'x' * (70 << 20); print('ready', flush=True); input()")
    rl = world.start(["rl", "--", sys.executable, "holds.py"], stdin=subprocess.PIPE)
    assert rl.stdout is not None
    assert rl.stdout.readline() == b"ready\n"
    done = world.rl("watch", "last", "--json", "--every", "200ms", "--times", "3")
    trees = objects(done.stdout)[-1]["trees"]
    assert [tree["command"][-1] for tree in trees] == ["holds.py"]
    assert trees[0]["rss_bytes"] > 70 * MIB
    rl.communicate(b"\n")
    ended = world.rl("watch", "last")
    assert ended.returncode == 0
    assert "#1 has ended; what it used:" in ended.stderr
    assert "memory " in ended.stdout


def test_slow_motion_waits_before_the_line_each_time(world):
    world.write("train.py", "for i in range(2):\n    x = i\nprint(x)\n")
    done = world.rl("run", "--slow-motion", "train.py:2=0.2s", "--", sys.executable, "train.py")
    assert done.returncode == 0
    assert done.stdout == "1\n"
    assert done.stderr.count("train.py:2 sleeps 0.2 s") == 2
    end = json.loads((world.journal / "trials/1/end.json").read_text())
    assert end["duration_s"] >= 0.4


def test_slow_motion_says_why_a_line_never_came(world):
    world.write("train.py", "def f():\n    return 1\nprint(2)\n")
    done = world.rl("run", "--slow-motion", "train.py:f=1s", "--", sys.executable, "train.py")
    assert "rl: train.py:f never came: NOT CALLED" in done.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("train.py:1=soon", "--slow-motion train.py:1 takes a time such as"),
        ("train.py:1=soon", "try: --slow-motion train.py:1=5m"),
        ("train.py:99=2s", "=2s\n"),
        ("train.py:9=1s", "line 9 has no code"),
        ("train.py:1", "--slow-motion takes FILE:LINE=TIME"),
        ("gone.py:1=1s", "gone.py: No such file"),
    ],
)
def test_slow_motion_with_wrong_words_gets_one_line(world, word, said):
    world.write("train.py", "x = 1\n")
    done = world.rl("run", "--slow-motion", word, "--", sys.executable, "train.py")
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_plain_user_watches_a_trial_of_their_own(plain):
    plain.world.write("grows.py", GROWS)
    plain.owns()
    done = plain.rl("run", "--watch", "--", plain.python, "grows.py")
    assert done.returncode == 0, done.stderr
    used = usage(plain.world)
    assert used["peak_bytes"] > 80 * MIB
    assert used["peak_pss_bytes"] > 0
    assert used["fds"] > 3
    assert used["write_bytes"] >= 5 * MIB
    assert "memory " in plain.rl("show", "1").stdout
