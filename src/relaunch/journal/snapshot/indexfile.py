"""The bytes of a git index, as far as they are plain: which files it has, and where in it."""

from __future__ import annotations

from _struct import Struct  # `struct` only re-exports it

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OID_BYTES = 20
HEADER = Struct(">4sII")
ENTRY = Struct(">10I")
"""Both times in seconds and nanoseconds, device, inode, mode, owner, group, size."""
REGULAR, LINK = 0o100000, 0o120000
_LARGEST = 1500
"""An index of more files is quicker left to git."""


class NotPlain(Exception):
    """This is left to git."""


def entries(data: bytes, oid_bytes: int = OID_BYTES) -> Iterator[tuple[int, bytes, int]]:
    """Give place, path and end of each file in the bytes of an index; NotPlain unless all are."""
    magic, version, count = HEADER.unpack_from(data)
    if magic != b"DIRC" or version != 2 or count > _LARGEST:
        raise NotPlain
    flags_at = ENTRY.size + oid_bytes
    at = HEADER.size
    for _ in range(count):
        end = data.index(b"\0", at + flags_at + 2)
        if data[at + flags_at] & 0x70:  # a merge under way, or more flags than we know
            raise NotPlain
        after = at + ((end - at + 8) & ~7)
        yield at, data[at + flags_at + 2 : end], after
        at = after
