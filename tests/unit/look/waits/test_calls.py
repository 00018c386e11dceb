from __future__ import annotations

import os
import struct

import pytest

from relaunch.look.waits import calls
from relaunch.look.waits.calls import Call
from relaunch.proc.ptrace.numbers import numbers

NUMBERS = numbers()


def text(name: str, *args: int) -> bytes:
    words = [*args, 0, 0, 0, 0, 0, 0][:6]
    return " ".join([str(NUMBERS[name]), *map(hex, words), "0x7ff0", "0x7ff1"]).encode()


def call(name: str, *args: int) -> Call:
    found = calls.read_call(text(name, *args))
    assert found is not None
    return found


def test_a_call_is_read_with_its_name_and_arguments():
    assert call("read", 5, 4096) == Call(name="read", args=(5, 4096, 0, 0, 0, 0))


@pytest.mark.parametrize("said", [b"running\n", b"-1 0x7ffc 0x7f00\n"])
def test_a_thread_that_runs_or_waits_for_a_page_is_in_no_call(said: bytes):
    assert calls.read_call(said) is None


def test_what_may_not_be_read_is_no_call_that_lasts():
    assert calls.read_call(b"") is calls.UNREADABLE


@pytest.mark.parametrize(
    ("name", "args", "is_timed"),
    [
        ("futex", (0x7000, 0x189, 0, 0), False),
        ("futex", (0x7000, 0x189, 0, 0x7FFD), True),
        ("poll", (0x7000, 1, 0xFFFFFFFF), False),
        ("poll", (0x7000, 1, 0xFFFFFFFFFFFFFFFF), False),
        ("poll", (0x7000, 1, 0), True),
        ("epoll_wait", (3, 0x7000, 8, 0xFFFFFFFF), False),
        ("epoll_wait", (3, 0x7000, 8, 500), True),
        ("select", (4, 0x7000, 0, 0, 0), False),
        ("select", (4, 0x7000, 0, 0, 0x7F00), True),
        ("ppoll", (0x7000, 1, 0x7F00), True),
        ("clock_nanosleep", (1, 1, 0x7F00), True),
        ("restart_syscall", (), True),
        ("read", (0,), False),
        ("wait4", (0xFFFFFFFF,), False),
    ],
)
def test_a_time_limit_is_seen_in_the_arguments(name: str, args: tuple[int, ...], is_timed: bool):
    if name not in NUMBERS:
        pytest.skip(f"no {name} on this machine")
    assert call(name, *args).is_timed is is_timed


@pytest.mark.parametrize(
    ("operation", "is_private"),
    [(0x80, True), (0x189, True), (0x109, False), (0x00, False), (0x81, None), (0x86, True)],
)
def test_a_futex_tells_whether_only_its_own_process_can_wake_it(
    operation: int, is_private: bool | None
):
    assert calls.futex_is_private(call("futex", 0x7000, operation)) is is_private


def test_the_files_of_a_poll_and_of_a_select_are_read_from_memory():
    import ctypes

    polled = struct.pack("=ihhihhihh", 3, 1, 0, -1, 1, 0, 9, 4, 0)
    block = ctypes.create_string_buffer(polled)
    assert calls.polled(os.getpid(), call("poll", ctypes.addressof(block), 3)) == [3, 9]
    bits = ctypes.create_string_buffer(((1 << 2) | (1 << 70)).to_bytes(16, "little"))
    if "select" in NUMBERS:
        asked = call("select", 71, ctypes.addressof(bits), 0, 0)
        assert calls.polled(os.getpid(), asked) == [2, 70]


def test_the_files_of_a_poll_that_cannot_be_read_are_not_none_but_unknown():
    assert calls.polled(os.getpid(), call("poll", 8, 3)) is None


def test_an_epoll_is_not_taken_for_one_whose_files_are_others_here():
    import select

    near, far = os.pipe()
    with select.epoll() as poll:
        poll.register(near)
        assert calls.watched(os.getpid(), poll.fileno()) == [near]
        kept = os.dup(near)
        other = os.open(os.devnull, os.O_RDONLY)
        os.dup2(other, near)
        assert calls.watched(os.getpid(), poll.fileno()) is None
    for fd in (near, far, kept, other):
        os.close(fd)


def test_our_own_program_is_of_this_machine():
    assert calls.is_known(os.getpid())
