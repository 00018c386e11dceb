"""The cheapest rules that tell failing cases from passing ones without a mistake; all of them."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.conditions import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from relaunch.search.conditions import Table

    Way = tuple[tuple[int, ...], int, int]
    """The numbers of its conditions, the cases it holds in, and its cost."""

MOST_WAYS = 4
MOST_RULES = 24
"""Of rules that are equally cheap, so many are told."""
_MOST_COST = 15
"""About seven conditions: more explains nothing to a person."""
_MOST_TOGETHER = 6
_MOST_BESIDE_NOT = 3
_MOST_STEPS = 150_000


class Separation(Record):
    """Rules that are equally cheap: what was seen cannot tell them apart."""

    rules: tuple[Rule, ...]
    is_complete: bool
    """There is no other such rule; False if there were too many to look at."""


class _TooManyError(Exception):
    """The search has taken all the steps it may."""


def separate(table: Table, failing: int, passing: int) -> Separation:
    """Find all rules of the least cost that hold in every failing case and in no passing one.

    A rule has up to four ways of together up to seven conditions; a way has at most one `!=` or
    range.
    """
    search = _Search(table, passing)
    found: dict[frozenset[tuple[int, ...]], Rule] = {}
    try:
        for budget in range(_MOST_COST + 1):
            for ways in search.covers(failing, budget, MOST_WAYS):
                key = frozenset(numbers for numbers, _, _ in ways)
                found.setdefault(key, _rule(table, key))
                if len(found) > MOST_RULES:
                    raise _TooManyError
            if found:
                break
    except _TooManyError:
        return Separation(rules=tuple(found.values())[:MOST_RULES], is_complete=False)
    return Separation(rules=tuple(found.values()), is_complete=True)


def _rule(table: Table, ways: frozenset[tuple[int, ...]]) -> Rule:
    return Rule(ways=tuple(table.way(numbers) for numbers in sorted(ways)))


class _Search:
    """Covers the failing cases one by one, each by a way in which nothing passes.

    Some way must hold in the first failing case that is left, and few conditions do: so few ways
    are tried. A way is as short as can be: with a condition less, something in it would pass. The
    cheapest rules have no others.
    """

    def __init__(self, table: Table, passing: int) -> None:
        self._table = table
        self._passing = passing
        self._steps = 0
        self._found: dict[int, list[list[Way]]] = {}
        """For each case the ways of no condition, of one, of two, ..."""
        self._open: dict[int, list[Way]] = {}
        """What is not enough: longer ways begin so."""

    def covers(self, left: int, budget: int, most: int) -> Iterator[list[Way]]:
        """Yield up to `most` ways that hold in all cases left and cost no more than the budget."""
        first = (left & -left).bit_length() - 1
        for way in self._ways(first, budget):
            rest = left & ~way[1]
            if not rest:
                yield [way]
            elif most > 1:
                for others in self.covers(rest, budget - way[2] - 1, most - 1):
                    yield [way, *others]

    def _ways(self, place: int, budget: int) -> Iterator[Way]:
        """Yield the ways that hold in a case, the short ones first."""
        levels = self._found.setdefault(place, [])
        for size in range(min(budget // 2, _MOST_TOGETHER) + 1):
            if size == len(levels):
                levels.append(self._longer(place, size))
            for way in levels[size]:
                self._step()
                if way[2] <= budget:
                    yield way

    def _longer(self, place: int, size: int) -> list[Way]:
        """Return the ways of that many conditions, and keep what is not enough."""
        nothing: Way = ((), self._table.everything, 0)
        tried = list(self._extended(place, size)) if size else [nothing]
        self._open[place] = [way for way in tried if way[1] & self._passing]
        return [way for way in tried if not way[1] & self._passing and self._is_short(way)]

    def _extended(self, place: int, size: int) -> Iterator[Way]:
        """Yield each open way with one condition more; a `!=` or a range comes last and ends it."""
        conditions, masks = self._table.conditions, self._table.masks
        here = [
            (number, conditions[number])
            for number, mask in enumerate(masks)
            if mask >> place & 1 and (size <= _MOST_BESIDE_NOT or conditions[number].is_plain)
        ]
        for numbers, mask, cost in self._open[place]:
            last = numbers[-1] if numbers else -1
            if last >= 0 and not conditions[last].is_plain:
                continue
            told = {conditions[number].factor for number in numbers}
            for number, condition in here:
                if number > last and condition.factor not in told:
                    self._step()
                    yield (*numbers, number), mask & masks[number], cost + condition.cost

    def _is_short(self, way: Way) -> bool:
        """Tell whether no condition can be left out."""
        numbers = way[0]
        return all(
            self._table.mask([*numbers[:place], *numbers[place + 1 :]]) & self._passing
            for place in range(len(numbers))
        )

    def _step(self) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise _TooManyError
