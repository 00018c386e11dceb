"""In a program that is watched for hangs: a debugger in the thread that hangs, when asked for.

Runs inside the user's process. A handler of Python runs in the main thread, also while that waits
for a lock, a queue, a socket or a sleep: there the debugger opens, and shows whichever thread was
asked for. Code in C that does not come back to Python is not reached.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal

SIGNAL = _signal.SIGRTMAX - 4
"""Who catches it opens the debugger; nobody else is ever sent it."""
ASKED, OPEN, LEFT = ".asked", ".open", ".left"
"""How the names of files end: which thread to show, that the debugger is open, that it ended the
program."""

_NEW = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
_open, _read, _close, _exit, _getpid = os.open, os.read, os.close, os._exit, os.getpid


def begin(folder: str) -> None:
    """Open the debugger from now on when the signal comes."""
    try:
        _signal.signal(SIGNAL, lambda _signal, frame: _debug(folder, frame))
    except (ValueError, OSError):  # not in the main thread: somebody embeds Python
        pass


def _debug(folder: str, frame: FrameType | None) -> None:
    from relaunch.inside.probe.pause import show_frame

    try:
        path = f"{folder}/{_getpid()}"
        asked = _open(path + ASKED, os.O_RDONLY | os.O_CLOEXEC)
        wanted = int(_read(asked, 64) or b"0")
        _close(asked)
        _close(_open(path + OPEN, _NEW, 0o600))
        shown = _frame_of(wanted) or frame
        if shown is None or not show_frame(shown, folder):
            return
    except Exception:  # a program must not fail because of us
        return
    try:
        _close(_open(path + LEFT, _NEW, 0o600))
    except OSError:  # then it is told as its exit code
        pass
    sys.stdout.flush()
    _exit(1)  # what hangs cannot be unwound


def _frame_of(thread_id: int) -> FrameType | None:
    """Return the frame of another thread, by the number that the kernel gave it."""
    threading = sys.modules.get("threading")
    if threading is None or thread_id == _getpid():
        return None
    for thread in threading.enumerate():
        if thread.native_id == thread_id:
            return sys._current_frames().get(thread.ident)
    return None
