"""Small text files, read without the layers of `open`: a launch reads some fifty of them."""

from __future__ import annotations

import os

_PIECE = 1 << 16


def read_text(path: str, errors: str = "surrogateescape") -> str:
    """Return a whole file. OSError if it cannot be read; ValueError with `strict` errors."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = b""
        while piece := os.read(fd, _PIECE):
            data += piece
    finally:
        os.close(fd)
    return data.decode("utf-8", errors)


def read_if_there(path: str) -> str:
    """Return a whole file; nothing where there is none or it cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return ""
