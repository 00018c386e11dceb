"""Those at the other ends of a host's connections: snapshots, programs, clients."""

from __future__ import annotations

import mmap
import os
import time

from . import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any

    from .choice import Snapshot
    from .importable import Importable

_SHORTEST_TICK_S = 0.05
_TICK_SHARE = 0.02


class Peer:
    """Somebody who is connected."""

    def __init__(self, link: socket.socket, pid: int) -> None:
        self.stream = wire.Stream(link)
        self.pid = pid
        self.is_gone = False
        self.events = 0
        self.pidfd = -1
        """The process, if it is a snapshot."""
        self.snapshot: Snapshot | None = None
        self.hello: dict[str, Any] | None = None
        """What a snapshot said of itself, until the sources it was made of are known."""
        self.running: Running | None = None


class Running:
    """A program that runs: its flags are set now and then, so that loops get a chance to stop."""

    def __init__(
        self, pid: int, elapsed: float, flags: int, number: int, start: Importable
    ) -> None:
        """Raise ProcessLookupError if it is gone already."""
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        """Its connection may be open for longer than it lives: its own children have it as well."""
        self.number = number
        self.start = start
        self.began = time.monotonic() - elapsed
        size = os.fstat(flags).st_size
        self._flags = mmap.mmap(flags, size) if size else None
        self._all = b"\1" * size
        self.due_at = 0.0
        self.plan()

    def plan(self) -> None:
        """Say when the flags are set next."""
        now = time.monotonic()
        self.due_at = now + max(_SHORTEST_TICK_S, _TICK_SHARE * (now - self.began))

    def tick(self) -> None:
        """Set all flags."""
        if self._flags is not None:
            self._flags[:] = self._all
        self.plan()

    def close(self) -> None:
        """Let go of it."""
        os.close(self.pidfd)
        if self._flags is not None:
            self._flags.close()
