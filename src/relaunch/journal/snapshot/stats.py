"""Compares files with what an index remembers of them, in small work trees, without a process."""

from __future__ import annotations

import os

from relaunch.journal.snapshot.indexfile import ENTRY, LINK, REGULAR, NotPlain, entries

_SECOND = 1_000_000_000


def stat_dirty(index: str, top: str, *, oid_bytes: int = 20) -> list[str] | None:
    """Name the files that do not look as the index remembers; None when only git can tell.

    That is so where a file differs only within a second, which git does not see by itself. One that
    looks the same to the nanosecond is the same, but for edits in the very tick of the clock in
    which it was last looked at: those the caller sees to.
    """
    try:
        with open(index, "rb") as file:
            return _compare(file.read(), top, oid_bytes)
    except (OSError, NotPlain, ValueError, IndexError):
        return None


def _compare(data: bytes, top: str, oid_bytes: int) -> list[str] | None:
    dirty = []
    for at, name, _ in entries(data, oid_bytes):
        fields = ENTRY.unpack_from(data, at)
        if fields[6] & 0o170000 not in (REGULAR, LINK):
            return None
        path = os.fsdecode(name)
        visible, subtle = _differs(os.path.join(top, path), fields)
        if subtle and not visible:
            return None
        if visible:
            dirty.append(path)
    return dirty


def _differs(path: str, fields: tuple[int, ...]) -> tuple[bool, bool]:
    """Tell whether git sees that a file differs, and whether it does within the second only."""
    ctime_s, ctime_ns, mtime_s, mtime_ns, _, inode, mode, _, _, size = fields
    try:
        info = os.lstat(path)
    except OSError:
        return True, False
    executable = mode & LINK != LINK and bool(info.st_mode & 0o100) != bool(mode & 0o100)
    visible = (
        info.st_mtime_ns // _SECOND != mtime_s
        or info.st_ctime_ns // _SECOND != ctime_s
        or info.st_size & 0xFFFFFFFF != size
        or info.st_ino & 0xFFFFFFFF != inode
        or info.st_mode & 0o170000 != mode & 0o170000
        or executable
    )
    subtle = info.st_mtime_ns % _SECOND != mtime_ns or info.st_ctime_ns % _SECOND != ctime_ns
    return visible, subtle
