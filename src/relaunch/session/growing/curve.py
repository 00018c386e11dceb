"""How time and memory grow with a size, and where they come to a limit."""

from __future__ import annotations

from relaunch.inside.warm.machine import memory
from relaunch.search.order import fit, reach_interval, reaches
from relaunch.search.seen import Seen
from relaunch.session.growing.told import Measure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.grown import Look
    from relaunch.session.growing.told import Request

TIME, MEMORY = "time", "memory"
_FAR, _FARTHEST = 1e3, 1e6
"""Beyond so many times what was tried a curve tells nothing; the first if nobody named a limit."""


def measures(looks: Sequence[Look], request: Request) -> tuple[Measure, ...]:
    """Fit both to the runs that tell something of them."""
    counted = telling(looks)
    times = [(one.value, one.seconds) for one in counted if one.seconds]
    peaks = [(one.value, float(one.peak_bytes)) for one in counted if one.peak_bytes]
    time_limit = request.time_limit or request.recipe.limits.timeout_s
    memory_limit = request.memory_limit or memory()[0] or None
    return (
        _measure(TIME, times, time_limit, is_given=request.time_limit is not None),
        _measure(MEMORY, peaks, memory_limit, is_given=request.memory_limit is not None),
    )


def telling(looks: Sequence[Look]) -> list[Look]:
    """Return the runs that passed: one that fails ends early. If none did, those that failed."""
    passed = [one for one in looks if one.seen is Seen.PASSED]
    return passed or [one for one in looks if one.seen is Seen.FAILED]


def _measure(
    name: str, points: Sequence[tuple[float, float]], limit: float | None, *, is_given: bool
) -> Measure:
    found = fit(points)
    least, most = reach_interval(found, limit) or (None, None) if limit else (None, None)
    far = (_FARTHEST if is_given else _FAR) * max((size for size, _ in points), default=0.0)
    at = reaches(found, limit) if limit else None
    return Measure(
        name=name,
        fit=found,
        limit=limit,
        is_given=is_given,
        reaches=_within(at, far),
        earliest=_within(least, far),
        latest=_within(most, far),
    )


def _within(size: float | None, far: float) -> float | None:
    return size if size is not None and size <= far else None
