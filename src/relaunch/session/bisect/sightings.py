"""What the runs of each candidate showed, in the order they came; and what follows for a search."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.line import Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.outcome import Outcome
    from relaunch.search.strategy import Strategy
    from relaunch.session.bisect.hunt import Hunt


class Seen(Record):
    """What one run of a candidate showed."""

    outcome: Outcome
    seconds: float
    is_forked: bool = False
    is_traced: bool = False
    """It was looked on: which of its lines run."""

    @property
    def is_plain(self) -> bool:
        """It was run as a person runs it: what the answer rests on has to be."""
        return not self.is_forked and not self.is_traced


class Sightings(dict[str, list[Seen]]):
    """All runs that are believed, by candidate."""

    def __init__(self) -> None:
        """Begin with nothing seen."""
        super().__init__()
        self.replaced: dict[str, list[Outcome]] = {}
        """What ends showed by themselves, before they were run with all that may help."""

    def add(self, candidate: str, seen: Seen) -> None:
        """Take one more run of a candidate."""
        self.setdefault(candidate, []).append(seen)

    def set_aside(self, candidate: str) -> None:
        """Let what is seen next stand in the place of what was seen."""
        runs = self.pop(candidate, ())
        self.replaced[candidate] = [one.outcome for one in runs if one.is_plain]

    def forget_forks(self) -> None:
        """Believe fresh processes only."""
        self._keep_those(lambda one: not one.is_forked)

    def forget_traced(self) -> None:
        """Believe only what nobody looked on."""
        self._keep_those(lambda one: not one.is_traced)

    def _keep_those(self, is_believed: Callable[[Seen], bool]) -> None:
        for candidate, runs in [*self.items()]:
            believed = [one for one in runs if is_believed(one)]
            if believed:
                self[candidate] = believed
            else:
                del self[candidate]

    def is_plain(self, candidate: str) -> bool:
        """Tell whether a process of its own has shown it, and nobody looked on."""
        return any(one.is_plain for one in self.get(candidate, ()))

    def is_contradicted(self, candidate: str, hunt: Hunt) -> bool:
        """Tell whether plain runs have shown other things than those in forks, or looked on."""
        runs = self.get(candidate, ())
        helped = {hunt.side_of(one.outcome) for one in runs if not one.is_plain}
        plain = {hunt.side_of(one.outcome) for one in runs if one.is_plain}
        return bool(helped and plain and helped != plain)

    def traced_only(self, hunt: Hunt) -> str:
        """Return who alone has shown what is hunted, if that was looked on; else nothing."""
        shown = [(name, one) for name, runs in self.items() for one in runs]
        hunted = [(name, one.is_traced) for name, one in shown if hunt.is_it(one.outcome)]
        return hunted[0][0] if hunted and all(is_traced for _, is_traced in hunted) else ""

    def teach(self, search: Strategy, places: Mapping[str, int], hunt: Hunt) -> None:
        """Let a search learn all of it; a fork that failed otherwise tells nothing.

        First what is new: another failure behind that is none that was not mended yet.
        """

        def is_behind(item: tuple[str, list[Seen]]) -> bool:
            return all(hunt.side_of(one.outcome) is not Side.NEW for one in item[1])

        for candidate, runs in sorted(self.items(), key=is_behind):
            if candidate in places:
                for one in runs:
                    if not one.is_forked or hunt.side_of(one.outcome) is not Side.OTHER:
                        learn(search, places[candidate], hunt, one.outcome)

    def is_misread(self, search: Strategy, ids: Sequence[str], hunt: Hunt) -> bool:
        """Tell whether another failure was taken for one not mended yet, and is behind that."""
        last, first = search.edges
        if not hunt.is_reversed or last < first:
            return False
        return not any(hunt.is_it(one.outcome) for one in self.get(ids[last], ()))

    def sides(self, hunt: Hunt, places: Mapping[str, int]) -> dict[int, Side]:
        """Return what was seen last at each place of a line."""
        return {
            places[one]: hunt.side_of(runs[-1].outcome)
            for one, runs in self.items()
            if one in places
        }

    def seconds(self) -> float:
        """Return what a probe takes, on average."""
        every = [one.seconds for runs in self.values() for one in runs]
        return sum(every) / len(every) if every else 0.0

    def shown(self, hunt: Hunt, candidate: str, side: Side) -> Outcome | None:
        """Return an outcome of a candidate on that side of the change; rather of a plain run."""
        runs = sorted(self.get(candidate, ()), key=lambda one: not one.is_plain)
        outcomes = [one.outcome for one in runs]
        return next((one for one in outcomes if hunt.side_of(one) is side), None)

    def others(self, hunt: Hunt) -> dict[str, int]:
        """Count the other failures on the way."""
        found: dict[str, int] = {}
        for runs in self.values():
            outcome = runs[-1].outcome
            if hunt.side_of(outcome) is Side.OTHER:
                title = outcome.signature.title if outcome.signature else outcome.not_started
                found[title] = found.get(title, 0) + 1
        return found


def learn(search: Strategy, place: int, hunt: Hunt, outcome: Outcome) -> None:
    """Let a search learn what one run showed."""
    key = outcome.signature.digest if outcome.signature else outcome.not_started
    side = hunt.side_of(outcome)
    if hunt.is_reversed and side is Side.OLD and not hunt.is_it(outcome):
        # It passed before that already: this is another failure, which came and went.
        side = Side.OTHER if search.edges[1] < place else side
    search.learn(place, side, key)
