"""What of a thread's wait can be read on this machine; each is tried on a tiny child.

One child waits for a socket, and another looks at it: as who watches a program is not above it.
"""

from __future__ import annotations

import os
import select
import sys

from relaunch.look.waits.calls import UNREADABLE, call_of
from relaunch.look.waits.proc import read
from relaunch.look.waits.sockets import sockets, time_limits
from relaunch.proc.helper import Helper, write_all
from relaunch.proc.ptrace.kernel import allow_tracer

_ANSWER_S = 5.0
_SCOPE = "sudo sysctl kernel.yama.ptrace_scope=0, or docker run --cap-add=SYS_PTRACE"


def means() -> list[tuple[str, bool, str, str]]:
    """Return name, whether it works, what that means, and what would make it work; best first."""
    has_calls, has_ends, has_place = _tried() if sys.platform == "linux" else (False,) * 3
    return [
        (
            "calls and ends",
            has_calls and has_ends,
            "a deadlock is certain, also over sockets between processes of the program",
            "" if has_ends else _SCOPE,
        ),
        (
            "calls",
            has_calls,
            "a deadlock is certain, but over sockets only suspected",
            "" if has_calls else _SCOPE,
        ),
        (
            "place in the kernel",
            has_place,
            "nothing is certain: a silent program that waits is suspected",
            "" if has_place else "a kernel with /proc/PID/wchan",
        ),
        ("CPU", sys.platform == "linux", "a silent program that does nothing is suspected", ""),
    ]


def _tried() -> tuple[bool, bool, bool]:
    """Let one child look at another."""
    seen = Helper(_wait)
    try:
        seen.hear(_ANSWER_S)
        looking = Helper(lambda socket: write_all(socket, _look(seen.pid)))
        try:
            answer = looking.hear(_ANSWER_S)
        finally:
            looking.stop()
    finally:
        seen.stop()
    return b"c" in answer, b"e" in answer, b"p" in answer


def _wait(socket: int) -> None:
    """Say that we are there, and wait for the end of the socket without looking at it."""
    allow_tracer(os.getppid())
    write_all(socket, b"x")
    while os.read(socket, 1):
        pass


def _look(pid: int) -> bytes:
    """Say what is seen of a process that waits."""
    for _ in range(50):  # it may be on its way there
        if call_of(pid, pid) is not None:
            break
        select.select([], [], [], 0.01)
    call = call_of(pid, pid)
    has_calls = call is not None and call is not UNREADABLE
    has_ends = has_calls and call is not None and time_limits(pid, call.fd) is not None
    try:
        has_ends = has_ends and any(one.peer for one in sockets(pid).values())
    except OSError:
        has_ends = False
    place = read(f"/proc/{pid}/wchan").strip(b"0\n")
    return b"c" * has_calls + b"e" * has_ends + b"p" * bool(place) + b"."
