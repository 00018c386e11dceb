"""What is known of where a behaviour changed: one probability for each place, noise included."""

from __future__ import annotations

from itertools import accumulate
from math import exp, inf, log, log2
from operator import add

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEVELS = 20
"""An unknown rate is taken to be one of so many; what fails at times mostly fails seldom."""
_FEW_LEVELS = 11
"""Where both are unknown: there are pairs of them."""
_STEADY = 0.9
"""Of programs of which nothing is known, so many always do the same."""
_ONE_SIDED = 0.35
"""Of those that do not: so many fail at times on one side of the change only, for each side."""


class Rates(Record):
    """How often the new behaviour shows: `before` the change and `after` it; None if unknown."""

    before: float | None = None
    after: float | None = None
    steady: bool = False
    """It always does the same, as far as is known: one contradiction tells otherwise."""


class Pair(Record):
    """One way in which a program may be unsteady, and how likely that is beforehand."""

    weight: float
    before: float
    after: float


def pairs_of(rates: Rates) -> list[Pair]:
    """List the ways a program may behave, in keeping with what is known."""
    if rates.before is not None and rates.after is not None:
        return [Pair(weight=1.0, before=rates.before, after=rates.after)]
    if rates.before is not None or rates.after is not None:
        return _one_sided(rates.before, rates.after, 1.0)
    share = 1.0 - _STEADY
    found = [Pair(weight=_STEADY, before=0.0, after=1.0)] if rates.steady else []
    found += _one_sided(0.0, None, share * _ONE_SIDED)
    found += _one_sided(None, 1.0, share * _ONE_SIDED)
    return found + _both(share * (1.0 - 2 * _ONE_SIDED))


def _one_sided(before: float | None, after: float | None, weight: float) -> list[Pair]:
    levels = [(number + 0.5) / _LEVELS for number in range(_LEVELS)]
    shares = [weight * 2.0 * (1.0 - level) / _LEVELS for level in levels]
    return [
        Pair(
            weight=share,
            before=level if before is None else before,
            after=level if after is None else after,
        )
        for level, share in zip(levels, shares, strict=True)
    ]


def _both(weight: float) -> list[Pair]:
    """Give pairs in which the new behaviour shows clearly more often after the change."""
    levels = [(number + 0.5) / _FEW_LEVELS for number in range(_FEW_LEVELS)]
    pairs = [(low, high) for low in levels for high in levels if low < high]
    return [Pair(weight=weight / len(pairs), before=low, after=high) for low, high in pairs]


def entropy(chance: float) -> float:
    """Return how many bits the answer to a question with this chance is worth."""
    if chance <= 0.0 or chance >= 1.0:
        return 0.0
    return -chance * log2(chance) - (1.0 - chance) * log2(1.0 - chance)


class Posterior:
    """Probabilities of the places 1 to `size` at which a behaviour may have changed.

    Place `i` means: the new behaviour shows at the rate `after` at `i` and all later ones, at the
    rate `before` at all earlier ones, down to 0, the old end. What was seen at a place divides the
    others in those before and after it, so all places between two tested ones are equally likely
    but for the prior; and so are the rates. Hence a table with one row for each stretch between
    tested places and one column for each pair of rates is all that is needed.
    """

    def __init__(self, prior: Sequence[float], rates: Rates) -> None:
        """Begin with a weight for each of the places 1 to n; they need not sum to one."""
        self.size = len(prior)
        self.rates = rates
        self.prior = [0.0, *prior]
        self._pairs = pairs_of(rates)
        self.new: dict[int, int] = {}
        self.old: dict[int, int] = {}
        self._table: _Table | None = None

    def learn(self, place: int, *, is_new: bool) -> None:
        """Note what one run showed at a place."""
        counts = self.new if is_new else self.old
        counts[place] = counts.get(place, 0) + 1
        self._table = None

    def reweigh(self, prior: Sequence[float]) -> None:
        """Take another prior; what was seen stays."""
        self.prior = [0.0, *prior]
        self._table = None

    def doubt(self) -> None:
        """Take it for unsteady: nothing is known any more of how often what shows."""
        self.rates = Rates()
        self._pairs = pairs_of(self.rates)
        self._table = None

    def runs_at(self, place: int) -> tuple[int, int]:
        """Say how often the old and the new behaviour were seen at a place."""
        return self.old.get(place, 0), self.new.get(place, 0)

    @property
    def table(self) -> _Table:
        """What follows from all that was seen."""
        if self._table is None:
            self._table = _Table(self, self._pairs)
        return self._table

    @property
    def is_impossible(self) -> bool:
        """True when what was seen cannot be, by what was said to be known."""
        return self.table.total <= 0.0

    @property
    def steady(self) -> float:
        """How likely it is that the program always does the same."""
        return self.table.steady

    @property
    def chances(self) -> list[float]:
        """The probability of each place; that of 0 is nothing."""
        return self.table.chances

    def gains(self) -> list[float]:
        """Return for each place how many bits one run there tells about where the change is."""
        table = self.table
        chances, after, before = table.chances, table.after, table.before
        sum_before = sum(p * q for p, q in zip(chances, before, strict=True))
        left_before = sum(p * entropy(q) for p, q in zip(chances, before, strict=True))
        shows = left = 0.0
        found = []
        for place in range(self.size + 1):
            chance = chances[place]
            if chance > 0.0:
                shows += chance * after[place]
                left += chance * entropy(after[place])
                sum_before -= chance * before[place]
                left_before -= chance * entropy(before[place])
            found.append(max(0.0, entropy(shows + sum_before) - left - left_before))
        return found


class _Table:
    """All that follows from what was seen, computed once after each run."""

    def __init__(self, posterior: Posterior, pairs: list[Pair]) -> None:
        tested = sorted(posterior.new.keys() | posterior.old.keys())
        rows = _rows(posterior, pairs, tested)
        top = max((one for row in rows for one in row), default=-inf)
        size = posterior.size
        self.chances = [0.0] * (size + 1)
        self.after = [0.0] * (size + 1)
        self.before = [0.0] * (size + 1)
        self.steady = 0.0
        self.total = 0.0
        if top == -inf:
            return
        bounds = [0, *tested, size]
        for number, row in enumerate(rows):
            first, last = bounds[number] + 1, min(bounds[number + 1], size)
            masses = [exp(one - top) for one in row]
            mass = sum(masses)
            weights = posterior.prior[first : last + 1]
            if mass <= 0.0 or not weights:
                continue
            after = sum(m * pair.after for m, pair in zip(masses, pairs, strict=True)) / mass
            before = sum(m * pair.before for m, pair in zip(masses, pairs, strict=True)) / mass
            for place, weight in enumerate(weights, first):
                self.chances[place] = weight * mass
                self.after[place] = after
                self.before[place] = before
            if pairs[0].before == 0.0 and pairs[0].after == 1.0:
                self.steady += masses[0] * sum(weights)
        self.total = sum(self.chances)
        if self.total > 0.0:
            self.steady /= self.total
            self.chances = [one / self.total for one in self.chances]


def _rows(posterior: Posterior, pairs: list[Pair], tested: list[int]) -> list[list[float]]:
    """Return the logarithm of the chance of all that was seen, per stretch and pair of rates.

    The first stretch is up to the first tested place, with it, the last one is behind all of them.
    """
    seen = [posterior.runs_at(place)[::-1] for place in tested]
    rates = {rate for pair in pairs for rate in (pair.before, pair.after)}  # far fewer than pairs
    chances = {rate: [log_chance(news, olds, rate) for news, olds in seen] for rate in rates}
    behind = {rate: [*accumulate(chances[rate][::-1], initial=0.0)][::-1] for rate in rates}
    columns = []
    for pair in pairs:
        ahead = accumulate(chances[pair.before], initial=_log(pair.weight))
        columns.append(map(add, ahead, behind[pair.after]))
    return [list(row) for row in zip(*columns, strict=True)]


def log_chance(news: int, olds: int, rate: float) -> float:
    """Return the logarithm of how likely runs of one candidate show this, at such a rate."""
    total = 0.0
    if news:
        total += news * _log(rate)
    if olds:
        total += olds * _log(1.0 - rate)
    return total


def _log(value: float) -> float:
    return log(value) if value > 0.0 else -inf
