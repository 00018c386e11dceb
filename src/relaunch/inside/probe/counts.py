"""How often each probe was reached, in a mapped file: it survives `os._exit` and SIGKILL."""

from __future__ import annotations

import os

from relaunch.inside.probe.memory import mapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

ENDING = ".counts"
ENOUGH = 10_000
"""A line that was counted so often is known to run: from then on it runs without us."""
HITS, PASSED = 0, 1
"""Of each probe: how often it fired, and how often its condition said no."""


class Counts:
    """Numbers in memory that a file of this process shows to everybody else."""

    def __init__(self, folder: str, probes: int) -> None:
        """Begin at zero."""
        self._folder = folder
        self._size = 16 * max(probes, 1)
        self.values = memoryview(bytearray(self._size)).cast("q")
        self.begin()

    def begin(self) -> None:
        """Have a file for this process; after a fork, the child's own. Without one, just count."""
        try:
            memory = mapped(f"{self._folder}/{os.getpid()}{ENDING}", self._size)
        except OSError:
            memory = memoryview(bytearray(self._size))
        self.values = memory.cast("q")


def read_counts(data: bytes, probes: int) -> Mapping[int, tuple[int, int]]:
    """Read such a file: probe to how often it fired and how often its condition said no."""
    if len(data) < 16 * probes:
        return {}
    values = memoryview(data[: 16 * probes]).cast("q")
    return {n: (values[2 * n + HITS], values[2 * n + PASSED]) for n in range(probes)}
