"""Pipes of which nobody but the program has an end: they can be made anew in another process.

Queues and pools leave them behind, empty or not, when their processes have ended.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import posix
import select
import stat
import struct

from .states import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_FIONREAD = 0x541B
_MOST = 1 << 16
"""Bytes in a pipe that are copied."""
_GET_SIZE, _SET_SIZE = 1032, 1031


def is_pipe(fd: int, path: str) -> bool:
    """Tell whether a descriptor is an end of a pipe without a name."""
    return path.startswith("pipe:") and stat.S_ISFIFO(posix.fstat(fd).st_mode)


def grouped(fds: Iterable[int]) -> list[list[int]]:
    """Bring the ends of each pipe together."""
    found: dict[tuple[int, int] | None, list[int]] = {}
    for fd in fds:
        found.setdefault(identity_of(fd), []).append(fd)
    return [*found.values()]


def why_not(fds: list[int]) -> str:
    """Say why a pipe cannot be made anew, given all its ends that are here; empty if it can."""
    modes = {_flags(fd) & os.O_ACCMODE for fd in fds}
    poller = select.poll()
    poller.register(fds[0], 0)
    found = dict(poller.poll(0)).get(fds[0], 0)
    alone = {
        frozenset((os.O_RDONLY,)): bool(found & select.POLLHUP),
        frozenset((os.O_WRONLY,)): bool(found & select.POLLERR),
        frozenset((os.O_RDONLY, os.O_WRONLY)): True,
    }
    if not alone.get(frozenset(modes)) or any(_flags(fd) & os.O_DIRECT for fd in fds):
        return f"a pipe is open (fd {fds[0]})"
    return f"a pipe is full (fd {fds[0]})" if _waiting(fds[0]) > _MOST else ""


class Pipe:
    """A pipe as it is at a snapshot."""

    def __init__(self, fds: list[int]) -> None:
        self.fds = [(fd, os.get_inheritable(fd)) for fd in fds]
        self._flags = {fd: _flags(fd) for fd in fds}
        self._size = fcntl.fcntl(fds[0], _GET_SIZE)
        readers = [fd for fd in fds if self._flags[fd] & os.O_ACCMODE == os.O_RDONLY]
        self._data = _copy(readers[0], self._size) if readers else b""

    def reopen(self) -> None:
        """Make a new one with the same content, under the same numbers."""
        ends = {os.O_RDONLY: -1, os.O_WRONLY: -1}
        ends[os.O_RDONLY], ends[os.O_WRONLY] = os.pipe2(os.O_CLOEXEC)
        fcntl.fcntl(ends[os.O_WRONLY], _SET_SIZE, self._size)
        if self._data:
            os.write(ends[os.O_WRONLY], self._data)
        for fd, inheritable in self.fds:
            flags = self._flags[fd]
            os.dup2(ends[flags & os.O_ACCMODE], fd, inheritable=inheritable)
            os.set_blocking(fd, not flags & os.O_NONBLOCK)
        for end in ends.values():
            os.close(end)


def _flags(fd: int) -> int:
    return fcntl.fcntl(fd, fcntl.F_GETFL)


def _waiting(fd: int) -> int:
    """Return how many bytes wait in a pipe."""
    (count,) = struct.unpack("i", fcntl.ioctl(fd, _FIONREAD, bytes(4)))
    return int(count)


def _copy(fd: int, size: int) -> bytes:
    """Return what waits in a pipe, and leave it there."""
    count = _waiting(fd)
    if not count:
        return b""
    near, far = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        fcntl.fcntl(far, _SET_SIZE, size)
        copied = ctypes.CDLL(None).tee(fd, far, ctypes.c_size_t(count), 2)
        data = os.read(near, count) if copied == count else b""
    finally:
        os.close(near)
        os.close(far)
    if len(data) != count:
        raise OSError("a pipe could not be copied")
    return data
