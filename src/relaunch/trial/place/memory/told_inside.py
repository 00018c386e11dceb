"""What the program's own processes tell of themselves: stacks without py-spy, growth by line."""

from __future__ import annotations

import os
import time

from relaunch.inside import limited
from relaunch.inside.limited import ASKED, GROWTH, SIGNAL, STACKS
from relaunch.inside.protocol import LIMITED
from relaunch.look.stacks import LookError, read_fault
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import halt
from relaunch.trial.place.memory.meter import read
from relaunch.trial.place.memory.moment import Growth, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from relaunch.look.stacks import Thread

OURS = os.path.abspath(limited.__file__)
"""A thread that runs there is ours, not the program's."""
FOLDER = "memory"
"""Folder of the trial in which its processes tell of themselves while it runs."""
_ANSWER_S = 0.05
_SETTLED_S = 0.002


class Inside:
    """The folder in which they tell, for one program."""

    def __init__(self, folder: str, roots: Sequence[str], *, track: bool) -> None:
        """Take an empty folder, which `remove` takes away."""
        self._folder = folder
        self._roots = roots
        self._track = track
        self._was_asked = False

    def env(self) -> dict[str, str]:
        """Return what the program's environment needs."""
        words = ["track" if self._track else "", self._folder, *self._roots]
        return {LIMITED: os.pathsep.join(words)}

    def ask_growth(self) -> None:
        """Have them write which lines allocated the most, once."""
        if self._track and not self._was_asked:
            self._was_asked = True
            os.close(os.open(os.path.join(self._folder, ASKED), os.O_CREAT | os.O_CLOEXEC, 0o600))

    def growth(self, pids: Iterable[int]) -> dict[int, Growth]:
        """Return what each process told of its lines, the largest first."""
        texts = {pid: read_if_there(self._path(pid, GROWTH)) for pid in pids}
        return {pid: read_growth(text) for pid, text in texts.items() if text}

    def ask(self, pids: Sequence[int]) -> list[int]:
        """Have those who can write their stacks; return them."""
        asked = [pid for pid in pids if catches(pid, SIGNAL)]
        for pid in asked:
            halt.send(pid, SIGNAL)
        return asked

    def ask_stacks(self, pids: Sequence[int]) -> None:
        """Have those who can write their stacks, and wait a moment for it."""
        were = {pid: _size(self._path(pid, STACKS)) for pid in pids}
        asked = self.ask(pids)
        deadline = time.monotonic() + _ANSWER_S
        sizes: list[int] = []
        while asked and time.monotonic() < deadline:
            before, sizes = sizes, [_size(self._path(pid, STACKS)) for pid in asked]
            if sizes == before and all(
                size > were[pid] for pid, size in zip(asked, sizes, strict=True)
            ):
                return
            time.sleep(_SETTLED_S)

    def answered(self) -> list[int]:
        """List who was asked for stacks and wrote some."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return []
        told = [name.removesuffix(STACKS) for name in names if name.endswith(STACKS)]
        return [int(name) for name in told if name.isdecimal()]

    def stacks(self, pid: int) -> list[Thread]:
        """Return what a process wrote; LookError when it wrote nothing."""
        text = read_if_there(self._path(pid, STACKS))
        if not text:
            raise LookError("it is no Python, or did not answer")
        return read_fault(text)

    def remove(self) -> None:
        """Take the folder away."""
        try:
            for name in os.listdir(self._folder):
                os.unlink(os.path.join(self._folder, name))
            os.rmdir(self._folder)
        except OSError:
            pass

    def _path(self, pid: int, ending: str) -> str:
        return os.path.join(self._folder, f"{pid}{ending}")


def make_inside(folder: str, roots: Sequence[str], *, track: bool = False) -> Inside | None:
    """Let a program tell of itself below the trial's `folder`, where there is a place for it."""
    if not folder:
        return None
    place = os.path.join(folder, FOLDER)
    try:
        os.mkdir(place, 0o700)
    except OSError:
        return None
    return Inside(place, roots, track=track)


def read_growth(text: str) -> Growth:
    """Read how much there was in all, then lines `bytes count line file`."""
    total, *rows = text.splitlines()
    lines = []
    for row in rows:
        size, count, line, file = row.split(" ", 3)
        lines.append(Line(bytes=int(size), count=int(count), line=int(line), file=file))
    return Growth(bytes=int(total), lines=tuple(lines))


def catches(pid: int, signal: int) -> bool:
    """Tell whether a process has a handler for a signal that would end it otherwise."""
    for line in read(f"/proc/{pid}/status").split(b"\n"):
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal - 1) & 1)
    return False


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
