"""How full the disk under a path is."""

from __future__ import annotations

import os

from relaunch.record import Record


class Disk(Record):
    """A file system as it is seen from a path."""

    path: str
    total: int
    used: int
    free: int
    """What an unprivileged process may still write."""
    inodes: int
    inodes_free: int

    @property
    def percent(self) -> float:
        """How full it is, as df counts."""
        room = self.used + self.free
        return 100 * self.used / room if room else 0.0


def disk(path: str) -> Disk:
    """Look at the disk under a path; OSError when there is no such path."""
    found = os.statvfs(path)
    return Disk(
        path=path,
        total=found.f_blocks * found.f_frsize,
        used=(found.f_blocks - found.f_bfree) * found.f_frsize,
        free=found.f_bavail * found.f_frsize,
        inodes=found.f_files,
        inodes_free=found.f_favail,
    )
