"""Memory that the program shared with processes that have ended: semaphores, arrays, tensors.

It has no name any more, and nobody else has it. So a resumed process gets memory of its own at the
same address, which it can share with new children as it did with the old ones.
"""

from __future__ import annotations

import ctypes
import mmap
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_DELETED = " (deleted)"
_OWN = ("/memfd:relaunch-",)
_STRANGE = ("/SYSV", "/[")
"""Beginnings of names of memory that is more than memory."""
_HARMLESS = "KMP_REGISTERED_LIB"
_MOST = 16 << 20
"""Bytes that are kept."""
_FIXED = 0x10

Identity = tuple[int, int]


class Range:
    """A range of addresses that is mapped for sharing."""

    def __init__(self, line: str) -> None:
        """`line` is what the kernel says of it."""
        place, self.rights, offset, device, inode, *path = line.rstrip("\n").split(None, 5)
        first, end = place.split("-")
        self.first, self.size = int(first, 16), int(end, 16) - int(first, 16)
        self.offset = int(offset, 16)
        major, minor = device.split(":")
        self.identity: Identity = os.makedev(int(major, 16), int(minor, 16)), int(inode)
        self.path = path[0] if path else ""

    @property
    def name(self) -> str:
        """What people may know it by; empty if nothing."""
        name = self.path.removesuffix(_DELETED)
        return "" if name == "/dev/zero" else name

    @property
    def is_nameless(self) -> bool:
        """Tell whether nobody can find it any more who does not have it."""
        return self.path.endswith(_DELETED) and not self.path.startswith(_STRANGE)


def ranges() -> list[Range]:
    """List what is mapped so that other processes would see our writes, and what goes with it."""
    shared = [*_all()]
    written = {one.identity for one in shared if one.rights[1] == "w"}
    return [one for one in shared if one.identity in written]


def _all() -> Iterator[Range]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            if line[line.index(" ") + 4] == "s":
                one = Range(line)
                if not one.path.startswith(_OWN) and _HARMLESS not in one.path:
                    yield one


def why_not() -> str:
    """Say which shared memory cannot be had anew; empty if there is none."""
    total = 0
    for one in ranges():
        total += one.size
        if not one.is_nameless or total > _MOST:
            name = one.name
            return f"a file is mapped for writing: {name}" if name else _SHARED
    return ""


_SHARED = "memory is shared between processes"


class Memory:
    """All shared memory as it is at a snapshot."""

    def __init__(self) -> None:
        self._kept = [(one, _read(one.first, one.size)) for one in ranges()]

    def map_anew(self, files: Mapping[Identity, int]) -> None:
        """Have our own at the same addresses; `files` are open ones that were mapped, made anew."""
        sizes: dict[Identity, int] = {}
        for one, _ in self._kept:
            sizes[one.identity] = max(sizes.get(one.identity, 0), one.offset + one.size)
        for identity, size in sizes.items():
            fd = files.get(identity, -1)
            made = os.memfd_create("shared", os.MFD_CLOEXEC) if fd < 0 else fd
            if fd < 0:
                os.ftruncate(made, size)
            for one, data in self._kept:
                if one.identity == identity:
                    _map(one, made)
                    if one.rights[1] == "w":
                        ctypes.memmove(one.first, data, len(data))
            if fd < 0:
                os.close(made)


def _read(address: int, size: int) -> bytes:
    """Read our own memory in a way that cannot fail with a signal."""
    with open("/proc/self/mem", "rb", buffering=0) as file:
        data = os.pread(file.fileno(), size, address)
        while len(data) < size:
            more = os.pread(file.fileno(), size - len(data), address + len(data))
            if not more:
                raise OSError("shared memory could not be read")
            data += more
    return data


def _map(one: Range, fd: int) -> None:
    libc: Any = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    rights = mmap.PROT_READ | (mmap.PROT_WRITE if one.rights[1] == "w" else 0)
    at = libc.mmap(one.first, one.size, rights, mmap.MAP_SHARED | _FIXED, fd, one.offset)
    if at != one.first:
        raise OSError(ctypes.get_errno(), "shared memory cannot be mapped anew")
