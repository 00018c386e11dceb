"""How the parts of a warm program talk: messages with file descriptors over private sockets.

Each message is its length, four bytes, and JSON; descriptors travel with its first byte. A message
is read in two steps, length and rest, never further: so descriptors cannot get to the wrong one.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct

from .where import Address, check_folder, socket_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Message = tuple[dict[str, Any], list[int]]

MOST_BYTES = 1 << 28
"""A longer message is none of ours."""
_MOST_FDS = 16
_ENOUGH_WAITING = 1 << 18
"""Who leaves more than this unread is not listened to until it has been read."""
_HEAD = 4
_FD_SPACE = socket.CMSG_SPACE(_MOST_FDS * 4)


def connect(run: str, key: str) -> socket.socket:
    """Return a connection to the host of a program; OSError if there is none, or not ours."""
    check_folder(run)
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with Address(socket_path(run, key)) as address:
            link.connect(address)
        if peer_of(link)[1] != os.geteuid():
            raise PermissionError(f"`{socket_path(run, key)}` belongs to somebody else")
    except BaseException:
        link.close()
        raise
    return link


def peer_of(link: socket.socket) -> tuple[int, int]:
    """Return process and user at the other end, as the kernel knows them."""
    packed = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid, uid, _ = struct.unpack("iii", packed)
    return pid, uid


# --- for those who may wait


def send(link: socket.socket, message: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send a message with descriptors; they stay open here."""
    data = encode(message)
    sent = link.sendmsg([data], _carrying(fds), socket.MSG_NOSIGNAL)
    if sent < len(data):
        link.sendall(data[sent:], socket.MSG_NOSIGNAL)


def receive(link: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Wait for a message and its descriptors; None at the end of the stream."""
    stream = Stream(link)
    while True:
        try:
            if not stream.pull():
                stream.forget()
                return None, []
        except BaseException:
            stream.forget()
            raise
        if stream.is_complete:
            return stream.take()


def encode(message: dict[str, Any]) -> bytes:
    """Write a message as it is sent."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(body) > MOST_BYTES:
        raise OSError("the message is too long")
    return struct.pack("<I", len(body)) + body


def _carrying(fds: Sequence[int]) -> list[tuple[int, int, bytes]]:
    if not fds:
        return []
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds).tobytes())]


# --- for one who may not


class Stream:
    """One end of a connection, read and written piece by piece as the other end allows."""

    def __init__(self, link: socket.socket) -> None:
        """The socket may block or not: nothing here is done twice."""
        self.link = link
        self._message: dict[str, Any] | None = None
        """The message that is complete, until it is taken."""
        self._piece = bytearray()
        self._wanted = _HEAD
        self._is_body = False
        self._fds: list[int] = []
        self._waiting: list[tuple[bytes, list[int]]] = []
        self._size = 0

    # --- reading

    @property
    def is_complete(self) -> bool:
        """True while there is a message to take."""
        return self._message is not None

    def pull(self) -> bool:
        """Read once, never past the end of a message; False at the end of the stream.

        BlockingIOError when there is nothing, OSError when what came is no message.
        """
        missing = self._wanted - len(self._piece)
        data, extra, _, _ = self.link.recvmsg(missing, _FD_SPACE, socket.MSG_CMSG_CLOEXEC)
        for level, kind, packed in extra:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                whole = len(packed) - len(packed) % 4
                self._fds += array.array("i", packed[:whole])
        self._piece += data
        if len(self._piece) == self._wanted and data:
            self._complete()
        return bool(data)

    def _complete(self) -> None:
        piece = bytes(self._piece)
        self._piece.clear()
        if not self._is_body:
            (self._wanted,) = struct.unpack("<I", piece)
            self._is_body = True
            if not 0 < self._wanted <= MOST_BYTES:
                raise OSError("not a message of ours")
            return
        self._wanted, self._is_body = _HEAD, False
        try:
            message = json.loads(piece)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise OSError("not a message of ours")
        self._message = message

    def take(self) -> Message:
        """Return the message that is complete, and its descriptors, which are the caller's now."""
        assert self._message is not None
        taken = self._message, self._fds
        self._message, self._fds = None, []
        return taken

    def forget(self) -> None:
        """Close what came with a message that nobody took, and what was never sent."""
        for fd in [*self._fds, *(fd for _, fds in self._waiting for fd in fds)]:
            os.close(fd)
        self._fds, self._waiting, self._size = [], [], 0

    # --- writing

    @property
    def is_waiting(self) -> bool:
        """True while something was not sent yet."""
        return bool(self._waiting)

    @property
    def is_full(self) -> bool:
        """True while the other end leaves too much unread to get more answers."""
        return self._size > _ENOUGH_WAITING

    def put(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """Send a message as soon as that can be done; the descriptors are taken out and closed."""
        data = encode(message)
        taken = [*(fds or ())]
        if fds:
            fds.clear()
        self._waiting.append((data, taken))
        self._size += len(data)
        self.push()

    def push(self) -> None:
        """Send as much as the other end takes now."""
        while self._waiting:
            data, fds = self._waiting[0]
            try:
                sent = self.link.sendmsg(
                    [data], _carrying(fds), socket.MSG_NOSIGNAL | socket.MSG_DONTWAIT
                )
            except BlockingIOError:
                return
            self._size -= sent
            self._waiting[0] = data[sent:], []
            for fd in fds:
                os.close(fd)
            if sent == len(data):
                del self._waiting[0]
