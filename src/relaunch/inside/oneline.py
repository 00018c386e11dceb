"""Says a line to the person at the program in one write: no other line ever gets into it.

Runs inside the user's process. To standard error as the program has it at this moment, or to a
file. What cannot be written is lost without a word.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper
from time import monotonic, sleep

from relaunch.inside.printable import printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PATIENCE_S = 1.0
"""How long a pipe that nobody empties is waited for; once, until it is emptied again."""
_open, _write, _close, _getpid = os.open, os.write, os.close, os.getpid
_ESCAPED = "backslashreplace"
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


class Line:
    """The way to the person: where to, and what stands before each line."""

    __slots__ = (
        "_encoding",
        "_fd",
        "_forked",
        "_is_utf8",
        "_path",
        "_patience_s",
        "_stream",
        "_torn",
        "prefix",
    )

    def __init__(self, path: str = "") -> None:
        """Write to the file at `path`, or to standard error."""
        self.prefix = ""
        self._path = path
        self._forked = False
        self._stream: Any = self  # none that anybody has
        self._fd, self._encoding, self._is_utf8 = -1, "utf-8", True
        self._patience_s, self._torn = PATIENCE_S, False
        os.register_at_fork(after_in_child=self._in_child)
        self.renew()

    def say(self, line: str) -> None:
        """Write one line."""
        try:
            line = printable(line)
            if self._path:
                self._to_file(f"{self.prefix}{line}\n")
                return
            stream = sys.stderr
            if stream is not self._stream:
                self._take(stream)
            if self._fd < 0:  # a notebook, or a test that reads along
                stream.write(f"{self.prefix}{line}\n")
                return
            stream.flush()  # what the program wrote before comes before
            text = f"{self.prefix}{line}\n"
            # What is printable has no half characters, which UTF-8 could not write.
            data = text.encode() if self._is_utf8 else text.encode(self._encoding, _ESCAPED)
            if self._torn:
                data = b"\n" + data
            try:
                written = _write(self._fd, data)
            except BlockingIOError:
                written = 0
            if written < len(data) or self._torn:
                self._insist(data, written)
        except Exception:
            pass

    def renew(self) -> None:
        """Look again which process this is among many: a program may tell late."""
        try:
            self.prefix = _prefix(self._forked)
        except Exception:
            self.prefix = ""

    def _take(self, stream: Any) -> None:
        """Find the way to a stream; its file is written to directly, where it has one."""
        self._stream, self._fd = stream, -1
        if isinstance(stream, TextIOWrapper):
            self._encoding = stream.encoding
            self._is_utf8 = stream.encoding.lower() in ("utf-8", "utf8")
            try:
                self._fd = stream.fileno()
            except (OSError, ValueError):  # there is none under it, or it is closed
                pass

    def _insist(self, data: bytes, written: int) -> None:
        """Write the rest of a line to a pipe that is full, as far as there is patience."""
        deadline = monotonic() + self._patience_s
        while written < len(data):
            try:
                written += _write(self._fd, data[written:])
            except BlockingIOError:
                if monotonic() >= deadline:
                    self._patience_s, self._torn = 0.0, self._torn or written > 0
                    return
                sleep(0.002)
        self._patience_s, self._torn = PATIENCE_S, False

    def _to_file(self, text: str) -> None:
        # Opened each time: a program may close every file that it did not open.
        fd = _open(self._path, _APPEND, 0o666)
        try:
            _write(fd, text.encode("utf-8", _ESCAPED))
        finally:
            _close(fd)

    def _in_child(self) -> None:
        # `rl warm` forks a program to go on later; to the program that is the same process.
        if not hasattr(sys, "_relaunch_forks"):
            self._forked = True
        self.renew()


def _prefix(forked: bool) -> str:
    """Say which of several processes this is; empty when there is one."""
    words = []
    rank, ranks = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    if rank.isdigit() and ranks.isdigit() and int(ranks) > 1:
        words.append(f"rank {rank}")
    processes = sys.modules.get("multiprocessing.process")
    if forked or getattr(processes, "_parent_process", None) is not None:
        words.append(f"pid {_getpid()}")
    return f"[{' '.join(words)}] " if words else ""
