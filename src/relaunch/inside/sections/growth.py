"""Does memory grow from one iteration to the next? A slope that is above the noise, or nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Points = Sequence[tuple[int, int]]

LEAST = 5
"""So many iterations are needed after the first ones, in which caches are filled."""
_PARTS = 4
_LEAST_BYTES = 1 << 20
"""What is kept in all must be more than allocators and counters of pages play with."""
_EVEN = 0.4
"""Each part must grow by this share of an even growth: what slows down is a cache that fills."""
_ORDER = 0.6
"""Of all pairs, so many more must go up than down (Kendall's tau)."""


def growth(points: Points) -> float:
    """Return how many bytes an iteration leaves behind for good; 0 if that cannot be said.

    `points` are numbers of iterations, rising, and the memory at the end of each. Robust: the slope
    is the median over all pairs (Theil-Sen), and only what stays through every part of the run
    counts: of each part the lowest memory, so that peaks and what is collected later say nothing.
    """
    points = points[_warming(len(points)) :]
    if len(points) < LEAST:
        return 0.0
    slopes, order = _pairs(points)
    slope = slopes[len(slopes) // 2]
    span = points[-1][0] - points[0][0]
    if slope <= 0 or slope * span < _LEAST_BYTES or order < _ORDER:
        return 0.0
    floors = _floors(points)
    steps = [floors[n + 1] - floors[n] for n in range(len(floors) - 1)]
    even = slope * span / len(floors)
    if not steps or min(steps) < _EVEN * even:
        return 0.0
    return slope


def _warming(count: int) -> int:
    """Return how many of the first iterations to leave out."""
    return min(count // 5, 20) if count > LEAST + 1 else 1


def _pairs(points: Points) -> tuple[list[float], float]:
    slopes = []
    balance = 0
    for n, (at, value) in enumerate(points):
        for later, after in points[n + 1 :]:
            slopes.append((after - value) / (later - at))
            balance += (after > value) - (after < value)
    slopes.sort()
    return slopes, balance / len(slopes)


def _floors(points: Points) -> list[int]:
    """Return the lowest memory of each part of the run."""
    parts = min(_PARTS, len(points) // 2)
    size = len(points) / parts
    cuts = [round(n * size) for n in range(parts + 1)]
    return [min(value for _, value in points[cuts[n] : cuts[n + 1]]) for n in range(parts)]
