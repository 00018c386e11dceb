"""Waits until all of a file system is on its disk: for many files, whoever wrote them."""

from __future__ import annotations

import os


def sync_file_system(path: str) -> bool:
    """Sync the file system that a file is on; False where that cannot be."""
    import ctypes

    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None:
        return False
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return bool(syncfs(fd) == 0)
    finally:
        os.close(fd)
