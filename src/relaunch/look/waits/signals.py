"""Which signals could set a sleeping process going: those that it handles and others send."""

from __future__ import annotations

import signal

from relaunch.inside.hung import SIGNAL as DEBUGGER_SIGNAL
from relaunch.inside.tells import SIGNAL as STACKS_SIGNAL
from relaunch.look.waits.proc import read

_HARMLESS = frozenset(
    (
        signal.SIGINT, signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT,
        signal.SIGBUS, signal.SIGFPE, signal.SIGSEGV, signal.SIGPIPE, signal.SIGCHLD,
        signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGURG,
        signal.SIGXCPU, signal.SIGXFSZ, signal.SIGVTALRM, signal.SIGPROF, signal.SIGWINCH,
        signal.SIGSYS, 32, 33,
    )
)  # fmt: skip
"""Sent by the kernel for a fault, by a child's end, by using CPU, by a terminal's keys."""
_ENDING = frozenset((signal.SIGTERM, signal.SIGHUP))
"""Sent to end a program: to its first process, by whoever started it."""


_OURS = frozenset((STACKS_SIGNAL, DEBUGGER_SIGNAL))
"""Only we send these."""


def awaited(pid: int, *, is_first: bool) -> str:
    """Name a signal that the process handles, and that may come from outside; nothing: none."""
    return read_awaited(read(f"/proc/{pid}/status"), is_first=is_first)


def read_awaited(status: bytes, *, is_first: bool) -> str:
    """Read the same from its status."""
    for line in status.split(b"\n"):
        if line.startswith(b"SigCgt:"):
            caught = int(line.split()[1], 16)
            for number in range(1, 65):
                if caught >> (number - 1) & 1 and _matters(number, is_first):
                    return _name(number)
    return ""


def _matters(number: int, is_first: bool) -> bool:
    if number in _HARMLESS or number in _OURS:
        return False
    return is_first or number not in _ENDING


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def has_timers(pid: int) -> bool:
    """Tell whether a timer of the system is set, which sends a signal when it ends."""
    return b"ID:" in read(f"/proc/{pid}/timers")
