"""Stores a few edited files of a small work tree: blobs, folders and index without a process.

Only what is plain is done here: regular files at paths that the index has, in an index as git
writes it by default. All else is left to git, with nothing changed.
"""

from __future__ import annotations

import os
import stat

from relaunch.journal.snapshot.indexfile import (
    ENTRY,
    HEADER,
    OID_BYTES,
    REGULAR,
    NotPlain,
    entries,
)
from relaunch.journal.snapshot.loose import FOLDER, NotLoose, Objects
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from hashlib import sha1
else:
    from _sha1 import sha1  # hashlib costs four milliseconds

_MOST_FILES, _MOST_BYTES = 20, 1 << 18
_SECOND = 1_000_000_000
_FLAGS_AT = ENTRY.size + OID_BYTES


class Stored(Record):
    """What became of edited files."""

    tree: str
    """All files, as they are now."""
    olds: dict[str, str]
    """The blobs that edited files had before; a file that only looked touched is not here."""


def store_edits(
    objects: Objects, tree: str, index: str, top: str, paths: Sequence[str]
) -> Stored | None:
    """Store edited files, of which `tree` and `index` have older versions; None: git has to.

    The index then has the files as they are.
    """
    if len(tree) != 2 * OID_BYTES or len(paths) > _MOST_FILES:
        return None
    try:
        with open(index, "rb") as file:
            data = file.read()
        places, end = _places(data)
        edits: dict[bytes, tuple[int, str]] = {}
        olds: dict[str, str] = {}
        patched = bytearray(data[:end])
        for path in paths:
            name = os.fsencode(path)
            info, content = _read(os.path.join(top, path))
            oid = objects.write(b"blob", content)
            mode = REGULAR | (0o755 if info.st_mode & 0o100 else 0o644)
            edits[name] = (mode, oid)
            old_mode, old = _patch(patched, places[name], info, mode, oid)
            if (old_mode, old) != (mode, oid):
                olds[path] = old
        new = _folder(objects, tree, edits)
        _replace(index, bytes(patched))
        return Stored(tree=new, olds=olds)
    except (OSError, NotPlain, NotLoose, KeyError, ValueError, IndexError):
        return None


def _places(data: bytes) -> tuple[dict[bytes, int], int]:
    """Find each file of the index, and where the files end; what git must not lose is not plain."""
    places, end = {}, HEADER.size
    for at, name, after in entries(data):
        places[name] = at
        end = after
    at = end
    while at < len(data) - OID_BYTES:  # extensions: one with a capital may be left out
        if not data[at : at + 1].isupper():
            raise NotPlain
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    return places, end


def _read(path: str) -> tuple[os.stat_result, bytes]:
    """Read a regular file that stays as it is meanwhile."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _MOST_BYTES:
            raise NotPlain
        content = os.read(fd, _MOST_BYTES + 1)
        after = os.fstat(fd)
    finally:
        os.close(fd)
    same = (after.st_mtime_ns, after.st_ctime_ns) == (info.st_mtime_ns, info.st_ctime_ns)
    if len(content) != info.st_size or not same:
        raise NotPlain
    return info, content


def _patch(index: bytearray, at: int, info: os.stat_result, mode: int, oid: str) -> tuple[int, str]:
    """Put a file's times and content into the index; returns the mode and blob it had there."""
    old_mode = ENTRY.unpack_from(index, at)[6]
    if old_mode & 0o170000 != REGULAR:
        raise NotPlain
    numbers = (
        info.st_ctime_ns // _SECOND,
        info.st_ctime_ns % _SECOND,
        info.st_mtime_ns // _SECOND,
        info.st_mtime_ns % _SECOND,
        info.st_dev,
        info.st_ino,
        mode,
        info.st_uid,
        info.st_gid,
        info.st_size,
    )
    ENTRY.pack_into(index, at, *(number & 0xFFFFFFFF for number in numbers))
    old = index[at + ENTRY.size : at + _FLAGS_AT].hex()
    index[at + ENTRY.size : at + _FLAGS_AT] = bytes.fromhex(oid)
    return old_mode, old


def _folder(objects: Objects, tree: str, edits: dict[bytes, tuple[int, str]]) -> str:
    """Store a folder in which files below it are edited."""
    below: dict[bytes, dict[bytes, tuple[int, str]]] = {}
    for path, edit in edits.items():
        first, _, rest = path.partition(b"/")
        below.setdefault(first, {})[rest] = edit
    lines = []
    for mode, name, oid in objects.entries(tree):
        inner = below.pop(name, None)
        if inner is None:
            lines.append((mode, name, oid))
        elif mode == FOLDER:
            lines.append((mode, name, _folder(objects, oid, inner)))
        else:
            lines.append((inner[b""][0], name, inner[b""][1]))
    if below:
        raise NotPlain
    return objects.write_tree(lines)


def _replace(index: str, content: bytes) -> None:
    """Write the index anew, with its checksum.

    It keeps its time: git then trusts no file that changed since, and reads those once more.
    """
    at = os.stat(index)
    draft = index + ".lock"
    with open(draft, "wb") as file:
        file.write(content + sha1(content).digest())
    os.utime(draft, ns=(at.st_atime_ns, at.st_mtime_ns))
    os.replace(draft, index)
