"""Pauses a program near the most memory that it had the last time, for a person to look."""

from __future__ import annotations

import os

from relaunch.bytewords import in_words
from relaunch.recipe import Limits
from relaunch.trial.place.memory import rungs
from relaunch.trial.place.memory.limit import MemoryLimit
from relaunch.trial.place.memory.meter import ResidentMeter
from relaunch.trial.place.memory.watcher import PAUSE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.trial.place.memory.watcher import Meter

_NEAR = 0.99


class PeakPause(MemoryLimit):
    """A limit that is no limit: it only pauses, near a peak that was seen before."""

    def __init__(
        self,
        peak_bytes: int,
        *,
        folder: str,
        roots: Sequence[str],
        say: Callable[[str], object],
        clean: Callable[[bytes], bytes],
    ) -> None:
        """Take the peak as a watched run tells it."""
        limits = Limits(memory_bytes=int(peak_bytes * _NEAR), at_limit=PAUSE)
        super().__init__(limits, folder=folder, roots=roots, say=say, clean=clean)
        self._peak_bytes = peak_bytes

    def _climb(self) -> str:
        rungs.check_watching()
        return f"pauses at 99% of its last peak, {in_words(self._peak_bytes)}"

    def _meter(self) -> Meter:
        return ResidentMeter(os.getpid(), self._limit)
