"""The cases of a sweep: all combinations, few that cover all pairs, the telling ones first."""

from __future__ import annotations

from itertools import combinations as subsets
from itertools import pairwise as neighbours
from itertools import product
from math import gcd, prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Case = dict[str, str]
    Pair = tuple[tuple[str, str], tuple[str, str]]
    """Two settings that occur together."""

_GOLDEN = 0.6180339887498949
_WORD = (1 << 64) - 1
_SLACKENING = 0.8
"""Cases with at least this share of what the last ones taught are taken in the same pass."""


def combinations(
    factors: Mapping[str, Sequence[str]],
    *,
    paired: Sequence[Sequence[str]] = (),
    limit: int | None = None,
) -> list[Case]:
    """Return every combination, the last factor changing quickest; `paired` ones go in step.

    With a limit, that many of them are taken, one from each part of the whole, in the same order.
    """
    axes = _axes(factors, paired)
    total = prod(len(axis) for axis in axes)
    if limit is None or limit >= total:
        return [_in_order(factors, parts) for parts in product(*axes)]
    starts = [part * total // max(1, limit) for part in range(limit + 1)]
    numbers = (low + _scrambled(low) % (high - low) for low, high in neighbours(starts))
    return [_in_order(factors, _numbered(axes, number)) for number in numbers]


def _axes(
    factors: Mapping[str, Sequence[str]], paired: Sequence[Sequence[str]]
) -> list[list[Case]]:
    """Return what varies on its own: a factor, or several in step, each with its choices."""
    groups = {name: list(group) for group in paired for name in group}
    if unknown := [name for name in groups if name not in factors]:
        raise ValueError(f"`{unknown[0]}` is paired but has no values")
    if sum(len(group) for group in paired) > len(groups):
        raise ValueError("a factor is paired twice")
    axes: list[list[Case]] = []
    told: set[str] = set()
    for name in factors:
        if name not in told:
            group = groups.get(name, [name])
            told.update(group)
            axes.append(_in_step(factors, group))
    return axes


def _in_step(factors: Mapping[str, Sequence[str]], group: Sequence[str]) -> list[Case]:
    lengths = {name: len(factors[name]) for name in group}
    if len(set(lengths.values())) > 1:
        counts = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"paired factors need as many values each: {counts}")
    rows = zip(*(factors[name] for name in group), strict=True)
    return [dict(zip(group, row, strict=True)) for row in rows]


def _in_order(factors: Iterable[str], parts: Iterable[Case]) -> Case:
    merged = {name: value for part in parts for name, value in part.items()}
    return {name: merged[name] for name in factors}


def _numbered(axes: Sequence[Sequence[Case]], number: int) -> list[Case]:
    """Return one combination by its number in the order of all."""
    parts: list[Case] = []
    for axis in reversed(axes):
        number, place = divmod(number, len(axis))
        parts.append(axis[place])
    return parts[::-1]


def _scrambled(number: int) -> int:
    """Return a number that has nothing to do with this one, always the same (SplitMix64)."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15 & _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    return mixed ^ mixed >> 31


def _strewn(total: int) -> Iterator[int]:
    """Yield every number below `total` once, neighbours far apart: by steps of the golden ratio."""
    step = max(1, int(total * _GOLDEN))
    while gcd(step, total) > 1:
        step += 1
    return (number * step % total for number in range(total))


def pairwise(factors: Mapping[str, Sequence[str]]) -> list[Case]:
    """Return few cases in which every pair of values of two factors occurs, and every value.

    Each is begun with a pair that is still missing, and takes what covers most of the others.
    """
    if any(not values for values in factors.values()):
        return []
    if len(factors) < 2:
        return combinations(factors) if factors else []
    missing = dict.fromkeys(
        ((a, x), (b, y)) for a, b in subsets(factors, 2) for x, y in product(factors[a], factors[b])
    )
    found: list[Case] = []
    while missing:
        case = _most_covering(factors, missing)
        found.append(case)
        for pair in _pairs(case):
            missing.pop(pair, None)
    return found


def _most_covering(factors: Mapping[str, Sequence[str]], missing: Mapping[Pair, None]) -> Case:
    case = dict(next(iter(missing)))
    order = {name: place for place, name in enumerate(factors)}
    for name in factors:
        if name not in case:
            best = max(factors[name], key=lambda value: _gain(case, name, value, missing, order))
            case[name] = best
    return {name: case[name] for name in factors}


def _gain(
    case: Case, name: str, value: str, missing: Mapping[Pair, None], order: Mapping[str, int]
) -> int:
    """Count the missing pairs that one more setting would cover."""
    return sum(
        (
            ((other, its), (name, value))
            if order[other] < order[name]
            else ((name, value), (other, its))
        )
        in missing
        for other, its in case.items()
    )


def _pairs(case: Mapping[str, str]) -> list[Pair]:
    return list(subsets(case.items(), 2))


def order_for_learning(cases: Sequence[Case]) -> list[Case]:
    """Return the cases so that the first ones show as many values and pairs of values as can be.

    So a sweep that is interrupted already says much. Nearly greedy, in a few passes over the cases.
    """
    numbers: dict[object, int] = {}
    left = [
        (case, [numbers.setdefault(fact, len(numbers)) for fact in _facts(case)])
        for case in (cases[number] for number in (_strewn(len(cases)) if cases else ()))
    ]
    found: list[Case] = []
    told: set[int] = set()
    wanted = max((len(facts) for _, facts in left), default=0)
    while len(told) < len(numbers):
        left = list(_taken(left, found, told, wanted))
        wanted = max(1, int(wanted * _SLACKENING))
    return found + [case for case, _ in left]


def _taken(
    cases: Iterable[tuple[Case, list[int]]], found: list[Case], told: set[int], wanted: int
) -> Iterator[tuple[Case, list[int]]]:
    """Take the cases that show enough that is new; yield the others with what they still show."""
    for case, facts in cases:
        new = [fact for fact in facts if fact not in told]
        if len(new) >= wanted:
            found.append(case)
            told.update(new)
        else:
            yield case, new


def _facts(case: Mapping[str, str]) -> list[object]:
    """Return what a case would show: its values, or if there is more than one, their pairs."""
    return [*_pairs(case)] if len(case) > 1 else [*case.items()]
