"""Where a process writes down what it saw: lines of JSON, kept together and written some at a time.

The file is opened for each writing: a number that is kept open may become a file of the program's.
"""

from __future__ import annotations

import os

from relaunch.inside.probe.notes import append

ENDING = ".shapes"
_KEPT = 64
"""So many lines wait at the most."""
_SIZE = 8 << 20
"""More than so many bytes are not written by one process."""


class Book:
    """The lines of this process."""

    def __init__(self, folder: str) -> None:
        """Write into `folder`."""
        self._folder = folder
        self._lines: list[str] = []
        self._size = 0
        self.is_full = False

    def begin(self) -> None:
        """Be a new process, after a fork: what waits is the parent's to write."""
        self._lines = []
        self._size = 0
        self.is_full = False

    def add(self, line: str, *, at_once: bool) -> None:
        """Add a line; `at_once` for what a process may have no time to write later."""
        self._lines.append(line)
        if at_once or len(self._lines) >= _KEPT:
            self.flush()

    def flush(self) -> None:
        """Write what waits; where nothing can be written, nothing is."""
        lines, self._lines = self._lines, []
        if not lines or self.is_full:
            return
        data = "".join(lines).encode("utf-8", "backslashreplace")
        self._size += len(data)
        self.is_full = self._size > _SIZE
        append(f"{self._folder}/{os.getpid()}{ENDING}", data)
