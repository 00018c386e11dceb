"""The system call in which a thread is, as /proc/PID/task/TID/syscall says it: what it waits for.

Reading it needs the right to attach, but does not attach: nothing of the thread is changed. It must
be read before anybody attaches, as a call that was interrupted for that is not shown as before.
"""

from __future__ import annotations

import os
import struct
import time

from relaunch.look.waits.proc import memory, read
from relaunch.proc.ptrace.numbers import machine, numbers
from relaunch.record import Record

_NAMES = {number: name for name, number in numbers().items()}

READS = frozenset(("read", "readv", "preadv", "preadv2", "pread64", "recvfrom", "recvmsg",
                   "recvmmsg"))  # fmt: skip
WRITES = frozenset(("write", "writev", "pwritev", "pwritev2", "pwrite64", "sendto", "sendmsg",
                    "sendmmsg"))  # fmt: skip
CHILDREN = frozenset(("wait4", "waitid", "vfork", "clone", "clone3"))
SIGNALS = frozenset(("pause", "rt_sigsuspend", "rt_sigtimedwait"))
SLEEPS = frozenset(("nanosleep", "clock_nanosleep", "restart_syscall"))
POLLS = frozenset(("poll", "ppoll", "select", "pselect6"))
EPOLLS = frozenset(("epoll_wait", "epoll_pwait", "epoll_pwait2"))
_POINTERS = {
    "ppoll": 2, "select": 4, "pselect6": 4, "epoll_pwait2": 3, "futex": 3, "futex_waitv": 3,
    "rt_sigtimedwait": 2, "semtimedop": 3, "mq_timedreceive": 4, "mq_timedsend": 4,
    "recvmmsg": 4, "io_getevents": 4, "io_pgetevents": 4,
}  # fmt: skip
"""Calls whose time limit is behind a pointer, and which argument that is; none: no limit."""
_MILLISECONDS = {"poll": 2, "epoll_wait": 3, "epoll_pwait": 3}
_FUTEX_WAITS = frozenset((0, 6, 9, 11, 13))
_FUTEX_PRIVATE, _FUTEX_COMMAND, _FUTEX_REALTIME = 128, 0x7F, 256
_ABSOLUTE = 1
_REALTIME = 0
_BITS = 8 * struct.calcsize("l")
_MOST_FILES = 1 << 16


class Call(Record):
    """A system call in which a thread sleeps."""

    name: str
    args: tuple[int, ...]

    @property
    def fd(self) -> int:
        """The file that it is about, if it is about one."""
        return self.args[0] & 0xFFFFFFFF

    @property
    def is_timed(self) -> bool:
        """It has a time limit, and ends by itself."""
        if self.name in SLEEPS:
            return True
        if self.name in _MILLISECONDS:
            return _signed(self.args[_MILLISECONDS[self.name]]) >= 0
        at = _POINTERS.get(self.name)
        return at is not None and self.args[at] != 0


UNREADABLE = Call(name="", args=())
"""We may not see in which call the thread is."""


def call_of(pid: int, tid: int) -> Call | None:
    """Return the call in which a thread sleeps; None when it runs, or is stopped outside of one."""
    return read_call(read(f"/proc/{pid}/task/{tid}/syscall"))


def read_call(text: bytes) -> Call | None:
    """Read `202 0x7f... 0x80 ...`; `running` and `-1 ...` are no calls."""
    words = text.split()
    if not words:
        return UNREADABLE
    if words[0] == b"running" or len(words) < 7 or words[0].startswith(b"-"):
        return None
    name = _NAMES.get(int(words[0]), f"call {int(words[0])}")
    return Call(name=name, args=tuple(int(word, 16) for word in words[1:7]))


def futex_is_private(call: Call) -> bool | None:
    """Tell whether only its own process can wake this; None: it is no wait for another."""
    operation = call.args[1]
    if operation & _FUTEX_COMMAND not in _FUTEX_WAITS:
        return None
    return bool(operation & _FUTEX_PRIVATE)


def limit(pid: int, call: Call) -> tuple[float | None, bool]:
    """Return the time limit of a call, and whether that is what is left: else all that it got.

    None: it is not known.
    """
    if call.name == "clock_nanosleep":
        given = _timespec(pid, call.args[2])
        if given is None or not call.args[1] & _ABSOLUTE:
            return given, False
        return given - (time.time() if call.args[0] == _REALTIME else time.monotonic()), True
    if call.name == "futex":
        given = _timespec(pid, call.args[3])
        if given is None or call.args[1] & _FUTEX_COMMAND == 0:  # FUTEX_WAIT: a duration
            return given, False
        is_real = call.args[1] & _FUTEX_REALTIME
        return given - (time.time() if is_real else time.monotonic()), True
    if call.name == "nanosleep":
        return _timespec(pid, call.args[0]), False
    if call.name in _MILLISECONDS:
        return _signed(call.args[_MILLISECONDS[call.name]]) / 1000, False
    return None, False


def polled(pid: int, call: Call) -> list[int] | None:
    """Return the files of a poll or select; None when they cannot be read."""
    if call.name in ("poll", "ppoll"):
        count = call.args[1]
        data = memory(pid, call.args[0], 8 * count) if 0 < count < _MOST_FILES else b""
        if len(data) != 8 * count:
            return None
        return [fd for fd, _want, _got in struct.iter_unpack("=ihh", data) if fd >= 0]
    sets = [_fd_set(pid, address, call.args[0]) for address in call.args[1:4]]
    if any(one is None for one in sets):
        return None
    return sorted({fd for one in sets if one is not None for fd in one})


def watched(pid: int, fd: int) -> list[int] | None:
    """Return the files that an epoll watches; None when they cannot be read."""
    text = read(f"/proc/{pid}/fdinfo/{fd}")
    if not text:
        return None
    rows = [line.split() for line in text.split(b"\n") if line.startswith(b"tfd:")]
    found = []
    for words in rows:
        number = int(words[1])
        inode = next((int(word[4:], 16) for word in words if word.startswith(b"ino:")), 0)
        # A fork shares it: the number is that of whoever registered the file.
        if inode and inode != _inode(pid, number):
            return None
        found.append(number)
    return found


def _inode(pid: int, fd: int) -> int:
    try:
        return os.stat(f"/proc/{pid}/fd/{fd}").st_ino
    except OSError:
        return 0


def is_known(pid: int) -> bool:
    """Tell whether the calls of a process have the numbers that we know: it is of this machine."""
    try:
        with open(f"/proc/{pid}/exe", "rb") as file:
            return file.read(20)[4:20:14] == _machine()
    except OSError:
        return False


def _machine() -> bytes:
    """Return how the head of a program says for what it was made: 64 bits, and which processor."""
    return bytes((2, {"x86_64": 0x3E, "aarch64": 0xB7}.get(machine(), 0)))


def _fd_set(pid: int, address: int, count: int) -> set[int] | None:
    if not address or not 0 < count <= _MOST_FILES:
        return set()
    size = -(-count // _BITS) * _BITS // 8
    data = memory(pid, address, size)
    if len(data) != size:
        return None
    bits = int.from_bytes(data, "little")
    return {fd for fd in range(count) if bits >> fd & 1}


def _timespec(pid: int, address: int) -> float | None:
    data = memory(pid, address, 16)
    if len(data) != 16:
        return None
    seconds, nanoseconds = struct.unpack("=qq", data)
    return float(seconds + nanoseconds / 1e9)


def _signed(word: int) -> int:
    value = word & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
