"""Files that the program has open: which can be opened anew in another process, and how."""

from __future__ import annotations

import os
import posix
import stat

from . import cuda, pipes
from .kept import FILE_BYTES
from .states import identity_of, open_fds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from .ledger import Ledger

OWN_MEMORY = "/memfd:relaunch-"
_DEVICES = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
_EVENT = "anon_inode:[eventfd]"
_LATER = os.O_CREAT | os.O_TRUNC | os.O_EXCL


class CannotRestore(Exception):
    """The world cannot be put back as it was."""


class Open:
    """An open file of the program."""

    def __init__(self, fd: int, path: str, info: Mapping[str, str]) -> None:
        now = posix.fstat(fd)
        self.fds = [(fd, os.get_inheritable(fd))]
        self.path = path
        self.identity = (now.st_dev, now.st_ino)
        self.flags = int(info["flags"], 8) & ~_LATER & ~os.O_CLOEXEC
        self.offset = int(info["pos"])
        self.seekable = stat.S_ISREG(now.st_mode) or stat.S_ISDIR(now.st_mode)
        self.data = _content(fd, now.st_size) if _is_nameless(fd) else None
        """What it holds, when no name leads to it any more."""
        self.event = info.get("eventfd-id", "")
        """The counter that it is, if it is one."""
        self.count = int(info.get("eventfd-count", "0"), 16)
        self.semaphore = info.get("eventfd-semaphore", "0") != "0"

    def try_open(self) -> None:
        """CannotRestore if no `reopen` could open it."""
        if not self.event and self.data is None:
            os.close(self._open())

    def reopen(self) -> None:
        """Open it anew at the same place, under the same numbers."""
        new = self._open()
        if self.seekable:
            end = self.flags & os.O_APPEND
            os.lseek(new, 0 if end else self.offset, os.SEEK_END if end else os.SEEK_SET)
        numbers = [fd for fd, _ in self.fds]
        for fd, inheritable in self.fds:
            os.dup2(new, fd, inheritable=inheritable)
        if new not in numbers:
            os.close(new)

    def _open(self) -> int:
        try:
            if self.event:
                return self._new_event()
            if self.data is None:
                return os.open(self.path, self.flags | os.O_CLOEXEC)
            return _nameless(os.path.dirname(self.path), self.data, self.flags)
        except OSError as error:
            raise CannotRestore(f"{self.path} cannot be opened: {error.strerror}") from None

    def _new_event(self) -> int:
        """Make a counter of its own, for the other one is shared with all that forked."""
        flags = os.EFD_CLOEXEC | (os.EFD_SEMAPHORE if self.semaphore else 0)
        if self.flags & os.O_NONBLOCK:
            flags |= os.EFD_NONBLOCK
        return os.eventfd(self.count, flags)


def open_files(ledger: Ledger) -> list[Open]:
    """Collect the program's open files; descriptors that share an offset are one."""
    files: list[Open] = []
    for fd, path in theirs(ledger):
        if pipes.is_pipe(fd, path):
            continue
        one = Open(fd, path, _info(fd))
        for other in files:
            if _same_description(other, one):
                other.fds += one.fds
                break
        else:
            files.append(one)
    return files


def _same_description(one: Open, other: Open) -> bool:
    """Tell whether two descriptors share an offset: move one and look at the other."""
    alike = (one.identity, one.flags, one.offset) == (other.identity, other.flags, other.offset)
    if not alike or one.event != other.event:
        return False
    if not one.seekable:
        return bool(one.event)
    (first, _), (second, _) = one.fds[0], other.fds[0]
    os.lseek(first, one.offset + 1, os.SEEK_SET)
    try:
        return os.lseek(second, 0, os.SEEK_CUR) != one.offset
    finally:
        os.lseek(first, one.offset, os.SEEK_SET)


def open_pipes(ledger: Ledger) -> list[list[int]]:
    """Collect the ends of the program's pipes."""
    return pipes.grouped(fd for fd, path in theirs(ledger) if pipes.is_pipe(fd, path))


def unshareable(ledger: Ledger) -> str:
    """Say what is open and cannot be opened anew; empty if all can."""
    for fd, path in theirs(ledger):
        why = _cannot_share(fd, path, ledger)
        if why:
            return why
    return next(filter(None, map(pipes.why_not, open_pipes(ledger))), "")


def _cannot_share(fd: int, path: str, ledger: Ledger) -> str:
    if path == _EVENT and "eventfd-semaphore" in _info(fd):
        return ""
    if path.startswith("anon_inode:"):
        return f"{path.partition(':')[2].strip('[]')} is open (fd {fd})"
    if path.startswith("/memfd:"):
        return f"memory is shared between processes (fd {fd})"
    if pipes.is_pipe(fd, path):
        return ""
    mode = posix.fstat(fd).st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        return f"a {'socket' if stat.S_ISSOCK(mode) else 'pipe'} is open (fd {fd})"
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        if _is_nameless(fd):
            size = posix.fstat(fd).st_size
            return "a large file without a name is open" if size > FILE_BYTES else ""
        if not _is_at(fd, path):
            return f"a deleted file is open: {path.partition(' (deleted)')[0]}"
        if "lock" in _info(fd):
            return f"a file is locked: {path}"
        if path in ledger.databases:
            return f"a database is open: {path}"
        return ""
    return "" if path in _DEVICES else f"a device is open: {path}"


def theirs(ledger: Ledger) -> list[tuple[int, str]]:
    """List the descriptors of the program, with what the kernel calls them."""
    found = []
    for fd in open_fds():
        if stream_of(fd, ledger) >= 0:
            continue
        if fd > 2 and ledger.own_fds.get(fd) == identity_of(fd):
            continue
        path = posix.readlink(f"/proc/self/fd/{fd}")
        shared = path.startswith((OWN_MEMORY, cuda.FILES))  # NVML does not mind
        if not shared and not _is_ours(fd, path, ledger):
            found.append((fd, path))
    return found


def _is_ours(fd: int, path: str, ledger: Ledger) -> bool:
    """Tell whether it is a connection to the host."""
    if not path.startswith("socket:"):
        return False
    import socket

    try:
        connection = socket.socket(fileno=os.dup(fd))
    except OSError:
        return False
    with connection:
        try:
            name = connection.getpeername()
        except OSError:
            return False
    return isinstance(name, str) and bool(name) and name.startswith(ledger.private)


def stream_of(fd: int, ledger: Ledger) -> int:
    """Return which of the standard streams a descriptor leads to; -1 if to none of them."""
    identity = identity_of(fd)
    if fd <= 2 and identity == ledger.streams[fd]:
        return fd
    if identity is None or posix.readlink(f"/proc/self/fd/{fd}") == os.devnull:
        return -1
    return ledger.streams.index(identity) if identity in ledger.streams else -1


def _info(fd: int) -> dict[str, str]:
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii", errors="replace") as file:
        lines = (line.partition(":") for line in file)
        return {name: value.strip() for name, _, value in lines}


def _is_nameless(fd: int) -> bool:
    """Tell whether a file is open that was deleted, or never had a name."""
    now = posix.fstat(fd)
    return stat.S_ISREG(now.st_mode) and now.st_nlink == 0


def _content(fd: int, size: int) -> bytes:
    """Read a file that only a descriptor leads to."""
    with open(f"/proc/self/fd/{fd}", "rb") as file:
        return file.read(size)


def _nameless(folder: str, data: bytes, flags: int) -> int:
    """Make a file without a name."""
    new = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC | flags & os.O_APPEND, 0o600)
    while data:
        data = data[os.write(new, data) :]
    return new


def _is_at(fd: int, path: str) -> bool:
    try:
        now = posix.stat(path)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == identity_of(fd)
