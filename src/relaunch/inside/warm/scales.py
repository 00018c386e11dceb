"""How much memory the snapshots of a program take, and which has to go for it.

To measure a large process takes the kernel long: so it is one at a time, in little of our time.
"""

from __future__ import annotations

import time

from . import ladder, machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .choice import Snapshot

_EVERY_S = 3.0
"""How often the memory of all snapshots is measured, unless that is much work."""
_SHARE_OF_TIME = 0.02
_SOON_S = 0.02
_SHARE_OF_MEMORY = 0.25
_LOW_MEMORY = 0.05


class Scales:
    """Weighs the snapshots of one program against what they may take together."""

    def __init__(self, memory: Callable[[], tuple[int, int]] = machine.memory) -> None:
        """Ask `memory` how many bytes there are at all, and how many are left."""
        self.wish_bytes = 0.0
        """What a person allows; 0 if nobody said."""
        self.due_at = time.monotonic() + _EVERY_S
        """When to measure the next."""
        self._memory = memory
        self._waiting: list[Snapshot] = []

    @property
    def allowed_bytes(self) -> float:
        """How much all snapshots may take together."""
        return self.wish_bytes or _SHARE_OF_MEMORY * self._memory()[0] or float("inf")

    def put_first(self, snapshot: Snapshot) -> None:
        """Measure a new snapshot soon."""
        self._waiting.insert(0, snapshot)
        self.due_at = min(self.due_at, time.monotonic() + _SOON_S)

    def put_all(self, snapshots: Sequence[Snapshot]) -> None:
        """Measure all anew, from now on: one is gone, so the others have larger shares."""
        self._waiting = [*snapshots]
        self.due_at = min(self.due_at, time.monotonic())

    def measure(self, snapshots: Sequence[Snapshot], others: set[int]) -> None:
        """Measure one of the snapshots that are there, and say when the next is due.

        `others` as for `weigh`.
        """
        self._waiting = [one for one in self._waiting if one in snapshots] or [*snapshots]
        began = time.monotonic()
        if self._waiting:
            weigh(self._waiting.pop(0), others)
        now = time.monotonic()
        pause = (now - began) / _SHARE_OF_TIME
        self.due_at = now + (pause if self._waiting else max(pause, _EVERY_S))

    def to_drop(self, snapshots: Sequence[Snapshot], is_one_going: bool) -> Snapshot | None:
        """Return which snapshot goes: there are too many, or too little memory is left.

        For memory one at a time: what the last one gave is known only when it is gone.
        """
        if len(snapshots) > ladder.MOST:
            victim = ladder.to_drop(snapshots)
            if victim is not None:
                return victim
        if is_one_going or not snapshots:
            return None
        total, available = self._memory()
        is_low = available < _LOW_MEMORY * total
        allowed = self.allowed_bytes
        if not is_low and sum(one.pss for one in snapshots) <= allowed:
            return None
        too_large = ladder.too_large(snapshots, allowed)
        if too_large is None and not is_low and any(one.alone > allowed for one in snapshots):
            return (
                None  # a run came from it: it goes when that has ended, and then the rest may fit
            )
        return too_large or ladder.to_drop(snapshots, memory_is_short=True)


def weigh(snapshot: Snapshot, others: set[int]) -> None:
    """Measure a snapshot, with the process that it forked ahead of time.

    `others` are processes that may be below it and do not count: other snapshots, and runs.
    """
    share, snapshot.alone = machine.memory_of(snapshot.pid)
    ahead = machine.below(snapshot.pid, others)
    snapshot.pss = share + sum(machine.memory_of(pid)[0] for pid in ahead)
