"""What is each rank's own where ranks are threads: its number, its variables, its lines."""

from __future__ import annotations

import functools
import io
import os
import signal
import sys
import threading

from relaunch.inside.node.lines import label_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NUMBERS = frozenset(("RANK", "LOCAL_RANK", "ROLE_RANK"))
_RANK = "_relaunch_rank"


class Local(threading.local):
    """Which rank a thread belongs to, and whether it is in a call of ours."""

    rank = -1
    inside = False


here = Local()


def begin() -> None:
    """Have variables, threads, signals and prints of each rank its own."""
    os.environ.__class__ = _environment(type(os.environ))
    _follow()
    signal.signal = _heeded(signal.signal)
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = Lines(number)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _environment(theirs: Any) -> Any:
    class PerRank(theirs):  # type: ignore[misc]  # the class of `os.environ` has no public name
        def __getitem__(self, name: Any) -> Any:
            if name in NUMBERS and here.rank >= 0:
                return str(here.rank)
            return super().__getitem__(name)

    return PerRank


def _follow() -> None:
    """A thread that a rank starts belongs to that rank."""
    start, run = threading.Thread.start, threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    @functools.wraps(start)
    def begin_thread(self: Any) -> None:
        vars(self).setdefault(_RANK, here.rank)
        start(self)

    @functools.wraps(run)
    def run_thread(self: Any) -> None:
        here.rank = vars(self).get(_RANK, -1)
        run(self)

    threading.Thread.start = begin_thread  # type: ignore[method-assign]
    threading.Thread._bootstrap_inner = run_thread  # type: ignore[attr-defined]


def _heeded(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """Signals come to the main thread, which is no rank: who would heed them here is not asked."""

    @functools.wraps(theirs)
    def heed(number: Any, handler: Any) -> Any:
        if here.rank >= 0:
            return signal.getsignal(number)
        return theirs(number, handler)

    return heed


class Lines(io.TextIOBase):
    """A stream on which the lines of each rank stay whole, and have its number."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, fd: int) -> None:
        """Write to a file of the process."""
        self._fd = fd
        self._begun: dict[int, str] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Return the name as Python's own streams have it."""
        return "<stdout>" if self._fd == 1 else "<stderr>"

    def fileno(self) -> int:
        """Return the file below."""
        return self._fd

    def writable(self) -> bool:
        """Tell that it can be written."""
        return True

    def isatty(self) -> bool:
        """Tell that nobody types here."""
        return False

    def write(self, text: str) -> int:
        """Give on all lines that are whole by now."""
        rank = here.rank
        begun, newline, rest = (self._begun.pop(rank, "") + text).rpartition("\n")
        if rest:
            self._begun[rank] = rest
        if newline:
            self._give(rank, begun)
        return len(text)

    def flush(self) -> None:
        """Keep a line that is not whole: another's would come into it."""

    def end(self) -> None:
        """Give on what there is."""
        for rank in [*self._begun]:
            self._give(rank, self._begun.pop(rank))

    def _give(self, rank: int, text: str) -> None:
        label = label_of(rank) if rank >= 0 else b""
        lines = [_last_state(line) for line in text.split("\n")]
        data = b"".join(label + line.encode("utf-8", "backslashreplace") + b"\n" for line in lines)
        with self._lock:
            while data:
                data = data[os.write(self._fd, data) :]


def _last_state(line: str) -> str:
    """Return what a terminal would show of a line with carriage returns in it."""
    return line.rstrip("\r").rpartition("\r")[2]
