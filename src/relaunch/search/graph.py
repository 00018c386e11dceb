"""Finds in a graph of candidates the one that all which behaves otherwise is built upon.

It thinks and never runs anything, and is asked like a search on a line. A line of first parents is
halved first and a merge on it then, which rounds up twice: here any candidate may halve what is
left, so the runs are as few as those of plain halving. All suspects are alike to it.
"""

from __future__ import annotations

from math import exp, log

from relaunch.search.line import CONFIDENCE, ROUNDS, Answer, Side, Suspect, least_chance
from relaunch.search.posterior import Rates, entropy, log_chance, pairs_of
from relaunch.search.stretches import Stretches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    Mass = tuple[int, frozenset[int], float]
    """Candidates, which of those that were run have them, and how likely it is one of them."""

_ASIDE = 0.998
"""What a run off the main line is worth beside one on it: there it was rather made to work."""
_CLEARLY = 1.0 + 1e-9


class GraphSearch:
    """A search among the candidates 1 to n; 0 is the old end, n the new one, parents come first.

    It holds for a program that always does the same: what has the culprit shows the new behaviour,
    all others the old one. So a candidate that shows the new one leaves only what it is built
    upon, and one that shows the old one rules just that out. When nothing is left after all, it is
    not steady, and this search has no answer.
    """

    def __init__(
        self,
        parents: Sequence[Sequence[int]],
        *,
        ruled_out: Collection[int] = (),
        main: Collection[int] = (),
        confidence: float = CONFIDENCE,
        confirmations: int = 0,
        is_patient: bool = False,
    ) -> None:
        """Each candidate has its parents; those `ruled_out` change nothing themselves.

        `confirmations` more runs of the answer and of its parent are asked for at the end, and
        others until it is as sure as `confidence`. One that `is_patient` tries all that could tell.
        """
        self.confidence = confidence
        self.size = len(parents) - 1
        self.confirmations = confirmations
        self._is_patient = is_patient
        self.others: dict[int, str] = {}
        self.runs = 0
        self._parents = parents
        self._main = frozenset(main)
        self._has = _built_upon(parents, frozenset((0, *ruled_out)))
        """What each is built upon, itself included: bit `i` is candidate `i`."""
        self._left = self._has[-1]
        self._seen: dict[int, dict[Side, int]] = {}

    # --- learning

    def learn(self, place: int, side: Side, key: str = "") -> None:
        """Take what one run showed."""
        self.runs += 1
        if side is Side.OTHER:
            self.others[place] = key
            return
        self.others.pop(place, None)
        counts = self._seen.setdefault(place, {})
        counts[side] = counts.get(side, 0) + 1
        has = self._has[place]
        self._left &= has if side is Side.NEW else ~has

    # --- asking

    @property
    def is_steady(self) -> bool:
        """True while nothing was seen that a steady program would not do."""
        return bool(self._left)

    @property
    def left(self) -> int:
        """How many candidates it still may be."""
        return self._left.bit_count()

    @property
    def is_confirming(self) -> bool:
        """One candidate is left, and only has to be seen, with its parent."""
        return self.left == 1 and bool(self._due(()) or self._doubtful(()))

    def propose(self, count: int = 1, pending: Collection[int] = ()) -> list[int]:
        """Return up to `count` candidates to run beside those running; none: it is done."""
        if not self.is_steady:
            return []
        if self.left > 1 and (found := self._spread(count, [*pending])):
            return found
        found = self._next_to_edges(pending) or self._due(pending) or self._doubtful(pending)
        return found[:count]

    def is_useless(self, place: int) -> bool:
        """Tell whether the run of a candidate cannot tell anything any more."""
        if place in self.edges or place in self._doubtful(()):
            return False
        return not self._divides(place, self._left)

    def _spread(self, count: int, pending: list[int]) -> list[int]:
        """Choose so many together, each anew beside all others until none moves."""
        testable = self._testable()
        found: list[int] = []
        while len(found) < count:
            best = self._best([*pending, *found], testable)
            if best is None:
                break
            found.append(best)
        for _ in range(ROUNDS if len(found) > 1 else 0):
            before = [*found]
            for at in range(len(found)):
                beside = [*pending, *found[:at], *found[at + 1 :]]
                best = self._best(beside, testable)
                found[at] = found[at] if best is None else best
            if found == before:
                break
        return found

    def _best(self, pending: Sequence[int], testable: Stretches | None) -> int | None:
        parts = self._parts(pending)
        least = 0.0 if self._is_patient else least_chance(self.size, len(self.others))
        best, most = None, 0.0
        for place, has in enumerate(self._has):
            if place in self.others or place in pending:
                continue
            gain = _gain(has, parts) * (1.0 if place in self._main else _ASIDE)
            if gain <= most * _CLEARLY:
                continue
            chance = testable.chance(place) if testable else 1.0
            if gain * chance > most * _CLEARLY and chance >= least:
                best, most = place, gain * chance
        return best

    def _parts(self, pending: Sequence[int]) -> list[int]:
        """Return what the running ones divide that what is left into."""
        parts = [self._left]
        for place in pending:
            has = self._has[place]
            parts = [part for one in parts for part in (one & has, one & ~has) if part]
        return parts

    def _divides(self, place: int, those: int) -> bool:
        return 0 < (self._has[place] & those).bit_count() < those.bit_count()

    def _testable(self) -> Stretches | None:
        """Say how likely each is to show anything but something else, if any has shown that."""
        if not self.others:
            return None
        told = dict.fromkeys(self._seen, False)
        return Stretches(self.size, {**told, **dict.fromkeys(self.others, True)})

    def _next_to_edges(self, pending: Collection[int]) -> list[int]:
        """Return what lies right beside what was seen, if it was never run: one run each."""
        if self.left < 2:
            return []
        tried = {*self.others, *pending}
        return [
            place
            for place in (*self._firsts(), *self._parents[self.edges[1]])
            if place not in tried and self._divides(place, self._left)
        ]

    def _firsts(self) -> Iterator[int]:
        """Go over the suspects that are built upon no other one."""
        return (one for one in _bits(self._left) if self._has[one] & self._left == 1 << one)

    @property
    def edges(self) -> tuple[int, int]:
        """What the answer rests on: one that shows the old behaviour, and one with the new one.

        Of a single suspect its parent and itself.
        """
        if self.left == 1:
            place = self._left.bit_length() - 1
            return (*self._parents[place], 0)[0], place
        old = [place for place, counts in self._seen.items() if Side.OLD in counts]
        new = [place for place, counts in self._seen.items() if Side.NEW in counts]
        return max(old, default=0), min(new, default=self.size)

    def _due(self, pending: Collection[int]) -> list[int]:
        """Return which of these still have to be run, once or once more."""
        wanted = zip(self.edges, (Side.OLD, Side.NEW), strict=True)
        return [
            place
            for place, side in wanted
            if place not in self.others and self._missing(place, side) > [*pending].count(place)
        ]

    def _missing(self, place: int, side: Side) -> int:
        """Count the runs that are missing to call it seen; the ends need no second."""
        most = 1 if place in (0, self.size) else 1 + self.confirmations
        return most - self._seen.get(place, {}).get(side, 0)

    def _doubtful(self, pending: Collection[int]) -> list[int]:
        """Return whose run tells best a single suspect from the next likely one, if it is in doubt.

        That is one on which they differ; the fewer its runs, the more another one tells.
        """
        masses = self._masses() if self.left == 1 else []
        if pending or not masses or self._sureness(masses) >= self.confidence:
            return []
        chosen = next(above for mask, above, _ in masses if mask & self._left)
        others = [(mass, above) for mask, above, mass in masses if not mask & self._left]
        _, likely = max(others, key=lambda one: one[0])
        return sorted(chosen ^ likely, key=lambda one: (sum(self._seen[one].values()), one))[:1]

    # --- answering

    @property
    def chances(self) -> list[float]:
        """The probability of each candidate."""
        found = [0.0] * (self.size + 1)
        for place in _bits(self._left):
            found[place] = 1.0 / self.left
        return found

    def answer(self) -> Answer:
        """Say what is known now."""
        sure = self._sureness()
        chance = sure / max(1, self.left)
        parent, place = self.edges
        is_seen = self._seen.get(parent, {}).get(Side.OLD) and self._seen.get(place, {}).get(
            Side.NEW
        )
        return Answer(
            suspects=tuple(Suspect(place=one, chance=chance) for one in _bits(self._left)),
            is_found=self.left == 1 and bool(is_seen) and not self.is_confirming,
            confidence=sure,
            is_steady=self.is_steady,
            runs=self.runs,
        )

    def _sureness(self, masses: Sequence[Mass] | None = None) -> float:
        """Return how likely it is one of those left, as it may be unsteady and have hidden that.

        Counted as on a line: by how likely all that was seen is, for each candidate and each way
        in which a program may behave.
        """
        masses = self._masses() if masses is None else masses
        total = sum(mass for _, _, mass in masses)
        left = sum(mass for mask, _, mass in masses if mask & self._left)
        return left / total if total > 0.0 else 0.0

    def _masses(self) -> list[Mass]:
        """Weigh the candidates, those together that all that was seen says the same of."""
        parts: list[tuple[int, frozenset[int]]] = [(self._has[-1], frozenset())]
        for place in self._seen:
            has = self._has[place]
            halves = [
                half
                for mask, above in parts
                for half in ((mask & has, above | {place}), (mask & ~has, above))
            ]
            parts = [(mask, above) for mask, above in halves if mask]
        seen = [
            (place, counts.get(Side.NEW, 0), counts.get(Side.OLD, 0))
            for place, counts in self._seen.items()
        ]
        masses = [0.0] * len(parts)
        for pair in pairs_of(Rates(steady=True)):
            chances = [
                (place, log_chance(news, olds, pair.after), log_chance(news, olds, pair.before))
                for place, news, olds in seen
            ]
            for number, (mask, above) in enumerate(parts):
                likely = sum(after if one in above else before for one, after, before in chances)
                masses[number] += exp(likely + log(pair.weight)) * mask.bit_count()
        return [(*part, mass) for part, mass in zip(parts, masses, strict=True)]


def _built_upon(parents: Sequence[Sequence[int]], ruled_out: Collection[int]) -> list[int]:
    found: list[int] = []
    for place, above in enumerate(parents):
        has = 0 if place in ruled_out else 1 << place
        for up in above:
            has |= found[up]
        found.append(has)
    return found


def _gain(has: int, parts: Sequence[int]) -> float:
    """Return how many bits tell on which side of a candidate it is, by the parts it divides."""
    total = sum(part.bit_count() for part in parts)
    return sum(
        size * entropy((part & has).bit_count() / size) / total
        for part, size in ((part, part.bit_count()) for part in parts)
    )


def _bits(mask: int) -> Iterator[int]:
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low
