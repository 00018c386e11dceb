"""Files that the program wrote or removed: what they are at a snapshot, and how they come back."""

from __future__ import annotations

import os
import posix
import stat
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import Ledger

FILE_BYTES = 16 << 20
ALL_BYTES = 64 << 20
"""How much of what the program wrote is kept in a snapshot."""
_TICK_NS = 50_000_000
"""Two writes closer than this may leave a file with the same time."""


class Kept:
    """A path that the program wrote or removed, as it is at the snapshot."""

    def __init__(self, path: str, base: int, timed: bool) -> None:
        self.path = path
        self.base = base
        self.timed = timed
        self.kind = "absent"
        self.data = b""
        self.mode = 0
        self.stat: os.stat_result | None = None
        self.settled = False
        """True when a later write would show in its time."""
        try:
            self.stat = posix.lstat(path)
        except OSError:
            return
        self.mode = self.stat.st_mode
        self.settled = time.time_ns() - self.stat.st_mtime_ns > _TICK_NS
        if stat.S_ISDIR(self.mode):
            self.kind = "dir"
        elif stat.S_ISLNK(self.mode):
            self.kind, self.data = "link", os.fsencode(posix.readlink(path))
        elif stat.S_ISREG(self.mode):
            self.kind = "file"
            with open(path, "rb") as file:
                file.seek(max(base, 0))
                self.data = file.read(FILE_BYTES + 1)

    def age(self) -> int:
        """Return when it was written."""
        return self.stat.st_mtime_ns if self.stat else 0

    def still(self) -> bool:
        """Tell whether nothing was written since."""
        try:
            now = posix.lstat(self.path)
        except OSError:
            return self.kind == "absent"
        return self.stat is not None and _mark(now) == _mark(self.stat)

    def try_put_back(self) -> None:
        """OSError if `put_back` could not write a file; changes nothing."""
        if self.kind != "file" or self._is_as_it_was():
            return
        if os.path.exists(self.path):  # no pipe that a person made there may keep us waiting
            os.close(os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    def _is_as_it_was(self) -> bool:
        return self.still() and self.settled and self.base < 0

    def put_back(self) -> None:
        """Make the path what it was."""
        if self._is_as_it_was():
            if self.kind == "file" and not self.timed:
                os.utime(self.path)  # a cold run would have written it now
            return
        if self.kind == "absent":
            _remove(self.path)
        elif self.kind == "dir":
            os.makedirs(self.path, exist_ok=True)
            os.chmod(self.path, stat.S_IMODE(self.mode))
        elif self.kind == "link":
            _remove(self.path)
            os.symlink(os.fsdecode(self.data), self.path)
        else:
            self._write()

    def _write(self) -> None:
        appends = self.base >= 0
        how = os.O_APPEND if appends else os.O_TRUNC
        if not appends and os.path.islink(self.path):
            _remove(self.path)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, stat.S_IMODE(self.mode))
        with open(fd, "wb") as file:
            file.write(self.data)
            if not appends:
                os.fchmod(fd, stat.S_IMODE(self.mode))
        if self.timed and self.stat:
            os.utime(self.path, ns=(self.stat.st_atime_ns, self.stat.st_mtime_ns))


def keep(ledger: Ledger, path: str, base: int) -> Kept:
    """Keep a path, or what was kept of it for an earlier snapshot."""
    old: Kept | None = ledger.kept.get(path)
    if old is not None and old.settled and old.base == base and old.still():
        return old
    new = ledger.kept[path] = Kept(path, base, path in ledger.timed)
    return new


def _mark(now: os.stat_result) -> tuple[int, ...]:
    return now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, now.st_mode


def _remove(path: str) -> None:
    try:
        if stat.S_ISDIR(posix.lstat(path).st_mode):
            import shutil

            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass
