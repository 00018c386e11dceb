"""Small text files, read without the layers of `open`: a launch reads some fifty of them."""

from __future__ import annotations

import os
from errno import EFBIG, EINVAL
from stat import S_ISREG

_PIECE = 1 << 16
IN_TREE = ".relaunch"
"""The folder of ours in a project that is not a git repository."""


def read_text(path: str, errors: str = "surrogateescape") -> str:
    """Return a whole file. OSError if it cannot be read; ValueError with `strict` errors."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return read_open(fd).decode("utf-8", errors)
    finally:
        os.close(fd)


def read_open(fd: int, *, most: int = 0) -> bytes:
    """Return the rest of an open file; an OSError where that is more than `most` bytes."""
    data = b""
    while piece := os.read(fd, _PIECE):
        data += piece
        if 0 < most < len(data):
            raise OSError(EFBIG, os.strerror(EFBIG))
    return data


def read_start(path: str) -> str:
    """Return what a file begins with, whoever made it: a pipe or a device holds nobody up."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not S_ISREG(os.fstat(fd).st_mode):
            raise OSError(EINVAL, "not a regular file", path)
        return os.read(fd, _PIECE).decode("utf-8", "surrogateescape")
    finally:
        os.close(fd)


def read_if_there(path: str) -> str:
    """Return a whole file; nothing where there is none or it cannot be read."""
    try:
        return read_text(path)
    except OSError:
        return ""


def make_own_folder(path: str) -> None:
    """Make a folder of ours, for its owner alone; in a project, git is to leave it alone.

    The project may become a repository one day, and then nothing of it may be staged.
    """
    os.makedirs(path, mode=0o700, exist_ok=True)
    if os.path.basename(path) != IN_TREE:
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(os.path.join(path, ".gitignore"), flags, 0o600)
    except OSError:
        return  # nothing can be written
    try:
        if not os.fstat(fd).st_size:  # new, or emptied by a power cut
            os.write(fd, b"*\n")
        if os.stat(path).st_mode & 0o077:  # made by hand
            os.chmod(path, 0o700)
    except OSError:
        pass  # then it is as readable as the person made it
    finally:
        os.close(fd)
