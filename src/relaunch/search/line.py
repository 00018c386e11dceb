"""Finds on a line of candidates the one from which on a program behaves otherwise.

It thinks and never runs anything: `propose` says which candidates to try next, `learn` takes what
was seen, in any order, and `answer` says at any time what is known.
"""

from __future__ import annotations

from enum import Enum
from itertools import accumulate
from math import ceil, log2

from relaunch.record import Record
from relaunch.search.posterior import Posterior, Rates, entropy
from relaunch.search.stretches import Stretches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CONFIDENCE = 0.98
_LEAST_GAIN = 2e-4
"""Bits below which a run is not worth its time."""
_CLEARLY = 1.0 + 1e-9
"""Of two candidates that tell as much the older is run, whatever the last digits say."""
ROUNDS = 20
"""So often several candidates are moved to where they divide evenly what is left."""
HOPELESS = 0.03
"""Chance to be testable below which none is tried any more, after many in vain; grows by each."""
_STEADY = 0.5
_UNLIKELY = 1e-3
_FLATTENED = 0.15
"""So much of any prior is spread evenly: it may be wrong."""


class Side(Enum):
    """What a run showed: the behaviour of the old end, of the new end, or something else."""

    OLD = "old"
    NEW = "new"
    OTHER = "other"


class Suspect(Record):
    """A candidate, and how likely the change is there."""

    place: int
    chance: float


class Answer(Record):
    """What is known: the best candidate, or those among which it is."""

    suspects: tuple[Suspect, ...]
    """Those that together reach the confidence asked for; the likeliest first.

    Of a steady program all that were not ruled out, however unlikely."""
    is_found: bool
    """One candidate is confirmed: the old behaviour was seen before it, the new one there."""
    confidence: float
    """How likely it is that the change is among the suspects."""
    is_steady: bool
    """All that was seen agrees with a program that always does the same."""
    runs: int

    @property
    def place(self) -> int:
        """The best candidate."""
        return self.suspects[0].place


def least_chance(size: int, others: int) -> float:
    """Return how likely one must be testable to be tried, after so many that failed otherwise."""
    in_vain = 2 * ceil(log2(size + 1)) + 8
    return HOPELESS * max(0, others - in_vain + 1)


class LineSearch:
    """A search among the candidates 1 to n; 0 is the old end, n the new one.

    With a steady program each run halves what is left, counted in probability, so the runs are
    about as many as the culprit's own surprise under the prior, in bits; the flattened prior bounds
    them by those of plain halving and three more. Candidates that cannot be tested are avoided
    with their neighbours, and when many were tried in vain the rest of their stretch is left alone:
    then the answer is all of it. A contradiction makes it a search with rates, which runs
    candidates again until one of them is sure enough.
    """

    def __init__(
        self,
        prior: Sequence[float],
        *,
        rates: Rates | None = None,
        confidence: float = CONFIDENCE,
        confirmations: int = 0,
        is_patient: bool = False,
    ) -> None:
        """Weights of the candidates 1 to n; a weight of 0 says that nothing can change there.

        `confirmations` more runs of the answer and of its neighbour are asked for at the end. One
        that `is_patient` tries all that could tell, however many failed otherwise.
        """
        self.size = len(prior)
        self.confidence = confidence
        self.confirmations = confirmations
        self._is_patient = is_patient
        self.posterior = Posterior(flattened(prior), rates or Rates(steady=True))
        self.others: dict[int, str] = {}
        """Candidates that showed something else, and what."""
        self._stretches: Stretches | None = None
        self.runs = 0

    # --- learning

    def learn(self, place: int, side: Side, key: str = "") -> None:
        """Take what one run showed; `key` tells one other failure from another."""
        self.runs += 1
        self._stretches = None
        if side is Side.OTHER:
            self.others[place] = key
            return
        self.others.pop(place, None)
        self.posterior.learn(place, is_new=side is Side.NEW)
        if self.posterior.is_impossible:
            self.posterior.doubt()

    def reweigh(self, prior: Sequence[float]) -> None:
        """Take a better prior, which may come late."""
        self.posterior.reweigh(flattened(prior))

    # --- asking

    @property
    def is_steady(self) -> bool:
        """True while nothing was seen that a steady program would not do."""
        return self.posterior.steady >= _STEADY

    def propose(self, count: int = 1, pending: Collection[int] = ()) -> list[int]:
        """Return up to `count` candidates to run beside those that are running; none: it is done.

        The same candidate may come again where rates matter.
        """
        if self.is_confirming:
            return self._to_confirm(pending)[:count]
        if self.answer().is_found:
            return []
        if found := self._spread(count, [*pending]):
            return found
        return (self._next_to_edges(pending) or self._beside_hidden(pending))[:count]

    def _spread(self, count: int, pending: list[int]) -> list[int]:
        """Choose so many together: of a steady program, those that divide evenly what is left.

        One after the other they would halve it and then one of the halves, of which the second run
        tells nothing half of the time. So each is chosen anew beside all others until none moves.
        """
        is_steady = self.is_steady
        found = self._evenly(count) if is_steady and count > 1 and not pending else []
        while len(found) < count:
            best = self._best([*pending, *found])
            if best is None:
                break
            found.append(best)
        if len(found) < 2 or not is_steady:
            return found
        for _ in range(ROUNDS):
            before = [*found]
            for at in range(len(found)):
                beside = [*pending, *found[:at], *found[at + 1 :]]
                best = self._best(beside)
                found[at] = found[at] if best is None else best
            if found == before:
                break
        return found

    def _evenly(self, count: int) -> list[int]:
        """Return those that leave about the same chance between them, if they can all be run."""
        sums = [*accumulate(self.posterior.chances)]
        marks = (number / (count + 1) for number in range(1, count + 1))
        places = {min(range(len(sums)), key=lambda at: abs(sums[at] - mark)) for mark in marks}
        may = {*self._askable(())} - self.others.keys()
        return sorted(places) if len(places) == count and places <= may else []

    @property
    def is_confirming(self) -> bool:
        """One candidate is likely enough, and only has to be seen, with the one before it."""
        return bool(self._to_confirm(()))

    def is_useless(self, place: int) -> bool:
        """Tell whether the run of a candidate cannot tell anything any more."""
        if place in self._to_confirm(()) or place in self._edges():
            return False
        if self.is_confirming or self.answer().is_found:
            return True
        return self.posterior.gains()[place] < _LEAST_GAIN

    def _best(self, pending: Sequence[int]) -> int | None:
        gains = self._gains_beside(pending)
        least = 0.0 if self._is_patient else least_chance(self.size, len(self.others))
        best, most = None, 0.0
        for place in self._askable(pending):
            gain = gains[place]
            if gain < _LEAST_GAIN or gain <= most or place in self.others:
                continue
            chance = self._testable(place)
            if gain * chance > most * _CLEARLY and chance >= least:
                best, most = place, gain * chance
        return best

    def _askable(self, pending: Sequence[int]) -> Collection[int]:
        """Return what may be run: of a steady program nothing twice, until one suspect is left.

        Then the others are suspects only if it is not steady after all.
        """
        if not self.is_steady:
            return range(self.size + 1)
        left = self._left()
        if len(left) <= 1:
            return range(self.size + 1)
        return [place for place in range(left[0], left[-1]) if place not in pending]

    def _left(self) -> list[int]:
        """Return the suspects of a steady program: those after the old behaviour, up to the new."""
        low, high = self.edges
        return [place for place in range(low + 1, high + 1) if self.posterior.prior[place] > 0.0]

    def _gains_beside(self, pending: Sequence[int]) -> list[float]:
        """Return what each run tells on top of what is running."""
        if not pending:
            return self.posterior.gains()
        if self.is_steady:
            return self._parts_beside(sorted(set(pending)))
        imagined = Posterior(self.posterior.prior[1:], self.posterior.rates)
        imagined.new, imagined.old = {**self.posterior.new}, {**self.posterior.old}
        chances = self.posterior.chances
        for place in pending:
            imagined.learn(place, is_new=sum(chances[: place + 1]) >= 0.5)
        return imagined.gains()

    def _parts_beside(self, pending: list[int]) -> list[float]:
        """Return by how much each run would divide further what the running ones divide."""
        sums, total = [], 0.0
        for chance in self.posterior.chances:
            total += chance
            sums.append(total)
        edges = [0.0, *(sums[place] for place in pending), 1.0]
        found = []
        part = 0
        for place in range(self.size + 1):
            while part < len(pending) and place > pending[part]:
                part += 1
            low, high = edges[part], edges[part + 1]
            whole = high - low
            found.append(whole * entropy((sums[place] - low) / whole) if whole > 1e-12 else 0.0)
        return found

    def _testable(self, place: int) -> float:
        """Return how likely a candidate is to show anything but something else."""
        if not self.others:
            return 1.0
        if self._stretches is None:
            told = dict.fromkeys(self.posterior.old.keys() | self.posterior.new.keys(), False)
            self._stretches = Stretches(self.size, {**told, **dict.fromkeys(self.others, True)})
        return self._stretches.chance(place)

    def _to_confirm(self, pending: Collection[int]) -> list[int]:
        """Return what a single suspect still needs: a run of its own, or of the one before it."""
        chances = self.posterior.chances
        best = max(range(len(chances)), key=chances.__getitem__)
        if not best or chances[best] < self.confidence:
            return []
        return [
            place
            for place, kind in ((best - 1, 0), (best, 1))
            if place not in self.others
            and self._runs_still_due(place, kind) > [*pending].count(place)
        ]

    def _edges(self) -> tuple[int, ...]:
        """Return the last old and the first new one, of a steady program with several suspects."""
        if not self.is_steady or len(self._left()) < 2:
            return ()
        return self.edges

    def _next_to_edges(self, pending: Collection[int]) -> list[int]:
        """Return what lies right beside the last old and the first new one, if it was never run.

        Where nearly all fails otherwise, these are what may still be testable: one run each.
        """
        if not (edges := self._edges()):
            return []
        last, first = edges
        return [
            place
            for place in sorted({last + 1, first - 1})
            if last < place < first and place not in self.others and place not in pending
        ]

    def _beside_hidden(self, pending: Collection[int]) -> list[int]:
        """Return what the answer rests on where nothing between can be tested, to be run again.

        While it is in doubt whether these always do the same, all candidates are suspects.
        """
        return [
            place
            for kind, place in enumerate(self._edges())
            if place not in self.others
            and self._runs_still_due(place, kind) > [*pending].count(place)
        ]

    def _runs_still_due(self, place: int, kind: int) -> int:
        """Count the runs that are missing at a place to call it seen; the ends need no second."""
        seen = self.posterior.runs_at(place)[kind]
        is_end = place in (0, self.size)
        most = 1 if is_end else 1 + self.confirmations
        return max(0, most - seen) if self.is_steady else max(0, 1 - sum(self._runs(place)))

    def _runs(self, place: int) -> tuple[int, int]:
        return self.posterior.runs_at(place)

    @property
    def left(self) -> int:
        """How many candidates it still may be."""
        if self.is_steady:
            return len(self._left())
        return sum(1 for chance in self.posterior.chances if chance > _UNLIKELY)

    # --- answering

    @property
    def chances(self) -> list[float]:
        """The probability of each candidate."""
        return self.posterior.chances

    @property
    def edges(self) -> tuple[int, int]:
        """The last one with the old behaviour, and the first one with the new one."""
        return max(self.posterior.old, default=0), min(self.posterior.new, default=self.size)

    def answer(self) -> Answer:
        """Say what is known now."""
        chances = self.posterior.chances
        needed = self._left() if self.is_steady else ()
        ranked = sorted(range(1, self.size + 1), key=lambda place: -chances[place])
        suspects: list[Suspect] = []
        total = 0.0
        for place in ranked:
            is_needed = place in needed or total < self.confidence
            if is_needed and chances[place] > 0.0:
                suspects.append(Suspect(place=place, chance=chances[place]))
                total += chances[place]
        is_found = len(suspects) == 1 and not self._to_confirm(())
        return Answer(
            suspects=tuple(suspects),
            is_found=is_found and self._is_seen(suspects[0].place),
            confidence=min(total, 1.0),
            is_steady=self.is_steady,
            runs=self.runs,
        )

    def _is_seen(self, place: int) -> bool:
        """Tell whether the change was really seen: old before the candidate, and new there."""
        return self._runs(place - 1)[0] > 0 and self._runs(place)[1] > 0


def flattened(prior: Sequence[float]) -> list[float]:
    """Return a prior that sums to one and rules nothing out but what had no weight at all."""
    total = sum(prior)
    possible = sum(1 for weight in prior if weight > 0.0)
    if total <= 0.0 or not possible:
        return [1.0 / len(prior)] * len(prior) if prior else []
    even = _FLATTENED / possible
    found = [even + (1.0 - _FLATTENED) * (one / total) if one > 0.0 else 0.0 for one in prior]
    return [one / sum(found) for one in found]
