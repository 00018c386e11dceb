"""Where the kernel lets nobody look into a program: it tells its own stacks, asked by a signal.

Runs inside the user's process. The handler is faulthandler's own, which works inside a long call
of C code. What it writes lies in memory: there is no file to be left behind.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

SIGNAL = _signal.SIGRTMAX - 3
"""Who catches it writes its stacks; nobody else is ever sent it."""
NAME = "rl-stacks"
"""What the file in memory is called: /proc/PID/fd shows it."""
_HIGH_FILE = 200
_told: list[int] = []

_memfd_create, _close = getattr(os, "memfd_create", None), os.close


def begin() -> None:
    """Answer from now on, in forks too."""
    _answer()
    os.register_at_fork(after_in_child=_answer)


def _answer() -> None:
    """Write the stacks of all threads when the signal comes; each process into its own memory."""
    try:
        import faulthandler
        import fcntl

        if _memfd_create is None:
            return
        fd = _memfd_create(NAME, os.MFD_CLOEXEC)
        high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH_FILE)
        _close(fd)
        faulthandler.register(SIGNAL, file=high, all_threads=True, chain=False)
        while _told:
            _close(_told.pop())
        _told.append(high)
    except Exception:  # a program must not fail because of us
        pass
