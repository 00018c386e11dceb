"""The ways to limit memory, best first; each is made and proven before it is taken."""

from __future__ import annotations

import os
import sys

from relaunch.errors import PlaceError
from relaunch.proc.left_out import WITHOUT, left_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.trial.place.memory.freezing import FreezingGroup
    from relaunch.trial.place.memory.throttling import ThrottlingGroup

    Group = FreezingGroup | ThrottlingGroup

CGROUP1, CGROUP2, WATCH, DATA = "cgroup1", "cgroup2", "watch", "data"


def make_group(limit: int) -> tuple[str, Group | None, list[PlaceError]]:
    """Make the best group that works here; none, and why each does not."""
    from relaunch.trial.place.memory.freezing import FreezingGroup
    from relaunch.trial.place.memory.throttling import ThrottlingGroup

    why: list[PlaceError] = []
    made: tuple[tuple[str, type[Group]], ...]
    made = ((CGROUP1, FreezingGroup), (CGROUP2, ThrottlingGroup))
    for name, kind in made:
        if not left_out().isdisjoint((name, "cgroup")):
            why.append(PlaceError(f"{name} is left out by {WITHOUT}"))
            continue
        group = kind(limit)
        try:
            group.make()
        except PlaceError as error:
            why.append(error)
        else:
            return name, group, why
    return "", None, why


def check_watching() -> None:
    """Raise a PlaceError where processes cannot be watched."""
    if WATCH in left_out():
        raise PlaceError(f"{WATCH} is left out by {WITHOUT}")
    if sys.platform != "linux" or not os.path.exists("/proc/self/statm"):
        raise PlaceError(
            "memory limits need Linux with /proc: this machine has none", hint="ulimit -v"
        )
