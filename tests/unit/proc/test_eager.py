"""A process that wants short turns gets them, and stays as nice as it was."""

import ctypes
import os
import sys

import pytest

from relaunch.proc import eager
from relaunch.proc.helper import Helper


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such turns")
def test_short_turns_are_asked_for_without_any_privilege():
    ctypes.CDLL(None)  # loaded here: who gives up the rights of root may not read it any more

    def ask(socket):
        if os.geteuid() == 0:
            os.setuid(65534)
        before = os.nice(3)
        eager.run_soon()
        policy, nice = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
        os.write(socket, f"{policy} {nice - before}".encode())

    child = Helper(ask)
    said = child.hear(60.0)
    child.stop()
    assert said == f"{os.SCHED_OTHER} 0".encode()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may go first")
def test_root_goes_first():
    def ask(socket):
        eager.run_soon()
        os.write(socket, str(os.sched_getscheduler(0)).encode())

    child = Helper(ask)
    said = child.hear(60.0)
    child.stop()
    assert said == str(os.SCHED_FIFO).encode()
