"""Waiting for the disk takes nothing from the launch: no signal, and only a bounded time."""

import os
import signal
from pathlib import Path

from relaunch.journal import to_disk


def test_the_thread_that_waits_takes_no_signal_of_the_main_thread() -> None:
    """A launch blocks SIGCHLD to wait for it: another thread must not get it meanwhile."""
    seen: list[set[signal.Signals | int]] = []
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    to_disk.soon(lambda: seen.append(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
    to_disk.wait(60)
    assert {signal.SIGCHLD, signal.SIGINT, signal.SIGTERM} <= seen[0]
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == before


def test_a_disk_that_does_not_answer_holds_nobody_up() -> None:
    near, far = os.pipe()
    to_disk.soon(lambda: os.read(near, 1))
    to_disk.wait(0.01)  # returns although it goes on
    os.write(far, b"x")
    to_disk.wait(60)
    os.close(near)
    os.close(far)


def test_what_fails_keeps_the_rest_from_nothing(tmp_path: Path) -> None:
    done: list[int] = []
    to_disk.soon(lambda: os.stat(tmp_path / "gone"))
    to_disk.soon(lambda: done.append(1))
    to_disk.wait(60)
    to_disk.sync([str(tmp_path / "gone"), str(tmp_path)])  # gone: it need not be there
    assert done == [1]
