"""Tells which files other programs may have written to without any stamp: through a map (mmap).

The kernel stamps the first write to a page, and then none until the page is on the disk. Where
files are only in memory (tmpfs), it need not stamp any.
"""

from __future__ import annotations

import os
import re
import struct

from relaunch.trial.place.disk.kernel_folders import magic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_IN_MEMORY = {0x01021994, 0x858458F6}
"""tmpfs and ramfs."""
_CLOSE_WRITE, _OVERFLOW = 0x8, 0x4000
_TO_WRITE = re.compile(rb" .w.s ")
_EVENT = struct.Struct("iIII")


class Mapped:
    """The files in one folder that others have mapped, or have written to and closed in memory."""

    def __init__(self, folder: int, mapped: Collection[tuple[str, int]]) -> None:
        """Those of all that are `mapped`, and from now on."""
        self._folder = f"/proc/self/fd/{folder}"
        self._device = os.stat(folder).st_dev
        number = f"{os.major(self._device):02x}:{os.minor(self._device):02x}"
        self._found = {file for device, file in mapped if device == number}
        self._places: dict[int, str] = {}
        self._closed = -1
        self._is_any = False
        """Some were not heard of: it may be each."""
        if magic(folder) in _IN_MEMORY:
            self._watch()

    def may_be(self, file: int) -> bool:
        """Tell whether a file, by its inode, is one of them."""
        self.hear()
        return self._is_any or file in self._found

    def hear(self) -> None:
        """Take what was said, before it is too much."""
        while self._closed >= 0:
            try:
                said = os.read(self._closed, 1 << 16)
            except BlockingIOError:
                return
            at = 0
            while at < len(said):
                place, what, _, length = _EVENT.unpack_from(said, at)
                at += _EVENT.size + length
                name = said[at - length : at].rstrip(b"\0")
                self._is_any = self._is_any or bool(what & _OVERFLOW)
                try:
                    about = os.lstat(os.path.join(self._places[place], os.fsdecode(name)))
                except (KeyError, OSError):  # it was deleted or moved since, which leaves a stamp
                    continue
                self._found.add(about.st_ino)

    def _watch(self) -> None:
        import ctypes

        libc = ctypes.CDLL(None)
        self._closed = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in self._folders():
            place = libc.inotify_add_watch(self._closed, os.fsencode(folder), _CLOSE_WRITE)
            self._places[place] = folder
        self._is_any = -1 in self._places

    def _folders(self) -> Iterator[str]:
        waiting = [f"{self._folder}/."]
        while waiting:
            folder = waiting.pop()
            yield folder
            try:
                with os.scandir(folder) as entries:
                    inner = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
                waiting += [one for one in inner if os.lstat(one).st_dev == self._device]
            except OSError:  # it has gone, or we may not enter it
                continue


def mapped_now() -> set[tuple[str, int]]:
    """List the files that are mapped to be written to, by file system and inode.

    A process in a user namespace of its own sees only what is in there.
    """
    found = set()
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/maps", "rb") as file:
                lines = [line.split() for line in file if _TO_WRITE.search(line)]
        except OSError:  # it is gone, or another user's
            continue
        found |= {(line[3].decode(), int(line[4])) for line in lines}
    return found
