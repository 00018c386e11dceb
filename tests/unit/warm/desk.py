"""A switchboard in this process, and whoever calls it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relaunch.inside.warm.peers import Peer
from relaunch.inside.warm.switchboard import Switchboard

PATIENCE_S = 300.0


class Desk:
    """All that the switchboard says is noted."""

    def __init__(self, folder: Path) -> None:
        self.heard: list[tuple[Peer, dict[str, Any]]] = []
        self.gone: list[Peer] = []
        self.on_gone: Callable[[Peer], object] = lambda _: None
        self.troubles: list[Exception] = []
        self.address = str(folder / "socket")
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(self.address)
        listener.listen()
        self.board = Switchboard(listener, self._heed, self._gone, self.troubles.append)
        self._callers: list[socket.socket] = []

    def _heed(self, peer: Peer, message: dict[str, Any], _: list[int]) -> None:
        self.heard.append((peer, message))
        if "raise" in message:
            raise ValueError(message["raise"])

    def _gone(self, peer: Peer) -> None:
        self.gone.append(peer)
        self.on_gone(peer)

    def call(self) -> tuple[socket.socket, Peer]:
        """Connect somebody."""
        known = {*self.board.peers}
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        link.settimeout(PATIENCE_S)
        link.connect(self.address)
        self._callers.append(link)
        self.board.turn(PATIENCE_S)
        (peer,) = self.board.peers - known
        return link, peer

    def close(self) -> None:
        for peer in [*self.board.peers]:
            self.board.drop(peer)
        self.board.close()
        for link in self._callers:
            link.close()
