"""What the program's own processes tell of themselves: stacks without py-spy, growth by line."""

from __future__ import annotations

import os
import time

from relaunch.inside import limited
from relaunch.inside.limited import ASKED, GROWTH, SIGNAL, STACKS
from relaunch.inside.protocol import LIMITED
from relaunch.look.stacks import LookError, read_fault
from relaunch.proc.tree import OwnTime
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import halt
from relaunch.trial.place.memory.meter import read
from relaunch.trial.place.memory.moment import Growth, Line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from relaunch.look.stacks import Thread

OURS = os.path.abspath(limited.__file__)
"""A thread that runs there is ours, not the program's."""
FOLDER = "memory"
"""Folder of the trial in which its processes tell of themselves while it runs."""
_ANSWER_S, _LONGEST_S = 0.05, 2.0
"""How long a process may take to answer, not counting waits for a core; and the most in all."""
_LOOK_S, _STILL = 0.0005, 8
"""Who writes is looked at so often; after so many looks without more it has ended."""
_OUTERMOST = 32


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

    def ask(self, pid: int) -> bool:
        """Have a process write its stacks, if it can."""
        can = catches(pid, SIGNAL)
        if can:
            halt.send(pid, SIGNAL)
        return can

    def told_bytes(self, pid: int) -> int:
        """Return how much a process has written of its stacks."""
        return _size(self._path(pid, STACKS))

    def await_stacks(self, asked: Mapping[int, int], told: Callable[[int], object]) -> None:
        """Wait a moment until those asked have written more than they had; each has `told` then."""
        sizes = dict(asked)
        still = dict.fromkeys(asked, 0)
        until, own = (
            time.monotonic() + _LONGEST_S,
            {pid: OwnTime(pid, gap_s=0.005) for pid in asked},
        )
        # A process without a core cannot answer, and takes no memory either.
        while (
            still
            and time.monotonic() < until
            and min([own[pid].look() for pid in still]) < _ANSWER_S
        ):
            time.sleep(_LOOK_S)
            for pid in [*still]:
                before, sizes[pid] = sizes[pid], self.told_bytes(pid)
                still[pid] = still[pid] + 1 if sizes[pid] == before > asked[pid] else 0
                if still[pid] == _STILL or (still[pid] and self._ends(pid)):
                    told(pid)
                    del still[pid]

    def _ends(self, pid: int) -> bool:
        """Tell whether what was written last is where a thread begins."""
        try:
            with open(self._path(pid, STACKS), "rb") as file:
                file.seek(-min(_OUTERMOST, os.fstat(file.fileno()).st_size), os.SEEK_END)
                return file.read().endswith((b" in <module>\n", b" in _bootstrap\n"))
        except OSError:
            return False

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
