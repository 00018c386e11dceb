"""Replaces a file of the user's: whole or not at all, with the mode and the owner that it had."""

from __future__ import annotations

import os


def replace_file(path: str, data: bytes, mode: int) -> None:
    """Write beside it and rename, so that no reader sees half a file."""
    temporary = f"{path}.rl-{os.getpid()}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
            _same_owner(path, file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _same_owner(path: str, fd: int) -> None:
    try:
        info = os.stat(path)
        if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, info.st_uid, info.st_gid)
    except OSError:
        pass  # a new file, or not ours to give away
