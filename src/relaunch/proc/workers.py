"""Work of ours in forked processes, several at once: each has its own session, and one answer.

Until then it may say what it does, in lines that go before the answer in the same pipe.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.proc.prctl import die_with_parent
from relaunch.proc.tree import MARKER, end_marked

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
    from typing import NoReturn

    from _typeshed import HasFileno
else:
    import _signal

_ASKED_S = 3.0
"""What one has to end by itself when it is told to."""
_LINE = b"\x1e"
"""What a line that is not of the answer begins with."""
_MOST_BYTES = 1000
_to_parent = -1


class Worker:
    """A forked process that does one thing and sends back bytes. It ends when we do."""

    def __init__(self, work: Callable[[str], bytes]) -> None:
        """Begin; `work` gets a marker for the environment of the programs it starts."""
        self.began = time.monotonic()
        self.marker = f"{os.getpid()}.{time.time_ns()}"
        self._near, far = os.pipe()
        self._came = bytearray()
        self._lines: list[str] = []
        parent = os.getpid()
        # A signal that comes to it before its handlers are its own would wake our parent.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._near)
            _be_worker(work, self.marker, far, parent, mask)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        os.close(far)

    def fileno(self) -> int:
        """Return what turns readable when there is something of the answer."""
        return self._near

    def read(self) -> bytes | None:
        """Take what is there; returns the whole answer at its end, empty if there is none."""
        block = os.read(self._near, 1 << 16)
        self._came += block
        while self._came.startswith(_LINE) and b"\n" in self._came:
            line, _, self._came = self._came.partition(b"\n")
            self._lines.append(line[1:].decode("utf-8", "replace"))
        if block:
            return None
        self._close()
        return bytes(self._came)

    def said(self) -> list[str]:
        """Return what it has said since this was asked last, as far as it was read."""
        lines, self._lines = self._lines, []
        return lines

    def cancel(self, *, asked_s: float = _ASKED_S) -> None:
        """End it, with all that it started; it has so long to end by itself."""
        self._tell(_signal.SIGTERM)
        until = time.monotonic() + asked_s
        while self._is_open(until - time.monotonic()):
            pass
        self.kill()
        end_marked(self.marker)

    def kill(self) -> None:
        """End it now; what it started may still be there (`end_marked`)."""
        self._tell(_signal.SIGKILL)
        self._close()

    def _is_open(self, seconds: float) -> bool:
        if seconds <= 0 or not select.select([self._near], [], [], seconds)[0]:
            return False
        return bool(os.read(self._near, 1 << 16))

    def _tell(self, signal: int) -> None:
        try:
            os.kill(self.pid, signal)
        except ProcessLookupError:
            pass

    def _close(self) -> None:
        os.close(self._near)
        os.waitpid(self.pid, 0)


def say(text: str) -> None:
    """Tell who started this worker what it does; elsewhere nobody is told."""
    if _to_parent >= 0:
        line = " ".join(text.split()).encode("utf-8", "replace")[:_MOST_BYTES]
        _write(_to_parent, _LINE + line + b"\n")


def wait(workers: Iterable[Worker], seconds: float | None = None, *also: HasFileno) -> list[Worker]:
    """Wait until one of them has said something, or one of `also` has; returns those workers."""
    ready = select.select([*workers, *also], [], [], seconds)[0]
    return [one for one in ready if isinstance(one, Worker)]


def _be_worker(
    work: Callable[[str], bytes], marker: str, far: int, parent: int, mask: Iterable[int]
) -> NoReturn:
    """Do the work, away from the terminal; never comes back."""
    global _to_parent
    code = 1
    try:
        os.setsid()
        for signal in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
            _signal.signal(signal, _signal.SIG_DFL)
        _signal.set_wakeup_fd(-1)  # it would wake our parent
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        die_with_parent(_signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        nothing = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(nothing, fd)
        os.environ[MARKER] = marker
        _to_parent = far
        _write(far, work(marker))
        code = 0
    finally:
        os._exit(code)


def _write(fd: int, data: bytes) -> None:
    done = 0
    while done < len(data):
        done += os.write(fd, data[done:])
