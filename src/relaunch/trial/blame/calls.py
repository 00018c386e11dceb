"""What the arguments of system calls are: the path, the file, the size, the address."""

from __future__ import annotations

import os

from relaunch.proc.ptrace.kernel import read_memory
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.proc.ptrace.policy import Call


class Shape(Record):
    """Which argument is what; None: the call has no such thing."""

    path: int | None = None
    folder: int | None = None
    """The open folder that the path begins at."""
    fd: int | None = None
    size: int | None = None
    address: int | None = None
    """A socket address; its length follows."""


def _shapes(words: str) -> dict[str, Shape]:
    """Read `openat:folder=0,path=1 ...`."""
    found = {}
    for word in words.split():
        name, _, parts = word.partition(":")
        pairs = (part.split("=") for part in parts.split(",") if part)
        found[name] = Shape(**{key: int(at) for key, at in pairs})
    return found


WRITES = _shapes(
    """
    write:fd=0,size=2 pwrite64:fd=0,size=2 writev:fd=0 pwritev:fd=0 pwritev2:fd=0
    fallocate:fd=0,size=3 ftruncate:fd=0,size=1 truncate:path=0,size=1 fsync:fd=0 fdatasync:fd=0
    sync_file_range:fd=0 msync:size=1 sendfile:fd=0,size=3 copy_file_range:fd=2,size=4
    splice:fd=2,size=4 fsetxattr:fd=0 setxattr:path=0 io_uring_enter:fd=0
    """
)
OPENS = _shapes(
    """
    open:path=0 openat:folder=0,path=1 openat2:folder=0,path=1 creat:path=0 mkdir:path=0
    mkdirat:folder=0,path=1 rename:path=1 renameat:folder=2,path=3 renameat2:folder=2,path=3
    link:path=1 linkat:folder=2,path=3 symlink:path=1 symlinkat:folder=1,path=2 unlink:path=0
    unlinkat:folder=0,path=1 rmdir:path=0 mknod:path=0 mknodat:folder=0,path=1 chmod:path=0
    fchmodat:folder=0,path=1 fchmod:fd=0 chown:path=0 fchownat:folder=0,path=1 fchown:fd=0
    chdir:path=0 execve:path=0 execveat:folder=0,path=1 mount:path=1 utimensat:folder=0,path=1
    inotify_add_watch:fd=0,path=1
    """
)
NEEDS_FILE = _shapes(
    """
    socket: socketpair: pipe: pipe2: dup:fd=0 dup2:fd=0 dup3:fd=0 accept:fd=0 accept4:fd=0
    epoll_create: epoll_create1: eventfd: eventfd2: timerfd_create: memfd_create: inotify_init:
    inotify_init1: signalfd4:
    """
)
LOOKS = _shapes(
    """
    stat:path=0 lstat:path=0 newfstatat:folder=0,path=1 statx:folder=0,path=1 access:path=0
    faccessat:folder=0,path=1 faccessat2:folder=0,path=1 readlink:path=0 readlinkat:folder=0,path=1
    """
)
NETWORK = _shapes("connect:fd=0,address=1 bind:fd=0,address=1")
MEMORY = _shapes("mmap:size=1,fd=4 mremap:size=2 shmget:size=1")
WAITS = _shapes(
    """
    read:fd=0,size=2 pread64:fd=0,size=2 readv:fd=0 recvfrom:fd=0,size=2 recvmsg:fd=0 sendto:fd=0
    sendmsg:fd=0 flock:fd=0 fcntl:fd=0 ioctl:fd=0 close:fd=0 getdents64:fd=0 lseek:fd=0
    epoll_wait:fd=0 epoll_pwait:fd=0 fstat:fd=0 statfs:path=0 fstatfs:fd=0 getsockopt:fd=0
    """
)
FAILING = {**WRITES, **OPENS, **NEEDS_FILE, **LOOKS, **NETWORK, **MEMORY}
"""The calls that are looked at when it is asked which ones fail."""
SHAPES = {**FAILING, **WAITS}
_NO_SHAPE = Shape()


def fd_of(call: Call) -> int:
    """Return the open file that a call is on; -1 when it is on none."""
    at = SHAPES.get(call.name, _NO_SHAPE).fd
    return -1 if at is None else call.signed(at)


def asked_of(call: Call) -> int:
    """Return how many bytes a call asks for."""
    at = SHAPES.get(call.name, _NO_SHAPE).size
    return 0 if at is None else call.words[at]


def subject_of(call: Call) -> str:
    """Return what a call is about: a path, an address, what its open file is; or nothing."""
    shape = SHAPES.get(call.name, _NO_SHAPE)
    if shape.address is not None:
        return read_address(read_memory(call.tid, call.words[shape.address], 128))
    if shape.path is not None:
        return call.path(shape.path, shape.folder)
    return call.file(call.signed(shape.fd)) if shape.fd is not None else ""


def read_address(data: bytes) -> str:
    """Write a socket address as people do."""
    family = int.from_bytes(data[:2], "little")
    port = int.from_bytes(data[2:4], "big")
    if family == 2:
        return f"{'.'.join(map(str, data[4:8]))}:{port}"
    if family == 10:
        return f"[{_short(data[8:24])}]:{port}"
    if family == 1:
        name = data[2:110]
        text = name.lstrip(b"\0").partition(b"\0")[0]
        return ("@" if name[:1] == b"\0" else "") + os.fsdecode(text)
    return ""


def _short(data: bytes) -> str:
    from ipaddress import IPv6Address

    return str(IPv6Address(data))


def unknown(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names that are of no call of this machine."""
    there = set(known)
    return [name for name in names if name not in there]
