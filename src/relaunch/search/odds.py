"""How sure a rate is that was counted: exact bounds of Clopper and Pearson, for any number of runs.

They hold however rare the failure is, which bounds by the normal distribution do not.
"""

from __future__ import annotations

from math import exp, lgamma, log, log1p

from relaunch.record import Record

SURE = 0.95
_STEPS = 200


class Bounds(Record):
    """Between which rates the true one lies, with how much confidence."""

    fails: int
    runs: int
    low: float
    high: float
    sure: float = SURE

    @property
    def rate(self) -> float:
        """What was seen."""
        return self.fails / self.runs if self.runs else 0.0


def bounds(fails: int, runs: int, sure: float = SURE) -> Bounds:
    """Return the bounds; one-sided where none failed or all did, as the other side is known."""
    if not 0 <= fails <= runs:
        raise ValueError(f"{fails} of {runs}")
    one_sided = fails in (0, runs)
    rest = (1 - sure) if one_sided else (1 - sure) / 2
    low = 0.0 if fails == 0 else _root(lambda rate: _at_least(fails, runs, rate) - rest)
    high = 1.0 if fails == runs else _root(lambda rate: rest - _at_most(fails, runs, rate))
    return Bounds(fails=fails, runs=runs, low=low, high=high, sure=sure)


def runs_needed(rate: float, sure: float = SURE) -> int:
    """Return how many runs show a failure of this rate at least once, with that confidence."""
    if not 0 < rate < 1:
        return 1
    count = log(1 - sure) / log1p(-rate)
    return max(1, int(count) + (count > int(count)))


def _root(rises: object) -> float:
    """Return where a rising function is 0, between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if rises(middle) < 0:  # type: ignore[operator]
            low = middle
        else:
            high = middle
        if high - low < 1e-12:
            break
    return (low + high) / 2


def _at_least(count: int, runs: int, rate: float) -> float:
    return sum(_exactly(one, runs, rate) for one in range(count, runs + 1))


def _at_most(count: int, runs: int, rate: float) -> float:
    return sum(_exactly(one, runs, rate) for one in range(count + 1))


def _exactly(count: int, runs: int, rate: float) -> float:
    if rate <= 0 or rate >= 1:
        return float(count == (0 if rate <= 0 else runs))
    ways = lgamma(runs + 1) - lgamma(count + 1) - lgamma(runs - count + 1)
    return exp(ways + count * log(rate) + (runs - count) * log1p(-rate))
