"""Git's loose objects, read and written here: a small edit then costs no process."""

from __future__ import annotations

import os
import time

from relaunch.journal import to_disk
from relaunch.journal.snapshot.indexfile import OID_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from hashlib import sha1
    from zlib import error as ZlibError
else:
    from _sha1 import sha1  # hashlib costs four milliseconds
    from zlib import error as ZlibError

FOLDER = 0o40000
_MOST = 1 << 20
"""Larger objects are git's."""


class NotLoose(Exception):
    """An object lies in a pack, is too large, or cannot be read: git has to be asked."""


class Objects:
    """The loose objects of our repository, and of those that it borrows from."""

    def __init__(self, own: str, borrowed: Sequence[str] = ()) -> None:
        """Write into the folder `own`, read from all."""
        self._own = own
        self._all = (own, *borrowed)
        self.written: list[str] = []
        """The files that were written, and may not be on the disk yet."""

    def read(self, oid: str) -> bytes:
        """Return the content of an object of SHA-1; NotLoose where git has to do it."""
        for folder in self._all:
            try:
                with open(_path(folder, oid), "rb") as file:
                    return _content(file.read(_MOST + 1))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise NotLoose(str(error)) from None
        raise NotLoose(oid)

    def write(self, kind: bytes, content: bytes) -> str:
        """Store an object as git does, whole or not at all, and return its name."""
        from zlib import compress

        whole = b"%s %d\0%s" % (kind, len(content), content)
        oid = sha1(whole).hexdigest()
        path = _path(self._own, oid)
        if is_whole(path):
            try:
                os.utime(path)  # it is there, and young again: no collection under way takes it
                return oid
            except FileNotFoundError:
                pass
        folder = os.path.dirname(path)
        # This name is git's: what a kill leaves behind, its `prune` removes.
        draft = os.path.join(folder, f"tmp_obj_{os.getpid()}_{time.monotonic_ns():x}")
        try:
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            with open(fd, "wb", buffering=0) as file:
                _write_all(file.fileno(), compress(whole, 1))
                to_disk.hand_over(file.fileno())
            os.rename(draft, path)
        except OSError:
            os.unlink(draft)
            raise
        self.written.append(path)
        return oid

    def entries(self, tree: str) -> Iterator[tuple[int, bytes, str]]:
        """Give mode, name and object of all that lies in one folder, in git's order."""
        content = self.read(tree) if tree else b""
        at = 0
        while at < len(content):
            space, end = content.index(b" ", at), content.index(b"\0", at)
            oid = content[end + 1 : end + 1 + OID_BYTES].hex()
            yield int(content[at:space], 8), content[space + 1 : end], oid
            at = end + 1 + OID_BYTES

    def write_tree(self, entries: Iterable[tuple[int, bytes, str]]) -> str:
        """Store one folder."""
        lines = (b"%o %s\0%s" % (mode, name, bytes.fromhex(oid)) for mode, name, oid in entries)
        return self.write(b"tree", b"".join(lines))


def is_whole(path: str, *, sha256: bool = False) -> bool:
    """Tell whether the file of a loose object is there and holds what its name says."""
    from zlib import decompress

    try:
        with open(path, "rb") as file:
            whole = decompress(file.read())
    except (OSError, ZlibError):
        return False
    if sha256:
        from hashlib import sha256 as digest
    else:
        digest = sha1
    oid = os.path.basename(os.path.dirname(path)) + os.path.basename(path)
    return digest(whole).hexdigest() == oid


def _path(folder: str, oid: str) -> str:
    return os.path.join(folder, oid[:2], oid[2:])


def _content(packed: bytes) -> bytes:
    """Unpack an object and take off its head."""
    from zlib import decompressobj

    if len(packed) > _MOST:
        raise NotLoose("large")
    unpacking = decompressobj()
    try:
        whole = unpacking.decompress(packed, _MOST)
    except ZlibError as error:
        raise NotLoose(str(error)) from None
    head, _, content = whole.partition(b"\0")
    if not unpacking.eof or head.split(b" ")[-1] != b"%d" % len(content):
        raise NotLoose("large, or cut short")
    return content


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
