"""Notices at once when a folder with a small disk over it is moved, removed or replaced.

A mount goes with the folder that it is over: what has the name then is real to the program.
"""

from __future__ import annotations

import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping
else:
    import _signal

_MOVE_SELF = 0x800
_PAUSE_S, _LONGEST_S = 0.001, 5.0


def is_in_place(path: str, disk: int) -> bool:
    """Tell whether a path still leads to the disk that was laid over it."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(disk))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # who may not look there may not write there
        return True


class Signs:
    """Files of the kernel that can be read when something may have been moved."""

    def __init__(self, folders: Mapping[str, int]) -> None:
        """Listen for moves of these folders, open below their disks, and of all above."""
        import ctypes

        libc = ctypes.CDLL(None)
        self._moves = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        """-1 where there are too many: then it is seen when one looks again."""
        for path, real in folders.items():
            libc.inotify_add_watch(self._moves, f"/proc/self/fd/{real}".encode(), _MOVE_SELF)
            while (path := os.path.dirname(path)) != "/":
                libc.inotify_add_watch(self._moves, os.fsencode(path), _MOVE_SELF)
        self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)

    def register(self, poll: select.poll) -> None:
        """Have them wake somebody."""
        if self._moves >= 0:
            poll.register(self._moves, select.POLLIN)
        poll.register(self._mounts, select.POLLPRI)

    def hear(self) -> None:
        """Take what was said, so that it does not wake again."""
        try:
            os.read(self._moves, 1 << 16)
        except OSError:
            pass


def end_all_here(disk: int) -> bool:
    """End all other processes that see our mounts, or a disk in theirs; True when some did."""
    if os.readlink("/proc/self") != str(os.getpid()):  # it lists other numbers than we have
        return False
    device = os.fstat(disk).st_dev
    found, until = False, time.monotonic() + _LONGEST_S
    while _end_some(f" {os.major(device)}:{os.minor(device)} ") and time.monotonic() < until:
        found = True
        time.sleep(_PAUSE_S)
    return found


def _end_some(device: str) -> bool:
    ours, found = _mounts_of("self"), False
    pids = (int(name) for name in os.listdir("/proc") if name.isdecimal())
    for pid in sorted(pids, reverse=True):  # the program is younger than most
        if pid != os.getpid() and (_mounts_of(pid) == ours or _sees(pid, device)):
            found = True
            try:
                os.kill(pid, _signal.SIGKILL)
            except ProcessLookupError:
                pass
    return found


def _mounts_of(process: int | str) -> str:
    """Name the mounts that a process sees; empty when it is gone, or another user's."""
    try:
        return os.readlink(f"/proc/{process}/ns/mnt")
    except OSError:
        return ""


def _sees(pid: int, device: str) -> bool:
    """Tell whether a process sees a file system: mounts of its own are copies of ours."""
    try:
        with open(f"/proc/{pid}/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            return any(device in line for line in file)
    except OSError:  # it is gone, or another user's
        return False
