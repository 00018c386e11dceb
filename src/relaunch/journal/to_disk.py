"""Gets what the journal wrote onto the disk, beside the launch, so that a power cut loses no trial.

A file that is only renamed can be found empty for half a minute, with its new name. So each is
handed over to the disk as it is written, which waits for nothing, and a thread then waits until
those that a trial cannot do without are there. Measured on ext4 with a virtual disk: handing over
takes 0.04 ms a file, the wait 0.4 ms when the disk is idle and 4 to 30 ms when others write. One
`syncfs` is no better when idle and took up to a second beside others, whose files it waits for too:
it is for many files only.
"""

from __future__ import annotations

import _thread
import errno
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Sequence
else:
    import _signal

BEFORE_LAUNCH_S = 0.0025
"""How long a launch waits; what takes longer goes on beside the program."""
AT_EXIT_S = 1.0
"""How long an exit waits: after it, nothing of ours would finish the work."""
_QUICK_S = 0.005
_MANY = 100
_CANNOT = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
"""What file systems say that cannot wait for a file, or for a folder."""
_LOST = (errno.EIO, errno.ENOSPC, errno.EDQUOT)
"""What they say of a file that is not there and will not be."""
_todo: list[Callable[[], object]] = []
_begun: list[_thread.LockType] = []
failed: list[OSError] = []
"""What the disk said that did not take what was to be there: it says so only once."""
_recent_s = 0.0


def hand_over(fd: int) -> None:
    """Have the kernel begin to write a file, and wait for nothing."""
    if hasattr(os, "posix_fadvise"):
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        except OSError:
            pass  # it is only advice; sandboxes refuse what they do not know


def is_quick() -> bool:
    """Tell whether the disk was quick enough, when last asked, to wait for it once more."""
    return _recent_s < _QUICK_S


def sync_file(fd: int) -> None:
    """Wait until a file is on the disk, and remember how long that took, for a few files."""
    global _recent_s
    began = time.monotonic()
    try:
        getattr(os, "fdatasync", os.fsync)(fd)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise
    _recent_s = max(_recent_s / 2, time.monotonic() - began)


def soon(work: Callable[[], object]) -> None:
    """Have `work`, which waits for the disk, done by the next `wait`."""
    _todo.append(work)


def wait(most_s: float) -> None:
    """Do what is to be done in a thread, and wait until it has ended, but no longer than that.

    It begins only here: two threads that are at work cost each other more than the disk does.
    """
    if _todo:
        _begin([_todo.pop(0) for _ in range(len(_todo))])
    until = time.monotonic() + most_s
    while _begun:
        if not _begun[-1].acquire(timeout=max(0.0, until - time.monotonic())):
            return
        _begun.pop()


def _begin(works: Sequence[Callable[[], object]]) -> None:
    """Start a thread; what fails is given up, and noted where something is lost."""
    ended = _thread.allocate_lock()
    ended.acquire()

    def do() -> None:
        for work in works:
            try:
                work()
            except OSError as error:
                if error.errno in _LOST:
                    failed.append(error)
        ended.release()

    _begun.append(ended)
    # Signals are for the main thread, which may block one to wait for it.
    before = _signal.pthread_sigmask(_signal.SIG_SETMASK, _signal.valid_signals())
    try:
        _thread.start_new_thread(do, ())
    except RuntimeError:  # no thread can be had
        do()
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def sync(paths: Sequence[str]) -> None:
    """Wait until these files and folders are on the disk; those that are gone need not be."""
    if len(paths) > _MANY:
        from relaunch.proc.file_system import sync_file_system

        if sync_file_system(paths[-1]):
            return
    for path in paths:  # all at once, so that the first wait is for all
        _with(path, hand_over)
    for path in paths:
        _with(path, sync_file)


def _with(path: str, act: Callable[[int], None]) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        act(fd)
    finally:
        os.close(fd)
