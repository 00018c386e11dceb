"""Runs work of ours in a copy of the process, so that none of it can reach the program.

What is kept of a failed call is reached through code of the user: `__reduce__`, `__getstate__`. It
may print, hang, crash, take all memory or change what it looks at. In a forked copy that costs a
capture, never the program: its streams, exit code and objects stay as they are.
"""

from __future__ import annotations

import gc
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

    posix = sys.modules["posix"]  # what the program does to `os` is not done to it

_clock = time.monotonic
_sleep = time.sleep


def run(work: Callable[[], object], limit_s: float) -> bool:
    """Do the work in a copy of this process; False if it did not come to its end."""
    waits_for_children = callable(_signal.getsignal(_signal.SIGCHLD))
    mask = (
        _signal.pthread_sigmask(_signal.SIG_BLOCK, {_signal.SIGCHLD})
        if waits_for_children
        else None
    )
    pid = 0
    try:
        pid = _fork()
        if not pid:
            _work_alone(work, limit_s)
        return _ends(pid, _clock() + limit_s)
    finally:
        if pid and mask is not None:
            if _signal.SIGCHLD not in mask:
                _signal.sigtimedwait(
                    {_signal.SIGCHLD}, 0
                )  # ours: the program's handler is not to hear of it
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)


def _work_alone(work: Callable[[], object], limit_s: float) -> None:
    """Do the work, in the copy; never returns."""
    try:
        gc.disable()  # whatever `__del__` would do, the program itself still has to do it
        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
        _signal.setitimer(_signal.ITIMER_REAL, limit_s)  # should the program be killed meanwhile
        work()
        posix._exit(0)
    finally:
        posix._exit(1)


def _ends(pid: int, until: float) -> bool:
    """Wait for the copy, and end it when its time is over."""
    pause = 0.0005
    while True:
        try:
            gone, status = posix.waitpid(pid, posix.WNOHANG)
        except ChildProcessError:  # the program waits for any child, or for none
            return False
        if gone:
            return status == 0
        if _clock() > until:
            posix.kill(pid, _signal.SIGKILL)
            until = float("inf")
        _sleep(pause)
        pause = min(0.02, pause * 1.5)


def _fork() -> int:
    """Fork as Python's own `os.fork` does, also while the interpreter shuts down; without streams.

    3.12 refuses that, and warns of threads: neither is of concern to a copy that ends by itself.
    """
    import _ctypes

    class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]  # not subscriptable at run time
        _type_ = "i"

    class Call(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_PYTHONAPI
        _restype_ = Int

    here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
    names = ("PyOS_BeforeFork", "fork", "dup2", "PyOS_AfterFork_Child", "PyOS_AfterFork_Parent")
    before, fork, dup2, in_child, in_parent = (Call(_ctypes.dlsym(here, name)) for name in names)
    nothing = posix.open("/dev/null", posix.O_RDWR)
    streams = [(Int(nothing), Int(fd)) for fd in (0, 1, 2)]
    try:
        before()
        pid = int(fork())
        if not pid:
            for stream in streams:  # first: what the program does after a fork may print
                dup2(*stream)
        (in_parent if pid else in_child)()
    finally:
        posix.close(nothing)
    if pid < 0:
        raise OSError("the process could not be copied")
    return pid
