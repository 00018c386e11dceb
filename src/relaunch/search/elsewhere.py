"""Values worth a look although nothing is known to change there: where programs like to fail."""

from __future__ import annotations

from itertools import chain, islice, pairwise, zip_longest
from math import gcd, sqrt

from relaunch.record import Record
from relaunch.search.ladder import Scale
from relaunch.search.seen import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from relaunch.search.brackets import Known, Span
    from relaunch.search.ladder import Ladder

CHECKS = 6
"""So many values are looked at beside an edge, on both sides together."""
_WITNESSES = 4
"""A pattern is told when so many values kept it and so many others kept it by differing."""
_WIDEST_PATTERN = 4096


def checks(ladder: Ladder, scale: Scale, known: Known, edge: Span | None) -> list[int]:
    """Choose what to try once the edge is found; without an edge, all over the ladder."""
    if edge is None:
        most = CHECKS + ((ladder.size - 1).bit_length() if known.clear else 0)
        return list(islice(_fresh(_anywhere(ladder, scale, known), known), most))
    below = _fresh(_beside(ladder, scale, known, (0, edge[0]), edge[0] - 1), known)
    above = _fresh(_beside(ladder, scale, known, (edge[1], ladder.size - 1), edge[1] + 1), known)
    turns = chain.from_iterable(zip_longest(islice(above, CHECKS), islice(below, CHECKS)))
    return [place for place in turns if place is not None][:CHECKS]


def _beside(
    ladder: Ladder, scale: Scale, known: Known, side: Span, neighbour: int
) -> Iterator[int]:
    """Yield values on one side of an edge: the next one, the end, a round one less one, middles."""
    low, high = side
    yield from (place for place in (neighbour, high, low) if low <= place <= high)
    yield from islice((p for p in _before_round(ladder, reverse=True) if low <= p < high), 1)
    yield from _middles(ladder, scale, known, side)


def _anywhere(ladder: Ladder, scale: Scale, known: Known) -> Iterator[int]:
    """Yield values from all over the ladder: between round ones, next to them, and middles."""
    yield from _between_round(ladder)
    yield from _before_round(ladder)
    yield from (place for place in (1, ladder.size - 2) if 0 <= place < ladder.size)
    yield from _after_round(ladder)
    yield from _middles(ladder, scale, known, (0, ladder.size - 1))


def _fresh(places: Iterable[int], known: Known) -> Iterator[int]:
    told = set(known.taken)
    for place in places:
        if place not in told:
            told.add(place)
            yield place


def _before_round(ladder: Ladder, *, reverse: bool = False) -> list[int]:
    """Return the places of powers of two less one."""
    powers = _powers(ladder)
    return _places(ladder, (power - 1 for power in (powers[::-1] if reverse else powers)))


def _between_round(ladder: Ladder) -> list[int]:
    """Return the places half-way between powers of two."""
    return _places(ladder, (power + power // 2 for power in _powers(ladder)))


def _after_round(ladder: Ladder) -> list[int]:
    """Return the places of powers of two and one."""
    return _places(ladder, (power + 1 for power in _powers(ladder)))


def _powers(ladder: Ladder) -> list[int]:
    low, high = ladder.value(0), ladder.value(ladder.size - 1)
    if not isinstance(high, int):
        return []
    powers = (1 << exponent for exponent in range(1, high.bit_length() + 1))
    return [power for power in powers if power > low]


def _places(ladder: Ladder, values: Iterable[int]) -> list[int]:
    """Return the places of those values that are on the ladder."""
    low, high = ladder.value(0), ladder.value(ladder.size - 1)
    return [place for value in values if low <= value <= high
            and ladder.value(place := ladder.nearest(value)) == value]  # fmt: skip


def _middles(ladder: Ladder, scale: Scale, known: Known, side: Span) -> Iterator[int]:
    """Yield the middle of what is widest open, again and again."""
    marks = sorted({side[0], side[1], *(p for p in known.taken if side[0] <= p <= side[1])})
    while gaps := [(a, b) for a, b in pairwise(marks) if b - a > 1]:
        a, b = max(gaps, key=lambda gap: _width(ladder, scale, gap))
        middle = _middle(ladder, scale, a, b)
        marks = sorted([*marks, middle])
        yield middle


def _width(ladder: Ladder, scale: Scale, gap: Span) -> float:
    low, high = ladder.value(gap[0]), ladder.value(gap[1])
    return high / low if scale is Scale.LOG and low > 0 else high - low


def _middle(ladder: Ladder, scale: Scale, a: int, b: int) -> int:
    """Return a place between: on a log scale, of a wide gap of whole values, the geometric one."""
    low, high = ladder.value(a), ladder.value(b)
    if scale is Scale.LINEAR or not isinstance(high, int) or not 0 < 4 * low < high:
        return (a + b) // 2
    share = (sqrt(low * high) - low) / (high - low)
    return min(max(a + 1, a + int((b - a) * share)), b - 1)


class Pattern(Record):
    """A verdict that multiples of a number have, and nothing else."""

    modulus: int
    seen: Seen
    is_sure: bool

    @property
    def text(self) -> str:
        """Say it in words."""
        verb = "fails" if self.seen is Seen.FAILED else "passes"
        return f"{verb} only at multiples of {self.modulus}"


def pattern(passed: list[int], failed: list[int]) -> Pattern | None:
    """Return the smallest number whose multiples are just those that passed, or that failed."""
    for seen, inside, outside in ((Seen.PASSED, passed, failed), (Seen.FAILED, failed, passed)):
        common = gcd(*inside)
        for modulus in range(2, min(common, _WIDEST_PATTERN) + 1):
            if common % modulus == 0 and all(value % modulus for value in outside):
                is_sure = min(len(inside), len(outside)) >= _WITNESSES
                return Pattern(modulus=modulus, seen=seen, is_sure=is_sure)
    return None


def witnesses(ladder: Ladder, known: Known, found: Pattern) -> list[int]:
    """Return places that would keep a pattern or break it: multiples and their neighbours."""
    far = int(ladder.value(ladder.size - 1)) // found.modulus - 1
    multiples = [found.modulus * factor for factor in (3, far, 5, 7, far // 2, 9, 11, 2, 1)]
    inside = _fresh(_places(ladder, multiples), known)
    outside = _fresh(_places(ladder, [value + 1 for value in multiples]), known)
    told = [ladder.value(place) for place in known.clear]
    has = sum(value % found.modulus == 0 for value in told)
    wanted = islice(inside, max(0, _WITNESSES - has))
    return [*wanted, *islice(outside, max(0, _WITNESSES - len(told) + has))]
