"""Stacks that a Python process tells by itself, asked by a signal whose handler is faulthandler's.

Nobody is ever sent a signal that it has no handler for: that would end it. Programs of trials have
one of ours under a memory limit, and where the kernel lets nobody look into them; which signal is
the user's own, only they know.
"""

from __future__ import annotations

import os
import stat

from relaunch.inside.limited import SIGNAL, STACKS
from relaunch.inside.protocol import LIMITED
from relaunch.inside.tells import NAME
from relaunch.look.stacks.faults import is_cut, read_fault
from relaunch.look.stacks.frames import MAIN, LookError, Thread
from relaunch.look.stacks.who import environment
from relaunch.look.usage import PROC
from relaunch.proc.status import handles, inner_id
from relaunch.proc.tree import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_FILES = 64


class Question:
    """A process that is asked, and the files in which its answer may come."""

    def __init__(self, pid: int, signal: int = 0) -> None:
        """Ask by our own signal, or by the user's; LookError when it has no handler for it."""
        self._pid = pid
        ours = "" if signal else _our_file(pid)
        self._signal = signal or (SIGNAL if ours else 0)
        if not self._signal:
            raise LookError("no handler of ours is in it")
        if not handles(pid, self._signal, at_once=False):
            raise LookError(f"it has no handler for signal {self._signal}, which would end it")
        self._sizes = {ours: _size(ours)} if ours else dict(_files(pid))
        self._before: dict[str, int] = {}

    def ask(self) -> None:
        """Send the signal."""
        send(self._pid, self._signal)

    def answer(self) -> list[Thread]:
        """Return what it told, once nothing is added any more; until then nothing.

        Where many want to run, it may wait for its turn inside a line.
        """
        grown = {path: _size(path) for path, size in self._sizes.items() if _size(path) > size}
        if not grown or grown != self._before:
            self._before = grown
            return []
        for path in grown:
            threads = _read(path, self._sizes[path], self._pid)
            if threads:
                return threads
        return []


def _our_file(pid: int) -> str:
    """Return where a program tells its stacks to us: a file, or memory; nothing when nowhere."""
    words = environment(pid).get(LIMITED, "").split(os.pathsep)
    if len(words) > 1 and words[1]:
        return os.path.join(words[1], f"{inner_id(pid)}{STACKS}")
    return next((path for path in _open(pid) if _target(path).startswith(f"/memfd:{NAME}")), "")


def _open(pid: int) -> list[str]:
    try:
        names = sorted(os.listdir(f"{PROC}/{pid}/fd"), key=int)
    except (OSError, ValueError):
        return []
    return [f"{PROC}/{pid}/fd/{name}" for name in names]


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _files(pid: int) -> Iterator[tuple[str, int]]:
    """Find the plain files that a process writes, and how long they are: its log may be one."""
    seen = set()
    for path in _open(pid)[:_MOST_FILES]:
        try:
            found = os.stat(path)
            flags = os.lstat(path).st_mode
        except OSError:
            continue
        is_written = bool(flags & stat.S_IWUSR)
        if stat.S_ISREG(found.st_mode) and is_written and found.st_ino not in seen:
            seen.add(found.st_ino)
            yield path, found.st_size


def _read(path: str, begin: int, pid: int) -> list[Thread]:
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [] if is_cut(text) else _numbered(read_fault(text), pid)


def _numbered(found: list[Thread], pid: int) -> list[Thread]:
    """Say which thread is which: the newest comes first, and the main one last.

    Where others than those of Python are among them, only the main one can be told.
    """
    if not found:
        return found
    found[-1] = found[-1].but(id=pid, name=found[-1].name or MAIN)
    try:
        others = sorted({int(name) for name in os.listdir(f"{PROC}/{pid}/task")} - {pid})
    except (OSError, ValueError):
        return found
    if len(others) != len(found) - 1:
        return found
    newest = [one.but(id=tid) for one, tid in zip(found[:-1], reversed(others), strict=True)]
    return [*newest, found[-1]]


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
