"""A process of ours beside the program, on one end of a socket; it never outlives us."""

from __future__ import annotations

import os
import select

from relaunch.proc.guard import close_others
from relaunch.proc.prctl import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    import socket as _socket
    from collections.abc import Callable, Collection
else:
    import _signal
    import _socket

_ENDING_MS = 5_000


class Helper:
    """Our end: say bytes, hear bytes, end it."""

    def __init__(self, work: Callable[[int], object], *, keep: Collection[int] = ()) -> None:
        """Fork it; there `work(socket's file)` runs, with only that, stderr and `keep` open.

        It is to return when the socket is at its end. All signals are blocked in it.
        """
        ours, theirs = _pair()
        self._file = ours
        me = os.getpid()
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                die_with_parent(_signal.SIGKILL)
                if os.getppid() == me:
                    close_others(2, theirs, *keep)
                    work(theirs)
                    code = 0
            finally:
                os._exit(code)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        os.close(theirs)

    def fileno(self) -> int:
        """Our file, for a poll."""
        return self._file

    def say(self, data: bytes) -> None:
        """Send it something; nothing happens when it is gone."""
        try:
            os.write(self._file, data)
        except OSError:
            pass

    def hear(self, wait_s: float) -> bytes:
        """Return what it says next; nothing when it is gone or says nothing for so long."""
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        try:
            return os.read(self._file, 1 << 16) if poll.poll(wait_s * 1000) else b""
        except OSError:
            return b""

    def is_over(self, wait_s: float) -> bool:
        """Wait so long for its end; what it said is still to be heard."""
        poll = select.poll()
        poll.register(self._file, 0)  # only that the other end is closed
        return bool(poll.poll(wait_s * 1000))

    def stop(self) -> bytes:
        """End it, and return all that it still said."""
        if not self.pid:
            return b""
        said = []
        socket = _socket.socket(fileno=self._file)
        try:
            socket.shutdown(_socket.SHUT_WR)
        except OSError:
            pass
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        try:
            while poll.poll(_ENDING_MS) and (data := os.read(self._file, 1 << 16)):
                said.append(data)
        except OSError:
            pass
        socket.close()
        try:
            os.kill(self.pid, _signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except OSError:  # collected already
            pass
        self.pid = 0
        return b"".join(said)


def _pair() -> tuple[int, int]:
    one, two = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    return one.detach(), two.detach()


def write_all(fd: int, data: bytes) -> None:
    """Write all of it; nothing when nobody reads."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        pass
