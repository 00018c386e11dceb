"""Does memory grow from one iteration to the next? A slope that is above the noise, or nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Points = Sequence[tuple[int, int]]

LEAST = 5
"""So many iterations are needed after the first ones, in which caches are filled."""
_LEAST_BYTES = 2 << 20
"""What is kept in all must be more than allocators and counters of pages play with."""
_ORDER = 0.75
"""Of all pairs, so many more must go up than down (Kendall's tau)."""
_STEADY = 0.65
"""The second half must grow at this share of the first: what slows down is a cache that fills."""
_MOST = 64
"""So many points are looked at."""
_PARTS = 4
_FEW = 8
"""Of fewer iterations, each is a part."""
_EVEN = 0.4
"""Each part must rise by this share of an even rise: a few jumps are no growth."""


def growth(points: Points) -> float:
    """Return how many bytes an iteration leaves behind for good; 0 if that cannot be said.

    `points` are numbers of iterations, rising, and the memory at the end of each. Robust: a slope
    is the median over all pairs (Theil-Sen), and only what stays through every part of the run
    counts: of each part the lowest memory, so that peaks and what is collected later say nothing.
    """
    points = _thinned(points[_warming(len(points)) :])
    values = [value for _, value in points]
    if len(points) < LEAST or max(values) - min(values) < _LEAST_BYTES:
        return 0.0
    slope, order = _trend(points)
    span = points[-1][0] - points[0][0]
    if slope <= 0 or slope * span < _LEAST_BYTES or order < _ORDER:
        return 0.0
    middle = len(points) // 2
    before, after = _trend(points[: middle + 1])[0], _trend(points[middle:])[0]
    if after < _STEADY * before:
        return 0.0
    floors = _floors(points)
    steps = [floors[n + 1] - floors[n] for n in range(len(floors) - 1)]
    if min(steps) < _EVEN * slope * span / len(floors):
        return 0.0
    return slope


def _warming(count: int) -> int:
    """Return how many of the first iterations to leave out."""
    return min(count // 5, 20) if count > LEAST + 1 else 1


def _thinned(points: Points) -> Points:
    """Leave some out: what is asked of all pairs has its price."""
    return points[:: -(-len(points) // _MOST) or 1]


def _trend(points: Points) -> tuple[float, float]:
    """Return the slope, and how many more of all pairs go up than down."""
    slopes = []
    balance = 0
    for n, (at, value) in enumerate(points):
        for later, after in points[n + 1 :]:
            slopes.append((after - value) / (later - at))
            balance += (after > value) - (after < value)
    slopes.sort()
    return slopes[len(slopes) // 2], balance / len(slopes)


def _floors(points: Points) -> list[int]:
    """Return the lowest memory of each part of the run."""
    parts = _PARTS if len(points) >= _FEW else len(points)
    size = len(points) / parts
    cuts = [round(n * size) for n in range(parts + 1)]
    return [min(value for _, value in points[cuts[n] : cuts[n + 1]]) for n in range(parts)]
