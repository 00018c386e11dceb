"""Passes the program's output on as it comes, byte for byte, and shows each block around."""

from __future__ import annotations

import os
import select
import time

from relaunch.proc.standard import enlarge

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK = 1 << 20
_PTY_READ = 1 << 12
_PTY_BLOCK = 1 << 16
_DRAIN_S = 2.0
_GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, also when the other side set the file not to block."""
    try:
        done = os.write(fd, data)
    except BlockingIOError:
        done = 0
    if done == len(data):
        return
    rest = memoryview(data)[done:]
    while rest:
        try:
            rest = rest[os.write(fd, rest) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()


class Relay:
    """One poll loop over all that can happen; each file has the function that reacts to it."""

    def __init__(self, chunk: Callable[[float, int, bytes], object]) -> None:
        """Show every block to `chunk(monotonic time, stream, data)` after it was passed on."""
        self._chunk = chunk
        self._poll = select.poll()
        self._react: dict[int, Callable[[int], object]] = {}
        self._streams: dict[int, tuple[int, int]] = {}
        self._buffer = memoryview(bytearray(_PTY_BLOCK + _PTY_READ))
        self.through: Callable[[int, bytes], bytes] | None = None
        """What of a pipe's data is passed on; it gets no data at the end of a stream."""
        self.failed = ""
        """Why output could not be passed on."""

    def watch(self, fd: int, react: Callable[[int], object], events: int = select.POLLIN) -> None:
        """Call `react(what happened)` whenever something happens to `fd`."""
        self._react[fd] = react
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching."""
        if self._react.pop(fd, None):
            self._poll.unregister(fd)

    def pipe(self, fd: int, to: int, stream: int) -> None:
        """Pass what comes from the pipe `fd` on to `to` (-1: nowhere)."""
        self._streams[fd] = (to, stream)
        if to >= 0:
            enlarge(to)  # fewer and larger steps for the reader too
        self.watch(fd, lambda _: self._read_pipe(fd))

    def pty(self, fd: int, to: int) -> None:
        """Pass what comes from the pty `fd`, which does not block, on to `to`."""
        self._streams[fd] = (to, 1)
        self.watch(fd, lambda _: self.read_pty(fd))

    def notice_lost_reader(self, fd: int, to: int) -> None:
        """Let the program see that the reader of `to` went away even before it writes again."""
        self.watch(to, lambda event: self.close(fd) if event & _GONE else None, 0)

    def turn(self, timeout_s: float | None = None) -> bool:
        """Wait for something to happen and react; False when nothing did."""
        ready = self._poll.poll(None if timeout_s is None else timeout_s * 1000)
        for fd, event in ready:
            react = self._react.get(fd)
            if react:
                react(event)
        return bool(ready)

    def drain(self) -> None:
        """Pass on what is there now, without waiting for those who might still write."""
        deadline = time.monotonic() + _DRAIN_S
        poll = select.poll()
        for fd in self._streams:
            poll.register(fd, select.POLLIN)
        while self._streams and time.monotonic() < deadline:
            ready = poll.poll(0)
            if not ready:
                return
            for fd, _ in ready:
                self._react[fd](select.POLLIN)
                if fd not in self._streams:
                    poll.unregister(fd)

    def close(self, fd: int) -> None:
        """Close a stream: its end was reached, or nobody reads it any more."""
        to, _ = self._streams.pop(fd, (-1, 0))
        self.forget(fd)
        if to in self._react:
            self.forget(to)
        os.close(fd)

    def close_all(self) -> None:
        """Close what is still open."""
        for fd in list(self._streams):
            self.close(fd)

    def _read_pipe(self, fd: int) -> None:
        data = os.read(fd, BLOCK)
        now = time.monotonic()
        to, stream = self._streams[fd]
        if not data:
            self.close(fd)
        if self.through is not None:
            data = self.through(stream, data)
        if not data:
            return
        if to >= 0:
            try:
                write_all(to, data)
            except OSError as error:
                # As without us: a program that writes where nobody reads gets SIGPIPE.
                if not isinstance(error, BrokenPipeError):
                    self.failed = self.failed or error.strerror or str(error)
                if fd in self._streams:
                    self.close(fd)
        self._chunk(now, stream, data)

    def read_pty(self, fd: int) -> None:
        """Pass on what the pty has."""
        # A pty gives at most 4 KiB at once: gather, so that each write and record is worth it,
        # and into one buffer, because a new object for each read costs as much as the read.
        buffer, size, ended = self._buffer, 0, False
        try:
            while size < _PTY_BLOCK:
                count = os.readv(fd, [buffer[size:]])
                if not count:
                    ended = True
                    break
                size += count
        except BlockingIOError:
            pass
        except OSError:  # EIO: nobody has the other side open any more
            ended = True
        if size:
            now = time.monotonic()
            data = bytes(buffer[:size])
            to, stream = self._streams[fd]
            if to >= 0:
                try:
                    write_all(to, data)
                except OSError as error:
                    # The terminal is gone. The hangup signal is what tells the program.
                    self.failed = self.failed or error.strerror or str(error)
                    self._streams[fd] = (-1, stream)
            self._chunk(now, stream, data)
        if ended:
            self.close(fd)
