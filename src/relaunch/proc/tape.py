"""All that a program wrote, as it came: whoever goes on from its middle shows the beginning again.

A frame is `stream:u8 length:u32le data`. The file is private and lies outside the journal, because
secrets are still in it.
"""

from __future__ import annotations

import os

from relaunch.proc.relay import write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from relaunch.proc.relay import Relay

MOST_BYTES = 64 << 20
_FIRST_FD = 100
"""Programs count on low numbers: the first file that they open is 3."""
_HEAD = 5
_READ = 1 << 20


class Tape:
    """The file that is written while the program runs."""

    def __init__(self, path: str, *, most_bytes: int = MOST_BYTES) -> None:
        """Make the file anew."""
        self.path = path
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self._most_bytes = most_bytes
        self.length = 0
        self.whole = True
        """False when output was too much, or the disk too full, to keep all of it."""
        self.is_used = False
        """Somebody was told its length, and may come back for it."""

    def add(self, stream: int, data: bytes) -> None:
        """Keep one block."""
        if not self.whole:
            return
        frame = frame_of(stream, data)
        if self.length + len(frame) > self._most_bytes:
            self.whole = False
            return
        try:
            write_all(self._fd, frame)
        except OSError:
            self.whole = False
            return
        self.length += len(frame)

    def close(self) -> None:
        """Close it, and take away what nobody knows of."""
        os.close(self._fd)
        if not self.is_used:
            try:
                os.unlink(self.path)
            except OSError:
                pass


class Control:
    """A line between us and the program, over which it asks how far the tape is."""

    def __init__(self, tape: Tape) -> None:
        """Make both ends; the program's has a high number, and lives through exec."""
        import _socket
        import fcntl

        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.tape = tape
        self.ours = ours.detach()
        self.theirs = fcntl.fcntl(theirs.fileno(), fcntl.F_DUPFD, _FIRST_FD)
        theirs.close()

    def recording(
        self, chunk: Callable[[float, int, bytes], object]
    ) -> Callable[[float, int, bytes], object]:
        """Return what keeps a block and shows it to `chunk`."""

        def keep(when: float, stream: int, data: bytes) -> None:
            self.tape.add(stream, data)
            chunk(when, stream, data)

        return keep

    def attend(self, relay: Relay) -> None:
        """Answer the program from now on; what it wrote before it asked is on the tape then."""
        self.close_theirs()
        relay.watch(self.ours, lambda _: self._answer(relay))

    def _answer(self, relay: Relay) -> None:
        try:
            asked = os.read(self.ours, 64)
        except OSError:
            asked = b""
        if not asked:
            relay.forget(self.ours)
            return
        if asked != b"mark":
            return
        relay.drain()
        whole = self.tape.whole
        self.tape.is_used = self.tape.is_used or whole
        try:
            os.write(self.ours, b"%d" % self.tape.length if whole else b"-")
        except OSError:  # it is gone
            relay.forget(self.ours)

    def close_theirs(self) -> None:
        """Leave the program's end to the program."""
        if self.theirs >= 0:
            os.close(self.theirs)
            self.theirs = -1

    def close(self) -> None:
        """Close what is open; safe to call twice."""
        self.close_theirs()
        if self.ours >= 0:
            os.close(self.ours)
            self.ours = -1


def frame_of(stream: int, data: bytes) -> bytes:
    """Return a block as the tape keeps it."""
    return bytes([stream]) + len(data).to_bytes(4, "little") + data


def frames(fd: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Read stream and data of each frame before `end`; OSError where the tape is not whole."""
    at = 0
    while at < end:
        head = os.pread(fd, _HEAD, at)
        size = int.from_bytes(head[1:], "little")
        at += _HEAD
        if len(head) < _HEAD or at + size > end:
            raise OSError("the tape is cut off")
        stop = at + size
        while at < stop:
            data = os.pread(fd, min(_READ, stop - at), at)
            if not data:
                raise OSError("the tape is cut off")
            yield head[0], data
            at += len(data)


class LineEnds:
    """Takes back what a terminal made of line ends, across the borders of blocks."""

    def __init__(self) -> None:
        """Hold nothing back yet."""
        self._held = b""

    def undo(self, data: bytes) -> bytes:
        """Turn `\\r\\n` into `\\n`; a last `\\r` waits for what follows."""
        data = self._held + data
        self._held = b"\r" if data.endswith(b"\r") else b""
        if self._held:
            data = data[:-1]
        return data.replace(b"\r\n", b"\n")

    def rest(self) -> bytes:
        """Return what waits."""
        held, self._held = self._held, b""
        return held
