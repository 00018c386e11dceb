"""Pointers of git-lfs: small files that stand for large ones, filled from what the user has."""

from __future__ import annotations

import os

from relaunch.record import Record

_BEGIN = b"version https://git-lfs.github.com/spec/v1"
_LEAST, _MOST = len(_BEGIN), 1024
"""By the specification a pointer is smaller than this."""


class Pointer(Record):
    """The large file that is meant."""

    sha256: str
    size: int


def read_pointer(data: bytes) -> Pointer | None:
    """Return what a pointer says; None if it is none."""
    if not data.startswith(_BEGIN) or len(data) >= _MOST:
        return None
    said = dict(line.partition(b" ")[::2] for line in data.splitlines())
    kind, _, digest = said.get(b"oid", b"").partition(b":")
    size = said.get(b"size", b"")
    hexadecimal = len(digest) == 64 and not digest.strip(b"0123456789abcdef")
    if kind != b"sha256" or not hexadecimal or not size.isdigit():
        return None
    return Pointer(sha256=digest.decode(), size=int(size))


def pointer_in(file: bytes, size: int) -> Pointer | None:
    """Return what the pointer in a file of this size says; None if it is none."""
    if not _LEAST < size < _MOST:
        return None
    with open(file, "rb", buffering=0) as opened:
        return read_pointer(opened.read(_MOST))


def fill(file: bytes, pointer: Pointer, store: str) -> bool:
    """Put the large file where its pointer is; False if the user does not have it.

    A copy: a program that writes into it must not reach the user's own.
    """
    digest = pointer.sha256
    kept = os.path.join(store, digest[:2], digest[2:4], digest)
    try:
        if os.stat(kept).st_size != pointer.size:
            return False
    except OSError:
        return False
    from shutil import copyfile

    copyfile(kept, file)
    return True
