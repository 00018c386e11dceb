"""The rule that explains most of what failed, where none explains all of it."""

from __future__ import annotations

from itertools import combinations
from math import log

from relaunch.record import Record
from relaunch.search.conditions import Rule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.rates import Counts

    Way = tuple[int, ...]
    """The numbers of conditions that hold together."""

_MOST_WAYS = 4
_MOST_TIES = 24
_BEST_PAIRS = 40
"""So many pairs of conditions are tried with a third one."""
_BEST_WAYS = 300
"""So many ways are tried beside another one."""
_STARTS = 10
"""Further ways are added to each of so many."""


class Likeliest(Record):
    """The rules that explain most for their length, all equally."""

    rules: tuple[Rule, ...]
    is_sure: bool
    """It explains more than a rule of its length would by chance."""


def likeliest(counts: Counts) -> Likeliest:
    """Find the rule inside which the rate differs most from the rest, at a price for its length.

    One or two conditions are all tried, a third beside the best of those, and then further ways.
    """
    price = log(max(2, len(counts.table.masks))) + log(max(2, counts.total[1])) / 2
    ways = _ways(counts)
    if not ways:
        return Likeliest(rules=(), is_sure=False)
    worth = {way: gain - price * len(way) for way, gain in ways.items()}
    others = sorted(ways, key=lambda way: -ways[way])[:_BEST_WAYS]
    several = [_more_ways(counts, way, worth[way], others, price) for way in _starts(counts, worth)]
    score, chosen = max(several, key=lambda one: one[0])
    ties: list[tuple[Way, ...]] = [(way,) for way in worth if worth[way] > score - 1e-9] or [chosen]
    rules = [Rule(ways=tuple(counts.table.way(way) for way in tie)) for tie in ties]
    least = min(rule.cost for rule in rules)
    cheapest = [rule for rule in rules if rule.cost == least]
    return Likeliest(rules=tuple(cheapest[:_MOST_TIES]), is_sure=score > 0)


def _starts(counts: Counts, worth: dict[Way, float]) -> list[Way]:
    """Return the ways that explain most, and those that do so without a mistake."""
    best = sorted(worth, key=lambda way: -worth[way])
    cells = ((way, counts.cell(counts.table.mask(way))) for way in best[:_BEST_WAYS])
    pure = [way for way, (fails, runs) in cells if fails == runs]
    return list(dict.fromkeys([*best[:_STARTS], *pure[:_STARTS]]))


def _ways(counts: Counts) -> dict[Way, float]:
    """Return up to three conditions that hold together, and what they gain."""
    masks, numbers = counts.table.masks, range(len(counts.table.masks))
    factors = [condition.factor for condition in counts.table.conditions]
    found: dict[Way, float] = {(a,): counts.gain(masks[a]) for a in numbers}
    pairs: dict[Way, float] = {
        (a, b): counts.gain(masks[a] & masks[b])
        for a, b in combinations(numbers, 2)
        if factors[a] != factors[b]
    }
    for a, b in sorted(pairs, key=lambda pair: -pairs[pair])[:_BEST_PAIRS]:
        both = masks[a] & masks[b]
        for c in numbers:
            if factors[c] not in (factors[a], factors[b]):
                found[tuple(sorted((a, b, c)))] = counts.gain(both & masks[c])
    return {way: gain for way, gain in {**found, **pairs}.items() if gain > 0}


def _more_ways(
    counts: Counts, first: Way, score: float, others: list[Way], price: float
) -> tuple[float, tuple[Way, ...]]:
    """Add ways while each explains more than its price."""
    chosen: tuple[Way, ...] = (first,)
    mask, paid = counts.table.mask(first), price * len(first)
    while len(chosen) < _MOST_WAYS:
        worth = {
            way: counts.gain(mask | counts.table.mask(way)) - paid - price * len(way)
            for way in others
        }
        best = max(worth, key=lambda way: worth[way])
        if worth[best] <= score + 1e-9:
            break
        chosen, score = (*chosen, best), worth[best]
        mask, paid = mask | counts.table.mask(best), paid + price * len(best)
    return score, chosen
