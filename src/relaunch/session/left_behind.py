"""What a run left in the files that it wrote, in words that are equal where the files are."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_BYTES = 1 << 30
"""Larger files are compared by their size."""
_BLOCK = 1 << 20


def in_files(paths: Iterable[str]) -> dict[str, str]:
    """Describe each: what it is, how long, and of which content."""
    return {path: _describe(path) for path in paths}


def _describe(path: str) -> str:
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return f"a link of {os.readlink(path)}"
        if stat.S_ISDIR(found.st_mode):
            return "a folder"
        if not stat.S_ISREG(found.st_mode):
            return "no plain file"
        return f"{found.st_size:,} bytes of {_digest(path, found.st_size)}"
    except FileNotFoundError:
        return "nothing"
    except OSError as error:
        return f"unreadable ({error.strerror})"


def _digest(path: str, size: int) -> str:
    if size > _MOST_BYTES:
        return "any content"
    from _blake2 import blake2b

    digest = blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
