"""Stores a few edited files of a work tree: blobs, folders and index without a process.

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
)
from relaunch.journal.snapshot.loose import FOLDER, NotLoose, Objects
from relaunch.journal.snapshot.state import remove
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
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
    objects: Objects,
    tree: str,
    indexes: tuple[str, str],
    top: str,
    paths: Sequence[str],
    *,
    looked_ns: int,
) -> Stored | None:
    """Store edited files, of which `tree` and an index have older versions; None: git has to.

    The second index, which may be the same, then has the files as they are, and is as old as the
    last look at all of them.
    """
    if len(tree) != 2 * OID_BYTES or len(paths) > _MOST_FILES:
        return None
    try:
        with open(indexes[0], "rb") as file:
            data = file.read()
        magic, version, _ = HEADER.unpack_from(data)
        if magic != b"DIRC" or version != 2:
            return None
        edits: dict[bytes, tuple[int, str]] = {}
        olds: dict[str, str] = {}
        patched = bytearray(data[:-OID_BYTES])
        for path in paths:
            name = os.fsencode(path)
            info, content = _read(os.path.join(top, path))
            oid = objects.write(b"blob", content)
            mode = REGULAR | (0o755 if info.st_mode & 0o100 else 0o644)
            edits[name] = (mode, oid)
            old_mode, old = _patch(patched, _place(data, name), info, mode, oid)
            if (old_mode, old) != (mode, oid):
                olds[path] = old
        folders: dict[bytes, str] = {}
        new = _folder(objects, tree, edits, b"", folders)
        left = len(folders)
        for folder, at in _cached_trees(data):
            if folder == b"" and data[at : at + OID_BYTES].hex() != tree:
                return None
            if folder in folders:
                patched[at : at + OID_BYTES] = bytes.fromhex(folders[folder])
                left -= 1
                if not left:
                    break
        _replace(indexes[1], patched, looked_ns)
        return Stored(tree=new, olds=olds)
    except (OSError, NotPlain, NotLoose, KeyError, ValueError, IndexError):
        return None


def _place(data: bytes, name: bytes) -> int:
    """Find a file in the bytes of an index; NotPlain where it has none, or an unusual one.

    Its name stands after sixteen bits of flags and length: no two letters of a longer path look
    like those of a plain entry.
    """
    at = data.find(name + b"\0", HEADER.size)
    while at >= 0:
        flags = data[at - 2] << 8 | data[at - 1]
        start = at - 2 - _FLAGS_AT
        if (
            flags == min(len(name), 0xFFF)
            and start >= HEADER.size
            and not (start - HEADER.size) % 8
        ):
            return start
        at = data.find(name + b"\0", at + 1)
    raise NotPlain


def _cached_trees(data: bytes) -> Iterator[tuple[bytes, int]]:
    """Give folder, and the place of its tree, as far as the index remembers which tree it is."""
    at = end = 0
    last = len(data) - OID_BYTES
    while not end:
        at = data.find(b"TREE", at + 1)
        if at < 0:
            return
        end = _chained(data, at, last)
    yield from _cached(data, at + 8, b"")


def _chained(data: bytes, at: int, last: int) -> int:
    """Return the end of the extension at a place; 0 if none is there, up to the checksum."""
    first = after = at + 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    while after < last and data[after : after + 1].isupper():
        after += 8 + int.from_bytes(data[after + 4 : after + 8], "big")
    return first if after == last else 0


def _cached(data: bytes, at: int, above: bytes) -> Iterator[tuple[bytes, int]]:
    """Read the remembered folders one by one: name, count of files, of folders, tree."""
    todo = [(above, 1)]
    while todo:
        above, left = todo.pop()
        if not left:
            continue
        todo.append((above, left - 1))
        name, _, rest = data[at : at + 4200].partition(b"\0")
        counts, _, _ = rest.partition(b"\n")
        files, folders = (int(word) for word in counts.split(b" "))
        path = above + name
        at += len(name) + len(counts) + 2
        if files >= 0:
            yield path, at
            at += OID_BYTES
        todo.append((path + b"/" if path else b"", folders))


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


def _folder(
    objects: Objects,
    tree: str,
    edits: dict[bytes, tuple[int, str]],
    path: bytes,
    done: dict[bytes, str],
) -> str:
    """Store a folder in which files below it are edited, and note all folders so stored."""
    below: dict[bytes, dict[bytes, tuple[int, str]]] = {}
    for name, edit in edits.items():
        first, _, rest = name.partition(b"/")
        below.setdefault(first, {})[rest] = edit
    lines = []
    for mode, name, oid in objects.entries(tree):
        inner = below.pop(name, None)
        if inner is None:
            lines.append((mode, name, oid))
        elif mode == FOLDER:
            deeper = path + b"/" + name if path else name
            lines.append((mode, name, _folder(objects, oid, inner, deeper, done)))
        else:
            lines.append((inner[b""][0], name, inner[b""][1]))
    if below:
        raise NotPlain
    done[path] = objects.write_tree(lines)
    return done[path]


def _replace(index: str, content: bytearray, looked_ns: int) -> None:
    """Write the index anew, with its checksum.

    Git trusts no file that changed since the time of its index, and reads those once more.
    """
    draft = index + ".lock"
    content += sha1(content).digest()
    try:
        with open(draft, "wb", buffering=0) as file:
            if file.write(content) != len(content):
                raise OSError("written in part")
        os.utime(draft, ns=(looked_ns, looked_ns))
        os.replace(draft, index)
    except OSError:
        remove(draft)  # git would take it for its own lock
        raise
