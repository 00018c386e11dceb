"""One dimension: the search along it, and the failure that is hunted there."""

from __future__ import annotations

from relaunch.search.ladder import ladder_of
from relaunch.search.seen import Seen
from relaunch.search.sizes import Grow
from relaunch.session.bisect.hunt import told
from relaunch.session.growing.curve import measures
from relaunch.session.growing.told import Grown, State
from relaunch.trial.signature.match import Verdict, akin, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.outcome import Outcome, Signature
    from relaunch.session.growing.crew import Probe
    from relaunch.session.growing.told import Dimension, Request


class Along:
    """What is known along one dimension while all others stay the same."""

    def __init__(self, request: Request, dimension: Dimension) -> None:
        """Nothing was run yet."""
        self.request = request
        self.dimension = dimension
        self.fixed = request.at(dimension)
        self.hunted: Signature | None = None
        self._known: dict[float, Probe] = {}
        """Runs that have ended, in that order; they count when they are asked for."""
        self._probes: list[Probe] = []
        """Those that were learnt from."""
        self._seen: dict[float, Seen] = {}
        self.search = self._fresh()

    def _fresh(self) -> Grow:
        one = self.dimension
        return Grow(one.low, one.high, scale=self.request.scale, step=self.request.step)

    def at(self, value: float) -> dict[str, float]:
        """Return all sizes of a run at a value."""
        return {**self.fixed, self.dimension.name: value}

    def value_of(self, at: Mapping[str, float]) -> float:
        """Return the value of this dimension."""
        return at[self.dimension.name]

    def propose(self, jobs: int) -> None:
        """Let the search choose what else is to be run, so many at once."""
        while values := self.search.propose(jobs - len(self.search.pending)):
            for value in values:
                self.search.start(value)

    def remember(self, probe: Probe) -> None:
        """Keep a run that lies along this dimension."""
        value = self.value_of(probe.at)
        if probe.at == self.at(value):
            self._known[value] = probe

    def remembered(self) -> Probe | None:
        """Return the first run that is known and asked for now; all of them when nothing is."""
        wanted = self.search.pending or self._left()
        return next((probe for value, probe in self._known.items() if value in wanted), None)

    def _left(self) -> list[float]:
        """Return the values that were run and then not needed."""
        one = self.dimension
        ladder = ladder_of(one.low, one.high, self.search.scale, self.request.step)
        left = [value for value in self._known if value not in self._seen]
        return [value for value in left if ladder.value(ladder.nearest(value)) == value]

    def useless(self) -> list[float]:
        """Return the values whose runs can tell nothing any more."""
        return [value for value in self.search.pending if self.search.is_useless(value)]

    def learn(self, probe: Probe) -> Seen:
        """Take what a run showed; the first that fails says what is hunted."""
        outcome, value = probe.outcome, self.value_of(probe.at)
        if self.hunted is None and seen_of(outcome, None, self._match) is Seen.FAILED:
            self.hunted = outcome.signature
        self._probes.append(probe)
        seen = seen_of(outcome, self.hunted, self._match)
        if seen is Seen.OTHER and self.dimension.limit and not self._match:
            seen = Seen.FAILED  # with less it ends at another place, for the same reason
        self._seen[value] = seen
        is_other = seen is Seen.OTHER and outcome.signature is not None
        self.search.learn(
            value,
            seen,
            key=outcome.signature.digest if is_other and outcome.signature else "",
            seconds=outcome.duration_s if not outcome.not_started else None,
            peak_bytes=probe.peak_bytes,
        )
        return seen

    def give_up(self, value: float) -> None:
        """Let a value be as if it had never been begun."""
        pending = [one for one in self.search.pending if one != value]
        probes, self._probes = self._probes, []
        self.search = self._fresh()
        for probe in probes:
            self.learn(probe)
        for one in pending:
            self.search.start(one)

    def _failure(self) -> Signature | None:
        """Return the failure that was hunted; of a limit, that of the most which is too little."""
        if not self.dimension.limit:
            return self.hunted
        failed = [one for one in self._probes if self._seen[self.value_of(one.at)] is Seen.FAILED]
        last = max(failed, key=lambda one: self.value_of(one.at), default=None)
        return last.outcome.signature if last is not None else self.hunted

    @property
    def _match(self) -> bool:
        return bool(self.request.recipe.match)

    # --- telling

    def state(self) -> State:
        """Say how it stands."""
        return State(
            dimension=self.dimension,
            scale=self.search.scale,
            seen=dict(self._seen),
            running=tuple(self.search.pending),
        )

    def grown(self) -> Grown:
        """Say what came of it."""
        answer = self.search.answer()
        return Grown(
            dimension=self.dimension,
            scale=self.search.scale,
            fixed=self.fixed,
            answer=answer,
            failure=self._failure(),
            shown={self.value_of(one.at): told(one.outcome) for one in self._probes},
            folders={self.value_of(one.at): one.folder for one in self._probes},
            measures=() if self.dimension.limit else measures(answer.looks, self.request),
            is_done=not self.search.propose(1) and not self.search.pending,
        )


def seen_of(outcome: Outcome, hunted: Signature | None, is_pinned: bool) -> Seen:
    """Judge a run; with `is_pinned`, only what matches the pattern of the person is the failure."""
    judged = verdict(outcome, hunted)
    if judged is Verdict.UNTESTABLE:
        return Seen.UNTESTABLE
    if judged is Verdict.PASSED:
        return Seen.PASSED
    found = outcome.signature
    if is_pinned and (found is None or found.kind != "pinned"):
        return Seen.OTHER
    is_same = judged is Verdict.SAME or (
        found is not None and hunted is not None and akin(found, hunted)
    )
    return Seen.FAILED if is_same else Seen.OTHER
