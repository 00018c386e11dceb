"""Git's index of a checkout, read and written here: each file, and how it looked when it was put.

A file's time is made from its content: Python trusts bytecode by time and size of the source, and
so never takes it for that of another version.
"""

from __future__ import annotations

import os
from hashlib import sha1, sha256
from stat import S_ISLNK
from struct import Struct, error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ATTRIBUTES = b".gitattributes"
_HEADER = Struct(">4sII")
_STAT = Struct(">10I")
_SUBMODULE = 0o160000
_LOW = 0xFFFFFFFF
_S = 1_000_000_000
_EARLIEST_S = 320_000_000
"""A day in 1980: zip files know no time before that year, and time zones differ."""


class Entry:
    """A file as the index has it; `seen` is what of its stat changes when anybody touches it."""

    __slots__ = ("at", "mode", "oid", "seen")

    def __init__(self, at: int, mode: int, oid: bytes, seen: tuple[int, int, int, int]) -> None:
        """Take the place in the index, mode, object, and (ctime, mtime, inode, size)."""
        self.at = at
        self.mode = mode
        self.oid = oid
        self.seen = seen

    @property
    def is_stamped(self) -> bool:
        """Tell whether its time is the one of its content: then git did not write it just now."""
        return self.seen[1] == time_of(self.oid)

    def matches(self, found: os.stat_result) -> bool:
        """Tell whether a file is still the one that was put there, permissions included."""
        return seen_of(found) == self.seen and (
            found.st_mode & 0o700 == 0o600 | self.mode & 0o100 or S_ISLNK(self.mode)
        )


class Index:
    """The files, submodules and folders that a tree is to have; what is sparse is left out."""

    def __init__(self, data: bytes, *, sha256: bool) -> None:
        """Read the bytes of an index; ValueError if we do not know its form."""
        self.data = data
        self.files: dict[bytes, Entry] = {}
        self.submodules: dict[bytes, str] = {}
        self.folders: set[bytes] = set()
        self.attributes: dict[bytes, bytes] = {}
        self._oid_bytes = 32 if sha256 else 20
        if data:
            try:
                self._read()
            except (error, IndexError) as fault:
                raise ValueError(f"not an index: {fault}") from None

    def _read(self) -> None:
        data = self.data
        magic, version, count = _HEADER.unpack_from(data)
        if (
            magic != b"DIRC"
            or version not in (2, 3)
            or self._checksum(data) != data[-self._oid_bytes :]
        ):
            raise ValueError(f"not an index of version 2 or 3: {magic!r} {version}")
        at, head = _HEADER.size, _STAT.size + self._oid_bytes
        for _ in range(count):
            name_at = at + head + 2
            sparse = 0
            if data[at + head] & 0x40:  # two bytes of flags more
                sparse = data[name_at] & 0x40
                name_at += 2
            end = data.index(b"\0", name_at)
            path, oid = data[name_at:end], data[at + _STAT.size : at + head]
            if path.endswith(_ATTRIBUTES):
                self.attributes[path] = oid
            if not sparse:
                c_s, c_ns, m_s, m_ns, _, inode, mode, _, _, size = _STAT.unpack_from(data, at)
                seen = (c_s * _S + c_ns, m_s * _S + m_ns, inode, size)
                if mode == _SUBMODULE:
                    self.submodules[path] = oid.hex()
                else:
                    self.files[path] = Entry(at, mode, oid, seen)
                self._add_folders(path.rpartition(b"/")[0])
            at += (end - at + 8) & ~7

    def _add_folders(self, folder: bytes) -> None:
        while folder and folder not in self.folders:
            self.folders.add(folder)
            folder = folder.rpartition(b"/")[0]

    def stamp(self, top: bytes, paths: Iterable[bytes]) -> None:
        """Give files the time of their content, on the disk and here: git sees no change."""
        data = bytearray(self.data)
        for path in paths:
            entry, file = self.files[path], top + b"/" + path
            when = time_of(entry.oid)
            os.utime(file, ns=(when, when), follow_symlinks=False)
            found = os.lstat(file)
            entry.seen = seen_of(found)
            _STAT.pack_into(
                data, entry.at,
                found.st_ctime_ns // _S & _LOW, found.st_ctime_ns % _S, when // _S, 0,
                found.st_dev & _LOW, found.st_ino & _LOW, entry.mode,
                found.st_uid & _LOW, found.st_gid & _LOW, found.st_size & _LOW,
            )  # fmt: skip
        self.data = bytes(data[: -self._oid_bytes]) + self._checksum(data)

    def _checksum(self, data: bytes | bytearray) -> bytes:
        body = memoryview(data)[: -self._oid_bytes]
        return (sha256 if self._oid_bytes == 32 else sha1)(body).digest()


def time_of(oid: bytes) -> int:
    """Return the time, in nanoseconds, that stands for a content."""
    return (_EARLIEST_S + (int.from_bytes(oid[:4], "big") & 0x3FFFFFFF)) * _S


def time_of_content(data: bytes) -> int:
    """Return the time that a file of git with this content would have."""
    return time_of(sha1(b"blob %d\0%s" % (len(data), data)).digest())


def seen_of(found: os.stat_result) -> tuple[int, int, int, int]:
    """Return what changes when anybody touches a file, as wide as an index holds it."""
    return found.st_ctime_ns, found.st_mtime_ns, found.st_ino & _LOW, found.st_size & _LOW


def written_otherwise(old: Index, new: Index) -> list[bytes]:
    """Name files that are the same blob as before, but whose attributes may have changed.

    Git does not write these anew: line ends would stay those of the last commit.
    """
    changed = dict(old.attributes.items() ^ new.attributes.items())
    under = tuple(path.removesuffix(_ATTRIBUTES) for path in changed)
    return [
        path
        for path, entry in new.files.items()
        if path.startswith(under) and entry.is_stamped and not S_ISLNK(entry.mode)
    ]
