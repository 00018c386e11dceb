"""Which order of threads to try next: each seed is one, and always the same.

The ways take turns: few switches at any place, priorities that change, and switches at random. Half
of the seeds only switch where this Python itself may, the others at any place that threads can see.
"""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HERE, ANYWHERE, BOTH = "here", "any", "both"
"""Where threads may switch: where this Python may, anywhere, or now so and now so."""
MOST_POINTS = 2_000_000
"""A program that takes more steps is ended: it does not end by itself."""
_WAYS: tuple[tuple[str, float], ...] = (
    ("few", 1), ("priority", 1), ("random", 0.2), ("few", 2), ("priority", 2), ("random", 0.05),
    ("few", 3), ("random", 0.5), ("priority", 3), ("few", 2), ("random", 0.01),
)  # fmt: skip


class Size(Record):
    """How many places the program has where its threads could switch, when nothing is forced."""

    here: int
    anywhere: int

    def at(self, places: str) -> int:
        """Return how many there are of a kind."""
        return self.here if places == HERE else self.anywhere


def plain(places: str) -> dict[str, Any]:
    """Return the order without any switch that is not needed."""
    return planned((), places)


def planned(plan: object, places: str, *, record: bool = False) -> dict[str, Any]:
    """Return an order that has just these switches."""
    switches = [list(one) for one in plan]  # type: ignore[attr-defined]
    return {
        "way": "plan",
        "plan": switches,
        "places": places,
        "record": record,
        "most": MOST_POINTS,
    }


def places_of(seed: int, where: str) -> str:
    """Return where a seed switches."""
    if where != BOTH:
        return where
    return HERE if seed % 2 else ANYWHERE


def order_of(seed: int, size: Size, where: str) -> dict[str, Any]:
    """Return the order that a seed is."""
    places = places_of(seed, where)
    way, number = _WAYS[seed // 2 % len(_WAYS)]
    return {
        "way": way,
        "seed": seed,
        "share": float(number),
        "changes": int(number) if number >= 1 else 0,
        "points": max(2, size.at(places)),
        "places": places,
        "record": False,
        "most": MOST_POINTS,
    }
