"""The bytes that are asked between statements, in memory that the host can reach as well."""

from __future__ import annotations

import ctypes
import mmap
import os
from ctypes import memmove, memset

from .aside import higher
from .states import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST = 1 << 20
"""How many sites a program can have."""
_PRIVATE_NAME = "relaunch-flags"


class Flag(ctypes.c_ubyte):
    """The byte of one site; elsewhere, as in another process that gets a function, it is zero."""

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ()


class Flags:
    """One byte for each site; a byte that is not zero makes the program call `stop` there."""

    def __init__(self) -> None:
        """Map memory that can be shared by its file descriptor."""
        self._keep(_memory())
        self._address = _mapped(self.fd)
        self._bytes = (ctypes.c_ubyte * MOST).from_address(self._address)

    def flag(self, number: int) -> Any:
        """Return the object that is true while the byte is set."""
        return Flag.from_address(self._address + number)

    def set(self, first: int, end: int) -> None:
        """Set the bytes of some sites."""
        memset(self._address + first, 1, end - first)

    def put(self, data: bytes) -> None:
        """Set or clear the bytes of the first sites."""
        memmove(self._address, data, len(data))

    def clear(self, number: int) -> None:
        """Ask no more at one site."""
        self._bytes[number] = 0

    def separate(self) -> None:
        """Have memory of our own at the same address: after a fork it is shared with the parent."""
        fd = _memory()
        if _mapped(fd, self._address) != self._address:
            raise OSError(ctypes.get_errno(), "the flags cannot be mapped anew")
        if identity_of(self.fd) == self._identity:  # the program may have its own there by now
            os.close(self.fd)
        self._keep(fd)

    def _keep(self, fd: int) -> None:
        """Keep this file under a high number, as far as the program's own limit allows one."""
        self.fd = higher(fd)
        self._identity = identity_of(self.fd)


def _memory() -> int:
    fd = os.memfd_create(_PRIVATE_NAME, os.MFD_CLOEXEC)
    os.ftruncate(fd, MOST)
    return fd


def _mapped(fd: int, at: int = 0) -> int:
    """Map memory, at this address if one is given; not by `mmap`, which keeps a low number."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    both = mmap.PROT_READ | mmap.PROT_WRITE
    found = libc.mmap(at, MOST, both, mmap.MAP_SHARED | (_FIXED if at else 0), fd, 0)
    if found in (None, _FAILED):
        raise OSError(ctypes.get_errno(), "the flags cannot be mapped")
    return int(found)


_FIXED = 0x10
_FAILED = ctypes.c_void_p(-1).value
