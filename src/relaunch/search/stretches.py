"""How likely a candidate is to show anything of what is looked for, beside those that did not.

What fails otherwise comes in stretches, long or short, or is scattered about. Which of these, and
how far a stretch reaches, is learnt from what was seen: the longer it is already known to be, the
further it probably goes on.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from math import exp, log

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Known = tuple[int, bool]
    """A candidate that was run, and whether it failed otherwise."""

_SHARES = (0.04, 0.12, 0.25, 0.4, 0.55, 0.7, 0.85, 0.95, 0.99)
"""How much of the line may fail otherwise; beforehand the less the likelier."""
_SCATTERED = 0.5
"""That what fails otherwise is scattered, beforehand; else all lengths of stretches are alike."""
_SHORTEST, _STEP = 2.0, 2.5
"""Over so many candidates the shortest stretches reach, and each longer kind by so much further."""
_UNLIKELY = 1e-4


class Guess:
    """How much fails otherwise, and how far a candidate tells of those beside it.

    Along the line, what fails otherwise begins and ends by chance, anywhere alike.
    """

    def __init__(self, weight: float, share: float, reach: float) -> None:
        """Of no reach: candidates tell nothing of each other."""
        self.weight = weight
        self.share = share
        self.reach = reach

    def foretells(self, seen: list[Known]) -> float:
        """Return the logarithm of how likely all that was seen is, each by the one before it."""
        return log(self.weight) + sum(
            log(self._chance(is_other, was_other, at - before))
            for (before, was_other), (at, is_other) in pairwise(seen)
        )

    def testable(self, left: Known, right: Known, place: int) -> float:
        """Return how likely a candidate can be tested, by its neighbours on both sides."""
        before, after = place - left[0], right[0] - place
        good = self._chance(False, left[1], before) * self._chance(right[1], False, after)
        bad = self._chance(True, left[1], before) * self._chance(right[1], True, after)
        return good / (good + bad)

    def _chance(self, is_other: bool, was_other: bool, distance: int) -> float:
        """Return how likely a candidate is to be so, by what one at a distance showed."""
        tie = exp(-distance / self.reach) if self.reach else 0.0
        share = self.share if is_other else 1.0 - self.share
        return share + (1.0 - share) * tie if is_other is was_other else share * (1.0 - tie)


class Stretches:
    """What those that were run tell of all others."""

    def __init__(self, size: int, seen: Mapping[int, bool]) -> None:
        """Of the candidates 0 to `size`, `seen` says which failed otherwise, and which did not.

        Both ends can be tested: else there would be nothing to look for.
        """
        self._seen = sorted({0: False, size: False, **seen}.items())
        self._guesses = _weighed(_guesses(size), self._seen)
        self._known: dict[int, float] = {}

    def chance(self, place: int) -> float:
        """Return how likely a candidate that was not run is to show anything but that."""
        if place not in self._known:
            at = bisect_left(self._seen, (place, False))
            sides = self._seen[at - 1], self._seen[at]
            found = (one.weight * one.testable(*sides, place) for one in self._guesses)
            self._known[place] = sum(found)
        return self._known[place]


def _guesses(size: int) -> Iterator[Guess]:
    reaches = [_SHORTEST]
    while reaches[-1] * _STEP < size:
        reaches.append(reaches[-1] * _STEP)
    for share in _SHARES:
        yield Guess((1.0 - share) * _SCATTERED, share, 0.0)
        for reach in reaches:
            yield Guess((1.0 - share) * (1.0 - _SCATTERED) / len(reaches), share, reach)


def _weighed(guesses: Iterable[Guess], seen: list[Known]) -> list[Guess]:
    """Return the guesses that are likely after all, weighed by how well they foretold it."""
    found = [(guess, guess.foretells(seen)) for guess in guesses]
    most = max(one for _, one in found)
    likely = [(guess, exp(one - most)) for guess, one in found if exp(one - most) > _UNLIKELY]
    total = sum(one for _, one in likely)
    return [Guess(one / total, guess.share, guess.reach) for guess, one in likely]
