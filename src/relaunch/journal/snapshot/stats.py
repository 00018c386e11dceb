"""Compares files with what an index remembers of them, in small work trees, without a process."""

from __future__ import annotations

import os
from _struct import Struct  # `struct` only re-exports it

_MOST = 1500
"""Above this git itself is quicker."""
_HEADER = Struct(">4sII")
_ENTRY = Struct(">10I")
_REGULAR, _LINK = 0o100000, 0o120000
_SECOND = 1_000_000_000


def stat_dirty(index: str, top: str, *, oid_bytes: int = 20) -> list[str] | None:
    """Name the files that do not look as the index remembers; None when only git can tell.

    That is so where a file differs only within a second, which git does not see by itself. One that
    looks the same to the nanosecond is the same, but for edits in the very tick of the clock in
    which it was last looked at: those the caller sees to.
    """
    try:
        with open(index, "rb") as file:
            data = file.read()
        magic, version, count = _HEADER.unpack_from(data)
        if magic != b"DIRC" or version != 2 or count > _MOST:
            return None
        return _compare(data, count, top, 40 + oid_bytes)
    except (OSError, ValueError, IndexError):
        return None


def _compare(data: bytes, count: int, top: str, flags_at: int) -> list[str] | None:
    dirty = []
    at = _HEADER.size
    for _ in range(count):
        fields = _ENTRY.unpack_from(data, at)
        name_at = at + flags_at + 2
        end = data.index(b"\0", name_at)
        mode, stage = fields[6], data[at + flags_at] & 0x70
        if stage or mode & 0o170000 not in (_REGULAR, _LINK):
            return None
        path = os.fsdecode(data[name_at:end])
        visible, subtle = _differs(os.path.join(top, path), fields)
        if subtle and not visible:
            return None
        if visible:
            dirty.append(path)
        at += (end - at + 8) & ~7
    return dirty


def _differs(path: str, fields: tuple[int, ...]) -> tuple[bool, bool]:
    """Tell whether git sees that a file differs, and whether it does within the second only."""
    ctime_s, ctime_ns, mtime_s, mtime_ns, _, inode, mode, _, _, size = fields
    try:
        info = os.lstat(path)
    except OSError:
        return True, False
    executable = mode & _LINK != _LINK and bool(info.st_mode & 0o100) != bool(mode & 0o100)
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
