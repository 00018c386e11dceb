"""Finds the size from which on a program fails, or passes: doubling first, then halving.

It thinks and never runs anything: `propose` says which values to try next, `learn` takes what was
seen, in any order, and `answer` says at any time what is known.
"""

from __future__ import annotations

from itertools import chain, groupby

from relaunch.search.brackets import Known, divide, spread
from relaunch.search.elsewhere import CHECKS, checks, pattern, witnesses
from relaunch.search.grown import Answer, Direction, Edge, Look, Shape, Stretch
from relaunch.search.ladder import Scale, fitting_scale, ladder_of, place_of
from relaunch.search.seen import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.brackets import Span
    from relaunch.search.elsewhere import Pattern


class Grow:
    """A search for the lowest value at which the verdict changes, and for whether others do.

    Whole values on a log scale are doubled from the low end, cheap ones first, until the verdict
    differs; otherwise both ends come first. Then the span is halved, or with k workers divided into
    k + 1 parts, until the two sides of the edge are neighbours. Then a few values elsewhere are
    looked at; one that differs makes further edges be found. Unclear values are stepped around; if
    they hide the edge, the answer is the span between the nearest clear ones.

    With n values, L = log2 n rounded up, and D values at the start (2, or those of the doubling, at
    most log2(high / low) + 2), it takes at most D + L + 6 runs where the verdict changes at most
    once and nothing is unclear, and never more than D + 4 L + 14. With k workers that all finish
    before more is asked for, an edge takes at most D / k + L / log2(k + 1) + 6 / k rounds, each
    part rounded up.
    """

    def __init__(
        self,
        low: float,
        high: float,
        *,
        scale: Scale | None = None,
        step: float | None = None,
        digits: int = 2,
        budget: int | None = None,
    ) -> None:
        """Whole ends mean whole values, `step` apart; others are found to so many digits."""
        self.scale = scale or fitting_scale(low, high)
        self._ladder = ladder_of(low, high, self.scale, step, digits)
        self._known = Known(self._ladder.size)
        self._looks: dict[int, Look] = {}
        self._halvings = (self._ladder.size - 1).bit_length()
        self._doubles = self.scale is Scale.LOG and isinstance(low, int) and isinstance(high, int)
        self._opening = self._doublings() if self._doubles else self._ends()
        most = len(self._opening) + 4 * self._halvings + CHECKS + 8
        self.bound = most if budget is None else min(most, budget)
        """It never asks for more runs than this."""
        self._planned: tuple[Span | None, list[int]] | None = None
        self._map_until = 0

    def _ends(self) -> list[int]:
        return sorted({0, self._ladder.size - 1})

    def _doublings(self) -> list[int]:
        low, high = int(self._ladder.value(0)), int(self._ladder.value(self._ladder.size - 1))
        if low < 0:
            raise ValueError(f"a log scale needs values of at least 0, not {low}")
        places, value = {0, self._ladder.size - 1}, max(1, 2 * low)
        while value < high:
            places.add(self._ladder.nearest(value))
            value *= 2
        return sorted(places)

    # --- learning

    @property
    def pending(self) -> list[float]:
        """Values that are being tried."""
        return [self._ladder.value(place) for place in sorted(self._known.pending)]

    @property
    def runs(self) -> int:
        """Values that were tried or are being tried."""
        return len(self._known.taken)

    def start(self, value: float) -> None:
        """Take note that a value is being tried."""
        self._known.pending.add(place_of(self._ladder, value))

    def learn(
        self,
        value: float,
        seen: Seen,
        *,
        key: str = "",
        seconds: float | None = None,
        peak_bytes: int | None = None,
    ) -> None:
        """Take what a run showed; of two runs of a value the later one counts."""
        place = place_of(self._ladder, value)
        self._known.pending.discard(place)
        self._known.seen[place] = seen
        self._looks[place] = Look(
            value=value, seen=seen, key=key, seconds=seconds, peak_bytes=peak_bytes
        )
        if not self._map_until and len(self._known.changes()) > 1:
            self._map_until = self.runs + 2 * self._halvings + 4

    # --- asking

    def propose(self, count: int = 1) -> list[float]:
        """Return up to `count` values to try now; if none is pending either, it is done."""
        places = self._wanted(min(count, self.bound - self.runs))
        return [self._ladder.value(place) for place in places]

    def is_useless(self, value: float) -> bool:
        """Tell whether a value that is being tried no longer narrows the edge being sought."""
        place, changes = place_of(self._ladder, value), self._known.changes()
        return bool(changes) and not (
            changes[0][0] < place < changes[0][1] or self._is_settled(changes[0])
        )

    def _wanted(self, count: int) -> list[int]:
        if count <= 0:
            return []
        changes = self._known.changes()
        if not changes:
            return self._first_change(count)
        wanted = self._divide(changes[0], count)
        if wanted or not self._is_settled(changes[0]):
            return wanted
        if len(changes) == 1:
            return self._check(changes[0], count)
        return self._more_edges(min(count, self._map_until - self.runs))

    def _first_change(self, count: int) -> list[int]:
        if not self._known.seen.keys() >= set(self._opening):
            places = [place for place in self._opening if place not in self._known.taken][:count]
            return places if self._doubles else self._filled(places, count)
        return self._to_borders(count) or ([] if self._known.pending else self._check(None, count))

    def _filled(self, places: list[int], count: int) -> list[int]:
        """Let workers that would wait for the ends divide what is between."""
        gaps = self._known.gaps((0, self._ladder.size - 1))
        most = min(count, len(self._opening) + self._halvings - self.runs) - len(places)
        return [*places, *spread(gaps, most)]

    def _to_borders(self, count: int) -> list[int]:
        """Without a change, close in on where values begin to be unclear: it may hide there."""
        borders = self._known.unclear_borders()
        gaps = chain.from_iterable(self._known.gaps(border) for border in borders)
        return spread(list(gaps), count)

    def _divide(self, span: Span, count: int) -> list[int]:
        return divide(self._known, span, count, patience=self._halvings + 4)

    def _is_settled(self, span: Span | None) -> bool:
        if span is not None:
            return not self._known.is_busy(span) and not self._divide(span, 1)
        is_open = self._known.pending or not self._known.seen.keys() >= set(self._opening)
        return not is_open and not self._to_borders(1)

    def _check(self, edge: Span | None, count: int) -> list[int]:
        return [place for place in self._plan(edge) if place not in self._known.taken][:count]

    def _plan(self, edge: Span | None) -> list[int]:
        """Return the values to look at once an edge is settled; they stay while it does."""
        if self._planned is None or self._planned[0] != edge:
            self._planned = edge, checks(self._ladder, self.scale, self._known, edge)
        return self._planned[1]

    def _more_edges(self, count: int) -> list[int]:
        """After a surprise, ask whether it is a pattern, find other edges, finish the checks."""
        if count <= 0:
            return []
        found = self._pattern()
        if found is not None:
            if wanted := witnesses(self._ladder, self._known, found)[:count]:
                return wanted
            if found.is_sure or self._known.pending:
                return []
        changes = self._known.changes()
        for change in changes[1:]:
            if wanted := self._divide(change, count):
                return wanted
        if self._known.pending or (self._planned is not None and self._planned[0] is None):
            return []  # a surprise that checks all over brought needs no further ones
        return self._check(self._planned[0] if self._planned is not None else changes[0], count)

    # --- answering

    def answer(self) -> Answer:
        """Say what is known now."""
        changes = self._known.changes()
        return Answer(
            edge=self._edge(changes[0]) if changes else None,
            direction=self._direction(),
            shape=self._shape(changes),
            map=tuple(self._map()),
            pattern=self._pattern() if len(changes) > 1 else None,
            looks=tuple(self._looks[place] for place in sorted(self._looks)),
            runs=len(self._looks),
        )

    def _edge(self, span: Span) -> Edge:
        return Edge(
            before=self._ladder.value(span[0]),
            after=self._ladder.value(span[1]),
            is_exact=span[1] - span[0] == 1,
            is_hidden=bool(self._known.unclear_inside(span)),
            first_suspect=self._ladder.value(span[0] + 1),
        )

    def _direction(self) -> Direction:
        verdicts = [self._known.seen[place] for place in self._known.clear]
        if not verdicts:
            return Direction.UNKNOWN
        fails_first = verdicts[0] is Seen.FAILED
        if len(set(verdicts)) > 1:
            return Direction.PASSES_FROM if fails_first else Direction.FAILS_FROM
        return Direction.ALWAYS_FAILS if fails_first else Direction.NEVER_FAILS

    def _shape(self, changes: list[Span]) -> Shape:
        if len(changes) > 1:
            return Shape.NOT_MONOTONE
        edge = changes[0] if changes else None
        if not self._known.clear or not self._is_settled(edge):
            return Shape.UNCHECKED
        return Shape.MONOTONE if self._is_checked(self._plan(edge)) else Shape.UNCHECKED

    def _is_checked(self, plan: list[int]) -> bool:
        """All that was planned was tried, and some of it could be judged; or there was nothing."""
        is_clear = not plan or any(place in self._known.clear for place in plan)
        return is_clear and self._known.seen.keys() >= set(plan)

    def _map(self) -> list[Stretch]:
        places = sorted(self._looks)
        groups = groupby(
            places, key=lambda place: (self._looks[place].seen, self._looks[place].key)
        )
        return [self._stretch(list(group)) for _, group in groups]

    def _stretch(self, places: list[int]) -> Stretch:
        first, last = places[0], places[-1]
        return Stretch(
            seen=self._looks[first].seen,
            key=self._looks[first].key,
            low=self._ladder.value(first),
            high=self._ladder.value(last),
            is_low_exact=first == 0 or first - 1 in self._looks,
            is_high_exact=last == self._ladder.size - 1 or last + 1 in self._looks,
            tried=len(places),
        )

    def _pattern(self) -> Pattern | None:
        clear = [
            (self._ladder.value(place), self._known.seen[place]) for place in self._known.clear
        ]
        if not all(isinstance(value, int) for value, _ in clear):
            return None
        passed = [int(value) for value, seen in clear if seen is Seen.PASSED]
        return pattern(passed, [int(value) for value, seen in clear if seen is Seen.FAILED])
