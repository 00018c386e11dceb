"""The connections of a host: hears all who are connected at once, and waits for none of them.

It knows no message: what is complete is handed on, and so is the news that somebody is gone.
"""

from __future__ import annotations

import os
import select
import selectors
import time

from . import wire
from .peers import Peer

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

    Heed = Callable[[Peer, dict[str, Any], list[int]], object]

_MOST_PULLS = 32
"""How often one peer is read from before it is the others' turn."""
_LAST_WORDS_S = 1.0
"""What all peers together get to read their last answers."""


class Switchboard:
    """One listener, those who came by it, and other descriptors that somebody waits for."""

    def __init__(
        self,
        listener: socket.socket,
        heed: Heed,
        gone: Callable[[Peer], object],
        trouble: Callable[[Exception], object],
    ) -> None:
        """Let `heed` have each message, who takes out of its descriptors what it keeps.

        `gone` hears of each connection that ended, `trouble` of what `heed` should not have raised.
        """
        self.peers: set[Peer] = set()
        self._heed = heed
        self._gone = gone
        self._trouble = trouble
        self._selector = selectors.DefaultSelector()
        self._listener: socket.socket | None = listener
        listener.setblocking(False)
        self.watch(listener.fileno(), self._accept)

    def turn(self, patience_s: float) -> None:
        """Attend to all who have something for us, or wait for the first; not for longer."""
        for key, events in self._selector.select(patience_s):
            if isinstance(key.data, Peer):
                self._attend(key.data, events)
            else:
                key.data()

    def watch(self, fd: int, heed: Callable[[], object]) -> None:
        """Call `heed` at each turn in which a descriptor can be read, until `unwatch`."""
        self._selector.register(fd, selectors.EVENT_READ, heed)

    def unwatch(self, fd: int) -> None:
        """Wait no more for a descriptor, which is still open."""
        self._selector.unregister(fd)

    def close(self) -> None:
        """Let nobody new in."""
        if self._listener is not None:
            self.unwatch(self._listener.fileno())
            self._listener.close()
            self._listener = None

    def say(self, peer: Peer, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """Send a message to a peer, who may be gone; descriptors that go with it are taken out."""
        if peer.is_gone:
            return
        try:
            peer.stream.put(message, fds)
            self._listen_to(peer)
        except OSError:
            self.drop(peer)

    def drop(self, peer: Peer) -> None:
        """End a connection."""
        if peer.is_gone:
            return
        peer.is_gone = True
        self.peers.discard(peer)
        if peer.events:
            self._selector.unregister(peer.stream.link)
        peer.stream.forget()
        peer.stream.link.close()
        self._gone(peer)

    def drop_after_last_words(self, peer: Peer) -> None:
        """End the connection of a process that ended; what it said before is heard first."""
        self._attend(peer, selectors.EVENT_READ)
        self.drop(peer)

    def flush(self) -> None:
        """Let those have their last answer who read it soon."""
        until = time.monotonic() + _LAST_WORDS_S
        for peer in self.peers:
            try:
                while peer.stream.is_waiting:
                    left = max(0.0, until - time.monotonic())
                    if not select.select([], [peer.stream.link], [], left)[1]:
                        break
                    peer.stream.push()
            except OSError:
                pass

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            link, _ = self._listener.accept()
            pid, uid = wire.peer_of(link)
        except OSError:
            return
        if uid != os.geteuid():
            link.close()
            return
        link.setblocking(False)
        peer = Peer(link, pid)
        self.peers.add(peer)
        self._listen_to(peer)

    def _listen_to(self, peer: Peer) -> None:
        if peer.is_gone:
            return
        events = 0 if peer.stream.is_full else selectors.EVENT_READ
        if peer.stream.is_waiting:
            events |= selectors.EVENT_WRITE
        if events == peer.events:
            return
        if peer.events:
            self._selector.modify(peer.stream.link, events, peer)
        else:
            self._selector.register(peer.stream.link, events, peer)
        peer.events = events

    def _attend(self, peer: Peer, events: int) -> None:
        """Read and write as far as a peer lets us; what goes wrong with it ends only it."""
        if peer.is_gone:
            return
        try:
            if events & selectors.EVENT_WRITE:
                peer.stream.push()
            if events & selectors.EVENT_READ and not self._pull(peer):
                self.drop(peer)
                return
            self._listen_to(peer)
        except OSError:
            self.drop(peer)
        except Exception as error:
            self._trouble(error)
            self.drop(peer)

    def _pull(self, peer: Peer) -> bool:
        """Read what is there, but not for ever; False at the end of the stream."""
        for _ in range(_MOST_PULLS):
            if peer.is_gone or peer.stream.is_full:
                break
            try:
                if not peer.stream.pull():
                    return False
            except BlockingIOError:
                return True
            if peer.stream.is_complete:
                message, fds = peer.stream.take()
                try:
                    self._heed(peer, message, fds)
                finally:  # who uses them takes them out
                    for fd in fds:
                        os.close(fd)
        return True
