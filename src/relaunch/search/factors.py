"""Which settings explain the failures of a sweep, and which cases more would tell what is left."""

from __future__ import annotations

from itertools import combinations, product
from math import prod

from relaunch.record import Record
from relaunch.search.conditions import Rule, Table
from relaunch.search.likely import likeliest
from relaunch.search.rates import Counts, Rate, rates
from relaunch.search.seen import Seen
from relaunch.search.separate import Separation, separate
from relaunch.search.together import Interaction, interactions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.search.conditions import Settings

_MOST_CANDIDATES = 2000
"""So many cases that were not run are looked at for those that would tell rules apart."""

_MOST_OTHERS = 5
_SHOWN = 3


class Case(Record):
    """One run of a sweep; the same settings may come again."""

    settings: Mapping[str, str]
    seen: Seen
    key: str = ""
    """Tells one other failure from another."""


class Finding(Record):
    """What explains one failure."""

    rules: tuple[Rule, ...]
    """Equally good ones: what was seen cannot tell them apart."""
    is_exact: bool
    """The first rule holds in all cases that failed and in none that passed."""
    is_sure: bool
    """It is exact and no other is as short; or it explains more than chance would."""
    is_complete: bool
    """No exact rule as short was left out; False if there were too many to look at."""
    is_flaky: bool
    """The same settings both failed and passed."""
    fails: int
    """Failures where the first rule holds, of so many runs there; likewise elsewhere."""
    runs: int
    fails_elsewhere: int
    runs_elsewhere: int
    tell_apart: tuple[dict[str, str], ...] = ()
    """Cases that were not run, on which the rules disagree."""
    rates: tuple[Rate, ...] = ()
    """Where no rule is exact: how often it fails under each value, the most telling first."""
    interactions: tuple[Interaction, ...] = ()

    @property
    def wrong(self) -> int:
        """Runs that passed although the rule holds."""
        return self.runs - self.fails

    @property
    def missed(self) -> int:
        """Runs that failed although the rule does not hold."""
        return self.fails_elsewhere

    @property
    def text(self) -> str:
        """Say it in one sentence."""
        if not self.rules:
            return "no setting explains it"
        if self.is_exact:
            said = f"fails exactly when {self._alternatives}"
            return said if self.runs_elsewhere else "fails in every case"
        counts = f"{self.fails} of {self.runs}; elsewhere {self.fails_elsewhere} of"
        return f"fails mostly when {self._alternatives} ({counts} {self.runs_elsewhere})"

    @property
    def _alternatives(self) -> str:
        said = ", or when ".join(rule.text for rule in self.rules[:_SHOWN])
        more = len(self.rules) - _SHOWN
        at_least = "" if self.is_complete else "at least "
        return said if more <= 0 else f"{said}, or in {at_least}{more} other ways"


class Explanation(Record):
    """What explains the failures of a sweep."""

    failure: Finding | None
    """Of the hunted failure; None if it never showed."""
    others: tuple[tuple[str, Finding], ...]
    """Of each other failure, by its key, against what passed; the most frequent five."""
    fixed: tuple[str, ...]
    """Factors that never vary, of which nothing can be said."""
    together: tuple[tuple[str, ...], ...]
    """Factors that always vary in step: nobody can tell which of them it is."""
    untestable: int


def explain(cases: Sequence[Case]) -> Explanation:
    """Find the cheapest rules that tell failing settings from passing ones, or the likeliest."""
    run = [case.settings for case in cases]
    passed = [case.settings for case in cases if case.seen is Seen.PASSED]
    failed = [case.settings for case in cases if case.seen is Seen.FAILED]
    keys = _frequent(case.key for case in cases if case.seen is Seen.OTHER)
    patterns = _patterns([case.settings for case in cases if case.seen is not Seen.UNTESTABLE])
    return Explanation(
        failure=_finding(failed, passed, run),
        others=tuple(
            (key, finding)
            for key in keys
            if (finding := _finding(_with_key(cases, key), passed, run)) is not None
        ),
        fixed=tuple(factor for factor, pattern in patterns.items() if not any(pattern)),
        together=_alike(patterns),
        untestable=sum(case.seen is Seen.UNTESTABLE for case in cases),
    )


def _frequent(keys: Iterable[str]) -> list[str]:
    counts: dict[str, int] = {}
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return sorted(counts, key=lambda key: -counts[key])[:_MOST_OTHERS]


def _with_key(cases: Iterable[Case], key: str) -> list[Settings]:
    return [case.settings for case in cases if case.seen is Seen.OTHER and case.key == key]


def _patterns(cases: Sequence[Settings]) -> dict[str, tuple[int, ...]]:
    """Return how each factor varies along the cases, whatever its values are called."""
    factors = dict.fromkeys(factor for case in cases for factor in case)
    found: dict[str, tuple[int, ...]] = {}
    for factor in factors:
        numbers: dict[str | None, int] = {}
        found[factor] = tuple(numbers.setdefault(c.get(factor), len(numbers)) for c in cases)
    return found


def _alike(patterns: Mapping[str, tuple[int, ...]]) -> tuple[tuple[str, ...], ...]:
    groups: dict[tuple[int, ...], list[str]] = {}
    for factor, pattern in patterns.items():
        if any(pattern):
            groups.setdefault(pattern, []).append(factor)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


# --- one failure


def _finding(
    failed: Sequence[Settings], passed: Sequence[Settings], run: Sequence[Settings]
) -> Finding | None:
    if not failed:
        return None
    table = Table([*failed, *passed], run)
    failing = (1 << len(failed)) - 1
    counts = Counts(table, failing, table.everything & ~failing)
    is_flaky = bool({_key(one) for one in failed} & {_key(one) for one in passed})
    exact = Separation(rules=(), is_complete=True) if is_flaky else _exact(failed, passed, run)
    if exact.rules:
        is_sure = len(exact.rules) == 1 and exact.is_complete and bool(passed)
        found = _empty(exact.rules).but(is_exact=True, is_sure=is_sure)
        return _counted(counts, found.but(is_complete=exact.is_complete), run)
    best = likeliest(counts)
    found = _empty(best.rules).but(is_flaky=is_flaky, is_sure=best.is_sure)
    return _counted(counts, found.but(is_complete=exact.is_complete), run).but(
        rates=tuple(rates(counts)),
        interactions=tuple(interactions(counts, best.rules[0] if best.rules else None)),
    )


def _empty(rules: tuple[Rule, ...]) -> Finding:
    return Finding(
        rules=rules, is_exact=False, is_sure=False, is_complete=True, is_flaky=False,
        fails=0, runs=0, fails_elsewhere=0, runs_elsewhere=0,
    )  # fmt: skip


def _key(settings: Settings) -> frozenset[tuple[str, str]]:
    return frozenset(settings.items())


def _exact(
    failed: Sequence[Settings], passed: Sequence[Settings], run: Sequence[Settings]
) -> Separation:
    """Return the rules that make no mistake; each combination of settings counts once."""
    fails = list({_key(one): one for one in failed}.values())
    table = Table([*fails, *{_key(one): one for one in passed}.values()], run)
    failing = (1 << len(fails)) - 1
    return separate(table, failing, table.everything & ~failing)


def _counted(counts: Counts, finding: Finding, run: Sequence[Settings]) -> Finding:
    """Add what the first rule gets right, and which cases would tell it from the others."""
    if not finding.rules:
        return finding
    inside = counts.cell(counts.table.holding(finding.rules[0]))
    outside = counts.outside(inside)
    return finding.but(
        fails=inside[0],
        runs=inside[1],
        fails_elsewhere=outside[0],
        runs_elsewhere=outside[1],
        tell_apart=tuple(tell_apart(finding.rules, run)),
    )


# --- which cases more


def tell_apart(rules: Sequence[Rule], run: Sequence[Settings]) -> list[dict[str, str]]:
    """Return few cases that were not run, on which the rules disagree as much as can be.

    Each differs from one that was run in as few settings as will do.
    """
    if len(rules) < 2:
        return []
    candidates = _candidates(rules, run)
    foretold = [tuple(rule.holds(case) for rule in rules) for case in candidates]
    classes = [list(range(len(rules)))]
    found: list[dict[str, str]] = []
    while candidates and any(len(one) > 1 for one in classes):
        best = max(range(len(candidates)), key=lambda n: _told(classes, foretold[n]))
        if not _told(classes, foretold[best]):
            break
        found.append(candidates[best])
        classes = [part for one in classes for part in _parts(one, foretold[best]) if part]
    return found


def _told(classes: Iterable[list[int]], foretold: Sequence[bool]) -> int:
    """Count the pairs of rules that a case would tell apart."""
    found = 0
    for one in classes:
        failing = sum(foretold[rule] for rule in one)
        found += failing * (len(one) - failing)
    return found


def _parts(rules: Iterable[int], foretold: Sequence[bool]) -> tuple[list[int], list[int]]:
    rules = list(rules)
    return [n for n in rules if foretold[n]], [n for n in rules if not foretold[n]]


def _candidates(rules: Sequence[Rule], run: Sequence[Settings]) -> list[dict[str, str]]:
    """Return changes of a case that was run in what the rules speak of, the smallest first."""
    told = dict.fromkeys(one.factor for rule in rules for way in rule.ways for one in way)
    values = {factor: _values(factor, run) for factor in told}
    base = dict(next(case for case in run if rules[0].holds(case)))
    ran = {_key(case) for case in run}
    found: list[dict[str, str]] = []
    for changed in _changed(values):
        for choice in product(*(values[factor] for factor in changed)):
            case = {**base, **dict(zip(changed, choice, strict=True))}
            if _key(case) not in ran:
                ran.add(_key(case))
                found.append(case)
        if len(found) >= _MOST_CANDIDATES:
            break
    return found[:_MOST_CANDIDATES]


def _values(factor: str, run: Iterable[Settings]) -> list[str]:
    return list(dict.fromkeys(case[factor] for case in run if factor in case))


def _changed(values: Mapping[str, Sequence[str]]) -> Iterable[tuple[str, ...]]:
    """Yield the factors to change together, few first; no set with too many choices."""
    for count in range(1, len(values) + 1):
        for factors in combinations(values, count):
            if prod(len(values[factor]) for factor in factors) <= _MOST_CANDIDATES:
                yield factors
