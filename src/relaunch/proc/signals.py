"""Takes every signal that can be passed on, one after the other, and hands each to one function.

Python runs its handlers even while a write is blocked, so a signal never waits for our reader.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

# Faults of our own process, what cannot be caught, and what the terminal does to background jobs.
_NOT_OURS = frozenset(
    getattr(_signal, "SIG" + name)
    for name in (
        *("KILL", "STOP", "SEGV", "BUS", "FPE", "ILL", "TRAP", "SYS"),
        *("PIPE", "XFSZ", "TTIN", "TTOU", "CHLD"),
    )
)


def forwardable() -> list[int]:
    """List the signals that are passed on to the program."""
    return sorted({int(signal) for signal in _signal.valid_signals()} - _NOT_OURS)


class Signals:
    """While it is installed, `act` gets each signal, and `wake` turns readable after each."""

    def __init__(self, act: Callable[[int], object]) -> None:
        """Remember what to do; nothing is changed yet."""
        self._act = act
        self._queue: list[int] = []
        self._busy = False
        self._before: dict[int, object] = {}
        self.ignored: list[int] = []
        """Those the program must find ignored, as it would have without us."""
        self.mask: set[int] = set()
        self.wake, self._wake_far = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(self._wake_far, False)

    def install(self) -> None:
        """Block all signals and put the handlers in place; `unblock` lets them come."""
        self.mask = {
            int(signal)
            for signal in _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        }
        self._wake_before = _signal.set_wakeup_fd(self._wake_far, warn_on_full_buffer=False)
        for signal in (*forwardable(), _signal.SIGCHLD):
            before = _signal.signal(signal, self._take)
            self._before[signal] = before
            if before == _signal.SIG_IGN:
                self.ignored.append(signal)

    def unblock(self) -> None:
        """Let the signals come."""
        _signal.pthread_sigmask(_signal.SIG_SETMASK, self.mask)

    def restore(self) -> None:
        """Put back what was there before."""
        for signal, before in self._before.items():
            # None: set by something that is not Python, which cannot be put back from here.
            _signal.signal(signal, _signal.SIG_DFL if before is None else before)  # type: ignore[arg-type]  # what signal() itself returned
        _signal.set_wakeup_fd(self._wake_before)
        self.unblock()
        os.close(self.wake)
        os.close(self._wake_far)

    def drain(self) -> None:
        """Make `wake` unreadable until the next signal."""
        try:
            os.read(self.wake, 4096)
        except BlockingIOError:
            pass

    def stop_self(self, group: bool) -> None:
        """Stop as Ctrl-Z would stop us; returns when continued, or at once if nobody could."""
        _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
        os.kill(0 if group else os.getpid(), _signal.SIGTSTP)
        _signal.signal(_signal.SIGTSTP, self._take)

    def _take(self, signal: int, _frame: object) -> None:
        self._queue.append(signal)
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._act(self._queue.pop(0))
        finally:
            self._busy = False
