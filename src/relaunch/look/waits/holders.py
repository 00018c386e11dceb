"""Who has which pipe, socket or other thing without a name open, and could act on its other end.

A file in /proc/PID/fd is a link that says what it is and, by its mode, whether it can be read or
written through it.
"""

from __future__ import annotations

import os

from relaunch.look.waits.proc import link, pids, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

READ, WRITE = 0o400, 0o200
_EVENTS = "anon_inode:[eventfd]"


def thing(pid: int, fd: int | str) -> str:
    """Name what a file is, the same for all who share it; nothing when it cannot be read."""
    found = link(f"/proc/{pid}/fd/{fd}")
    if found == _EVENTS:
        return f"eventfd:[{_field(read(f'/proc/{pid}/fdinfo/{fd}'), b'eventfd-id:')}]"
    return found


def mode(pid: int, fd: int | str) -> int:
    """Return READ, WRITE or both."""
    try:
        return os.lstat(f"/proc/{pid}/fd/{fd}").st_mode & (READ | WRITE)
    except OSError:
        return 0


def _field(text: bytes, name: bytes) -> str:
    for line in text.split(b"\n"):
        if line.startswith(name):
            return line.split()[1].decode()
    return ""


class Holders:
    """Which processes of a tree, and which others, hold a thing; read when it is first asked."""

    def __init__(self, tree: Collection[int]) -> None:
        """Read what the tree holds; OSError where that is not allowed."""
        self._tree = frozenset(tree)
        self._inside: dict[str, dict[int, int]] = {}
        for pid in self._tree:
            self._read(pid, self._inside)
        self._outside: dict[str, dict[int, int]] | None = None

    def inside(self, name: str, wanted: int = READ | WRITE) -> frozenset[int]:
        """Return the processes of the tree that hold it in one of the modes."""
        return _those(self._inside, name, wanted)

    def outside(self, name: str, wanted: int = READ | WRITE) -> frozenset[int]:
        """Return the others that do; those whose files we may not see are unknown."""
        if self._outside is None:
            self._outside = {}
            for pid in pids():
                if pid not in self._tree:
                    try:
                        self._read(pid, self._outside)
                    except OSError:
                        continue
        return _those(self._outside, name, wanted)

    def things(self) -> Iterable[str]:
        """List all that the tree holds."""
        return self._inside

    @staticmethod
    def _read(pid: int, found: dict[str, dict[int, int]]) -> None:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            name = link(f"/proc/{pid}/fd/{fd}")
            if name.startswith("/"):
                continue
            if name == _EVENTS:
                name = thing(pid, fd)
            of = found.setdefault(name, {})
            of[pid] = of.get(pid, 0) | mode(pid, fd)


def _those(found: dict[str, dict[int, int]], name: str, wanted: int) -> frozenset[int]:
    return frozenset(pid for pid, has in found.get(name, {}).items() if has & wanted)
