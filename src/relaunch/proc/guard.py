"""A still process beside the program: it tells whether a signal was sent to our whole group.

`kill %1`, Ctrl-C and `timeout` signal every process of the group: the program has it already, and
a forwarded copy would be its second. `kill PID` reaches only us, and must be forwarded. Nothing in
the signal says which it was, but a process of our group that blocks everything keeps the answer.
When we are killed, the guard ends what we ran and gives the terminal back.
"""

from __future__ import annotations

import os
import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
else:
    import _signal

_ANSWER_MS = 200
_FILES = 1024


class Guard:
    """Our end of the guard."""

    def __init__(self, on_our_death: Callable[[], object]) -> None:
        """Start it; all signals must be blocked by the caller, and stay so in the guard."""
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._orders)
                os.close(self._answers)
                _stand(orders, answers, on_our_death)
            finally:
                os._exit(0)
        os.close(orders)
        os.close(answers)
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)

    def group_sender(self, signal: int) -> int | None:
        """Return who sent `signal` to our whole process group since the last question.

        0: nobody that could be told, as the kernel for a key; None: the group did not get it.
        """
        try:
            os.write(self._orders, b"?")
            if not self._poll.poll(_ANSWER_MS):
                return None
            words = os.read(self._answers, 4096).split()
        except OSError:
            return None
        senders = dict(zip(map(int, words[::2]), map(int, words[1::2]), strict=True))
        return senders.get(signal)

    def stop(self) -> None:
        """End the guard."""
        try:
            os.kill(self.pid, _signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except OSError:
            pass
        os.close(self._orders)
        os.close(self._answers)


def close_others(*kept: int) -> None:
    """Close all files but those: who waits for the end of one must not wait for a helper."""
    first = 0
    for fd in sorted(kept):
        if first < fd:  # closerange(0, 0) closes everything
            os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, first + _FILES)


def _stand(orders: int, answers: int, on_our_death: Callable[[], object]) -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
    close_others(orders, answers)
    while os.read(orders, 1):
        told = [b"%d %d" % (signal, _sender(signal)) for signal in _signal.sigpending()]
        os.write(answers, b" ".join(told) or b" ")
    on_our_death()


def _sender(signal: int) -> int:
    """Take a signal that is pending, and return who sent it; 0 where nobody can tell."""
    if not hasattr(_signal, "sigwaitinfo"):  # macOS
        _signal.sigwait({signal})
        return 0
    return max(0, _signal.sigwaitinfo({signal}).si_pid)
