"""Commands in turns for many tasks: at once, each with its time, and none is left."""

from __future__ import annotations

import os
import time

import pytest

from relaunch.proc.several import TIMED_OUT, Command, drive


def shell(line: str, limit_s: float = 10.0) -> Command:
    return Command(argv=["/bin/sh", "-c", line], limit_s=limit_s)


def task(*lines: str):
    """A task that runs lines in turn, and returns what each said."""
    said = []
    for line in lines:
        done = yield shell(line)
        said.append((done.code, done.text))
    return said


def test_tasks_go_through_their_commands_and_keep_their_order():
    found = drive([task(f"echo {n}", f"exit {n}") for n in range(5)], at_once=3)
    assert found == [[(0, f"{n}\n"), (n, "")] for n in range(5)]


def test_commands_run_at_the_same_time_but_never_more_than_allowed(tmp_path):
    # Each waits for the other: one after the other they would never end.
    one = f"mkfifo {tmp_path}/a; echo x > {tmp_path}/a"
    two = f"while ! read x < {tmp_path}/a; do :; done 2>/dev/null; echo $x"
    assert drive([task(one), task(two)], at_once=2)[1] == [(0, "x\n")]
    running = tmp_path / "running"
    lock = f"mkdir {running} && sleep 0.02 && rmdir {running}"
    assert drive([task(lock) for _ in range(4)], at_once=1) == [[(0, "")]] * 4


def test_one_that_takes_too_long_is_ended_with_all_it_started(tmp_path):
    def slow():
        done = yield shell(f"sleep 1000 & echo $! > {tmp_path}/child; wait", 0.3)
        return done.code

    assert drive([slow(), task("echo quick")], at_once=2) == [TIMED_OUT, [(0, "quick\n")]]
    child = int((tmp_path / "child").read_text())
    deadline = time.monotonic() + 300
    while os.path.exists(f"/proc/{child}") and time.monotonic() < deadline:
        with open(f"/proc/{child}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == "Z":
                break
    else:
        assert not os.path.exists(f"/proc/{child}")


def test_one_that_closes_its_output_and_goes_on_is_waited_for_no_longer_than_its_time():
    def closes():
        done = yield shell("exec >&- 2>&-; sleep 1000", 0.3)
        return done.code

    assert drive([closes()], at_once=1) == [TIMED_OUT]


def test_what_cannot_be_started_is_told_and_a_pause_passes():
    def missing():
        yield 0.01
        done = yield Command(argv=["/nowhere/at/all"], limit_s=1.0)
        return done.code

    assert drive([missing()], at_once=1) == [127]


def test_much_output_on_both_streams_is_kept_whole():
    def loud():
        done = yield shell(
            "for n in 1 2 3; do head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2; done"
        )
        return len(done.out), len(done.err)

    assert drive([loud()], at_once=1) == [(900_000, 900_000)]


def test_an_interruption_ends_what_runs_and_lets_tasks_tidy_up(tmp_path):
    tidied = []

    def one():
        try:
            yield shell(f"echo $$ > {tmp_path}/pid; exec sleep 1000")
        finally:
            tidied.append(True)

    def interrupts():
        while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
            yield 0.01
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        drive([one(), interrupts()], at_once=2)
    assert tidied == [True]
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")
