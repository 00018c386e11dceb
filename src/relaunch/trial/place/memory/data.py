"""Allocations that fail: RLIMIT_DATA gives each process so much, and MemoryError beyond it."""

from __future__ import annotations

import resource

from relaunch.bytewords import in_words
from relaunch.errors import PlaceError
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.proc.left_out import left_out
from relaunch.trial.place.memory import rungs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from relaunch.recipe import Limits

_TRIED_BYTES = 64 << 20
_TRIED_S = 3.0


class DataLimit(Companion):
    """The kernel's limit of the private memory of each process by itself."""

    def __init__(self, limits: Limits, *, say: Callable[[str], object]) -> None:
        """Nothing is tried yet."""
        assert limits.memory_bytes is not None
        self._limit = limits.memory_bytes
        self._say = say

    def prepare(self) -> Mapping[str, str]:
        """See that it works here on a tiny child, and say what it means."""
        if rungs.DATA in left_out() or not works():
            raise PlaceError("--memory-by data: RLIMIT_DATA does not hold here", hint="rl doctor")
        size = in_words(self._limit)
        self._say(f"memory: {size} for each process by itself; more is a MemoryError (RLIMIT_DATA)")
        return {}

    def enter(self) -> None:
        """Limit the new process; who it starts inherits it."""
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        soft = self._limit if hard == resource.RLIM_INFINITY else min(self._limit, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def works() -> bool:
    """Tell whether a tiny child with a tiny limit gets a MemoryError."""

    def take(socket: int) -> None:
        import os

        resource.setrlimit(resource.RLIMIT_DATA, (1 << 20, resource.RLIM_INFINITY))
        try:
            bytearray(_TRIED_BYTES)
        except MemoryError:
            os.write(socket, b"+")

    child = Helper(take)
    held = child.hear(_TRIED_S) == b"+"
    child.stop()
    return held
