"""Pairs of settings that do together what neither of them does alone."""

from __future__ import annotations

from itertools import combinations
from math import erfc, exp, lgamma, log, sqrt

from relaunch.record import Record
from relaunch.search.rates import likelihood

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from relaunch.search.conditions import Condition, Rule
    from relaunch.search.rates import Cell, Counts

    Pair = tuple[int, int]

_MOST = 24
"""So many pairs, the most telling ones, are looked at closely."""
_CHANCE = 0.05
"""What happens by chance more often than this is not told."""
_ROUNDS = 300


class Interaction(Record):
    """Two conditions that together do more than each of them alone."""

    both: tuple[Condition, Condition]
    fails: int
    runs: int
    expected: float
    """The rate if each did only what it does alone."""
    chance: float
    """How likely it is if they do not interact, for as many pairs as were looked at."""


def interactions(counts: Counts, rule: Rule | None) -> list[Interaction]:
    """Return pairs of values that fail more often together than their own effects explain.

    Nor may the rule explain it by what the cases of the pair have in common besides.
    """
    cells = _cells(counts)
    telling = sorted(
        (pair for pair in cells if _is_worse_together(cells[pair])),
        key=lambda pair: -_excess(cells[pair]),
    )[:_MOST]
    found = [_interaction(counts, pair, cells[pair], len(cells)) for pair in telling]
    if rule is not None:
        explained = [_chance_by_rule(counts, pair, rule) * len(cells) for pair in telling]
        found = [
            one.but(chance=min(1.0, max(one.chance, chance)))
            for one, chance in zip(found, explained, strict=True)
        ]
    return sorted((one for one in found if one.chance < _CHANCE), key=lambda one: one.chance)


def _chance_by_rule(counts: Counts, pair: Pair, rule: Rule) -> float:
    """Return how likely so many failures of a pair are if only the rule matters."""
    table = counts.table
    first, second = (table.conditions[number] for number in pair)
    if any(first in way and second in way for way in rule.ways):
        return 0.0
    holding, both = table.holding(rule), table.mask(pair)
    inside = counts.cell(holding)
    outside = counts.outside(inside)
    fails, runs = counts.cell(both)
    under_rule = counts.cell(both & holding)[1]
    expected = under_rule * _share(inside) + (runs - under_rule) * _share(outside)
    return at_least(fails, runs, expected / runs)


def _share(cell: Cell) -> float:
    return cell[0] / cell[1] if cell[1] else 0.0


def at_least(fails: int, runs: int, rate: float) -> float:
    """Return the chance of so many failures or more."""
    if fails == 0 or rate >= 1:
        return 1.0
    if rate <= 0:
        return 0.0
    return min(1.0, sum(exp(_log_binomial(n, runs, rate)) for n in range(fails, runs + 1)))


def _log_binomial(fails: int, runs: int, rate: float) -> float:
    ways = lgamma(runs + 1) - lgamma(fails + 1) - lgamma(runs - fails + 1)
    return ways + fails * log(rate) + (runs - fails) * log(1 - rate)


def _cells(counts: Counts) -> dict[Pair, list[Cell]]:
    """Return for pairs of values the counts with neither, only the first, the second, both."""
    table = counts.table
    alone = [counts.cell(mask) for mask in table.masks]
    values = [number for number, one in enumerate(table.conditions) if one.is_plain]
    found: dict[Pair, list[Cell]] = {}
    for a, b in combinations(values, 2):
        if table.conditions[a].factor == table.conditions[b].factor:
            continue
        both = counts.cell(table.masks[a] & table.masks[b])
        only_a, only_b = _less(alone[a], both), _less(alone[b], both)
        neither = _less(_less(_less(counts.total, only_a), only_b), both)
        if min(both[1], only_a[1], only_b[1]):
            found[a, b] = [neither, only_a, only_b, both]
    return found


def _less(whole: Cell, part: Cell) -> Cell:
    return whole[0] - part[0], whole[1] - part[1]


def _is_worse_together(cells: Sequence[Cell]) -> bool:
    return _share(cells[3]) > max(_share(cells[1]), _share(cells[2]))


def _excess(cells: Sequence[Cell]) -> float:
    """Return roughly by how many standard deviations both together fail too often."""
    a, b = ((fails + 0.5) / (runs + 1) for fails, runs in cells[1:3])
    expected = 1 - (1 - a) * (1 - b)
    fails, runs = cells[3]
    return (fails - runs * expected) / sqrt(runs * expected * (1 - expected))


def _interaction(counts: Counts, pair: Pair, cells: Sequence[Cell], looked_at: int) -> Interaction:
    free = sum(likelihood(*cell) for cell in cells)
    best, expected = _apart(cells, 0)
    for flip in (1, 2, 3):  # values may spare as well as harm: then their absence is the cause
        if _chance(free - best) * looked_at < _CHANCE:
            best, expected = max((best, expected), _apart(cells, flip))
    fails, runs = cells[3]
    first, second = (counts.table.conditions[number] for number in pair)
    chance = _chance(free - best) * looked_at if fails > runs * expected else 1.0
    return Interaction(
        both=(first, second), fails=fails, runs=runs, expected=expected, chance=min(1.0, chance)
    )


def _chance(difference: float) -> float:
    """Return how likely such a difference of log-likelihoods is by chance, on one side (Wilks)."""
    return erfc(sqrt(max(0.0, difference))) / 2


def _apart(cells: Sequence[Cell], flip: int) -> tuple[float, float]:
    """Return the likelihood if each causes failures on its own, and the rate of both then."""
    turned = [cells[n ^ flip] for n in range(4)]
    causes = _separate_causes(turned)
    rates = [_rate_of(causes, active) for active in _ACTIVE]
    likely = sum(_at_rate(cell, rate) for cell, rate in zip(turned, rates, strict=True))
    return likely, rates[3 ^ flip]


_ACTIVE = ((0,), (0, 1), (0, 2), (0, 1, 2))
"""What can cause a failure in each cell: the rest of the world, the first value, the second."""


def _rate_of(causes: Sequence[float], active: Iterable[int]) -> float:
    spared = 1.0
    for cause in active:
        spared *= 1 - causes[cause]
    return 1 - spared


def _at_rate(cell: Cell, rate: float) -> float:
    fails, runs = cell
    rate = min(max(rate, 1e-12), 1 - 1e-12)
    return fails * log(rate) + (runs - fails) * log(1 - rate)


def _separate_causes(cells: Sequence[Cell]) -> list[float]:
    """Return the rates of causes that know nothing of each other, as likely as can be (EM)."""
    causes = [0.1, 0.1, 0.1]
    exposed = [sum(cells[n][1] for n in range(4) if cause in _ACTIVE[n]) for cause in range(3)]
    for _ in range(_ROUNDS):
        triggered = [0.0, 0.0, 0.0]
        for (fails, _runs), active in zip(cells, _ACTIVE, strict=True):
            rate = _rate_of(causes, active)
            for cause in active if rate > 0 else ():
                triggered[cause] += fails * causes[cause] / rate
        causes = [got / runs for got, runs in zip(triggered, exposed, strict=True)]
    return causes
