"""What `--memory` finds on this machine: each way is made and tried, and taken away again."""

from __future__ import annotations

from relaunch.desk.doctor import Ladder, Rung
from relaunch.errors import PlaceError
from relaunch.proc.left_out import WITHOUT, left_out
from relaunch.trial.place.memory import data, rungs
from relaunch.trial.place.memory.freezing import FreezingGroup
from relaunch.trial.place.memory.throttling import ThrottlingGroup

_TRIED = 64 << 20


def memory_ladder() -> Ladder:
    """Try the ways to limit memory."""
    return Ladder(
        name="limit",
        rungs=(
            _group("cgroup v1", FreezingGroup, "--memory is exact to the page, and freezes there"),
            _group("cgroup v2", ThrottlingGroup, "--memory slows the program down at the limit"),
            _watching(),
            Rung(
                name="RLIMIT_DATA",
                ok=data.works(),
                means="--memory-by data: each process by itself gets a MemoryError",
            ),
            Rung(name="none", ok=True, means="--memory is refused"),
        ),
    )


def _group(name: str, kind: type[FreezingGroup | ThrottlingGroup], means: str) -> Rung:
    if not left_out().isdisjoint(("cgroup", name.replace("cgroup v", "cgroup"))):
        return Rung(name=name, ok=False, means=means, raise_it=f"unset {WITHOUT}")
    group = kind(_TRIED)
    try:
        group.make()
    except PlaceError as error:
        return Rung(name=name, ok=False, means=means, raise_it=f"{error.message}: {error.hint}")
    group.remove()
    return Rung(name=name, ok=True, means=means)


def _watching() -> Rung:
    means = "--memory is exact to about 1%, whoever you are"
    try:
        rungs.check_watching()
    except PlaceError as error:
        return Rung(name="watching", ok=False, means=means, raise_it=error.message)
    return Rung(name="watching", ok=True, means=means)
