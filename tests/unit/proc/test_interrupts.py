"""Ctrl-C as something to wait for."""

from __future__ import annotations

import ctypes
import functools
import os
import select
import signal

import pytest

from relaunch.proc.interrupts import Interrupts


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def is_readable(interrupts: Interrupts) -> bool:
    return bool(select.select([interrupts], [], [], 0)[0])


def test_the_first_one_waits_to_be_seen_and_the_second_is_as_ever() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts() as interrupts:
        assert (interrupts.came, is_readable(interrupts)) == (False, False)
        press()
        assert (interrupts.came, is_readable(interrupts)) == (True, True)
        with pytest.raises(KeyboardInterrupt):
            press()
    assert signal.getsignal(signal.SIGINT) is before


def test_who_is_told_to_end_is_asked_like_one_who_is_interrupted() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        for _ in range(2):  # `timeout` sends it to its child, and at once to the group
            os.kill(os.getpid(), signal.SIGTERM)
            assert (interrupts.came, is_readable(interrupts)) == (True, True)
    assert signal.getsignal(signal.SIGTERM) is before


class PressedMeanwhile:
    """Asked for its file it raises the signal, and no handler can run before the wait begins."""

    def __init__(self) -> None:
        self.fileno = functools.partial(ctypes.CDLL(None)["raise"], signal.SIGINT)  # returns 0


def test_one_that_comes_just_before_the_wait_ends_the_wait() -> None:
    with Interrupts() as interrupts:
        ready, _, _ = select.select([interrupts], [], [PressedMeanwhile()], 300)
        assert ready == [interrupts]
        assert interrupts.came


def test_where_it_is_ignored_it_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            press()
            assert (interrupts.came, is_readable(interrupts)) == (False, False)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
