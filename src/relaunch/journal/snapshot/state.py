"""What we remember of a work tree between snapshots: our index of it and what belongs to that.

The pair is published by one rename, so two snapshots at once never mix: each works on its own copy
of the index, and whoever is last wins with a pair that is right by itself.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, SnapshotError
from relaunch.journal.store import read_json, write_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORMAT = 3
_KEYS = {"head", "tree", "changed", "new", "deleted", "left", "empty", "named", "nested"}
_KEYS |= {"links", "unsettled", "folders", "forced", "problem"}
TICK_NS = 11_000_000
"""Coarsest step of file times to reckon with: two writes within it can have equal times."""


class Remembered:
    """The published pair of one work tree; `data` is empty when there is none to trust."""

    def __init__(self, repository: str, top: str) -> None:
        """Look in the private repository's folder for the work tree `top`."""
        from _blake2 import blake2b

        name = blake2b(os.fsencode(top), digest_size=8).hexdigest()
        self.folder = os.path.join(repository, "roots", name)
        self.file = os.path.join(self.folder, "state.json")
        self.data: dict[str, Any] = {}

    def load(self) -> None:
        """Read the pair; it is trusted only with the very index it was made with."""
        try:
            data = read_json(self.file) or {}
        except JournalError:
            data = {}
        self.data = data if data.get("format") == FORMAT and data.keys() >= _KEYS else {}
        if not self.holds():
            self.data = {}

    @property
    def index(self) -> str:
        """The path of the published index; it need not exist."""
        return os.path.join(self.folder, self.data.get("index") or "none")

    def holds(self) -> bool:
        """Tell whether the index is still the one that belongs to the data."""
        return bool(self.data) and self.data.get("stat") == _identity(self.index)

    def fresh(self) -> str:
        """Return the path of a new index of our own."""
        path = os.path.join(self.folder, f"index-{os.getpid()}-{time.monotonic_ns():x}")
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
        except OSError as error:
            raise SnapshotError(f"cannot write {self.folder}: {error.strerror}") from None
        return path

    def copy(self, path: str) -> None:
        """Put a copy of the published index at `path`, if there is one; else git makes it."""
        try:
            if self.data:
                with open(self.index, "rb") as old, open(path, "wb") as new:
                    new.write(old.read())
                # git takes the time of the index for the time its entries were looked at.
                at = os.stat(self.index)
                os.utime(path, ns=(at.st_atime_ns, at.st_mtime_ns))
        except FileNotFoundError:  # another snapshot was published meanwhile
            self.data = {}
        except OSError as error:
            raise SnapshotError(f"cannot write {self.folder}: {error.strerror}") from None

    def publish(self, index: str, data: dict[str, Any]) -> None:
        """Make `index` and `data` the pair of this work tree."""
        old = self.index
        data |= {"format": FORMAT, "index": os.path.basename(index), "stat": _identity(index)}
        try:
            write_exactly(self.file, data)
        except OSError as error:
            raise SnapshotError(f"cannot write {self.file}: {error.strerror}") from None
        self.data = data
        if old != index:
            remove(old)
            self._sweep()

    def forget(self) -> None:
        """Drop the pair: the next snapshot looks at everything anew."""
        remove(self.index)
        remove(self.file)
        self.data = {}

    def _sweep(self) -> None:
        """Remove what killed snapshots left behind."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if path not in (self.file, self.index) and time.time() - _mtime(path) > 600:
                remove(path)


def remove(path: str) -> None:
    """Remove a file that may be gone."""
    try:
        os.unlink(path)
    except OSError:
        pass


def fingerprint(stat: os.stat_result) -> list[int]:
    """Return what changes when a file does: exact times, size and inode."""
    return [stat.st_ctime_ns, stat.st_mtime_ns, stat.st_size, stat.st_ino]


def look(path: str) -> list[int]:
    """Fingerprint a file; empty if it is gone, and if it changed too lately to be trusted."""
    now = time.time_ns()
    try:
        found = fingerprint(os.lstat(path))
    except OSError:
        return []
    return found if found[0] < now - TICK_NS else []


def suspects_in(
    top: str, unsettled: dict[str, list[int]]
) -> tuple[list[str], dict[str, list[int]]]:
    """Name the files whose edit git could miss, for it compares whole seconds.

    Returns them, and those to ask for again: within two seconds a file is not settled.
    """
    suspects, kept = [], {}
    settled = time.time_ns() - 2_000_000_000
    for path, was in unsettled.items():
        if not was or look(os.path.join(top, path)) != was:
            suspects.append(path)
        elif was[0] > settled:
            kept[path] = was
    return suspects, kept


def _identity(path: str) -> list[int]:
    try:
        stat = os.stat(path)
    except OSError:
        return [0]
    return [stat.st_ino, stat.st_mtime_ns, stat.st_size]


def _mtime(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return time.time()
