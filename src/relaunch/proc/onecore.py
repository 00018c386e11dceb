"""Keeps a program, and all that it starts, on one CPU; which one is a matter of the number."""

from __future__ import annotations

import os
import sys

from relaunch.proc.companion import Companion

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class OneCore(Companion):
    """Beside a program of this machine."""

    def __init__(self, number: int) -> None:
        """Another number may be another CPU."""
        self._number = number

    def enter(self) -> None:
        """Stay on it from before the first instruction of the program."""
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[self._number % len(cores)]})


_THERE = """\
import os, sys
cores = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cores[int(sys.argv[1]) % len(cores)]})
os.execvp(sys.argv[2], sys.argv[2:])
"""


def on_one_core(argv: Sequence[str], number: int) -> tuple[str, ...]:
    """Return a command that runs another on one CPU of whichever machine it is started on."""
    return (sys.executable, "-I", "-c", _THERE, str(number), *argv)
