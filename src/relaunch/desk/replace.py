"""Replaces a file of the user's: whole or not at all, with the mode and the owner that it had."""

from __future__ import annotations

import os
import stat
import time

from relaunch.journal.store import process_started

_OLD_S = 600
"""A draft of another host or container may belong to a live process: only an old one is swept."""


def replace_file(path: str, data: bytes, mode: int) -> None:
    """Write beside it and rename, so that no reader sees half a file."""
    _sweep(path)
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


def _sweep(path: str) -> None:
    """Remove the drafts of this file that killed ones left beside it."""
    folder, start = os.path.split(f"{path}.rl-")
    try:
        drafts = [entry for entry in os.scandir(folder or ".") if entry.name.startswith(start)]
    except OSError:
        return
    for draft in drafts:
        pid = draft.name[len(start) :]
        if not pid.isdecimal() or process_started(int(pid)):
            continue
        try:
            info = draft.stat(follow_symlinks=False)
            is_ours = stat.S_ISREG(info.st_mode) and info.st_uid == os.geteuid()
            if is_ours and time.time() - info.st_mtime > _OLD_S:
                os.unlink(draft.path)
        except OSError:
            continue


def _same_owner(path: str, fd: int) -> None:
    try:
        info = os.stat(path)
        if (info.st_uid, info.st_gid) != (os.geteuid(), os.getegid()):
            os.fchown(fd, info.st_uid, info.st_gid)
    except OSError:
        pass  # a new file, or not ours to give away
