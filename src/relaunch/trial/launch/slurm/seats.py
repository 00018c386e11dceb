"""Which node a program of a search goes to: the one with the fewest of ours, here and elsewhere."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 64
"""Programs of ours on one node."""


class Seat:
    """A place on a node, taken by a lock of a file, which the system lets go when we die."""

    def __init__(self, folder: str, nodes: Sequence[str]) -> None:
        """Take the first that is free, each node once before any has two."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._file = -1
        self.node = nodes[os.getpid() % len(nodes)]
        for number in range(_MOST):
            for node in nodes:
                if self._take(os.path.join(folder, f"{node}.{number}")):
                    self.node = node
                    return

    def _take(self, path: str) -> bool:
        import fcntl

        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True

    def close(self) -> None:
        """Let somebody else have it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
