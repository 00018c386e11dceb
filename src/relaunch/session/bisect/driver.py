"""Runs a search over any candidates: both ends, a line of them, with a budget and a journal.

It knows neither commits nor releases: candidates are names, the launcher knows how to try them.
"""

from __future__ import annotations

import time
from math import ceil, log2

from relaunch.errors import RelaunchError
from relaunch.journal.searches import INTERRUPTED
from relaunch.proc.interrupts import Interrupts
from relaunch.search.line import LineSearch, Side
from relaunch.search.posterior import Rates
from relaunch.session.bisect.ends import Ends
from relaunch.session.bisect.hunt import NotReproduced
from relaunch.session.bisect.kept_probes import probe_json, seen_in
from relaunch.session.bisect.sightings import Sightings, learn
from relaunch.session.bisect.told import Noted, Preparing, Probed, State
from relaunch.session.sitting import Sitting, Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from _typeshed import HasFileno

    from relaunch.journal.searches import Search
    from relaunch.search.strategy import Strategy
    from relaunch.session.bisect.crew import Launcher, Probe
    from relaunch.session.bisect.hunt import Hunt
    from relaunch.session.bisect.told import Event, Request
    from relaunch.session.bisect.weigh import Weigher

_MANY_OTHERS = 3
"""After so many other failures it is made sure that the one hunted comes when nobody looks on."""
_MOMENT = 0.5
"""How long weights are waited for, as a share of what a run takes."""
_TOGETHER = 0.1
"""How much longer than one that began with them others are waited for, as a share of its time."""


class NothingYet(RelaunchError):
    """It was stopped before there was anything to tell."""


class Contradicted(Exception):
    """All has to be learnt anew: forks are not believed any more, or a failure was misread."""


class Misled(Exception):
    """An end does otherwise when nobody looks on: what is hunted has to be learnt anew."""


class Driver:
    """What has been seen of each candidate, and how more is learnt."""

    def __init__(
        self,
        request: Request,
        book: Search,
        *,
        launcher: Callable[[], Launcher],
        describe: Callable[[str], tuple[str, str]],
        tell: Callable[[Event], object],
        may_fork: bool = False,
    ) -> None:
        """Begin with what the journal knows; `describe` gives a candidate's name and title.

        `may_fork`: the launcher can start probes with their imports done.
        """
        self.request = request
        self.book = book
        self.seen = Sightings()
        self.runs = self.search_runs = self.builds = self.forked = 0
        self._may_fork = may_fork
        self._again: list[str] = []
        """What a fork left in doubt, to be run afresh."""
        self._began: dict[str, float] = {}
        """When probes of candidates were last started."""
        self._noted: set[str] = set()
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self.weigher: Weigher | None = None
        self.traced: frozenset[str] = frozenset()
        """Those whose first run is to tell which lines run: the ends, until they are known."""
        self.last_resort: Callable[[], object] = lambda: None
        """Called before ends that are outgrown are run once more, with all that may help."""
        self.outgrown: set[str] = set()
        """Those that another environment may help."""
        self._interrupts = Interrupts()
        self._make_launcher = launcher
        self._launcher: Launcher | None = None
        self._describe = describe
        self.tell = tell
        with book.reading():
            for probe in book.probes():
                self._remember(probe)
        self._before = self.runs

    def _remember(self, probe: Mapping[str, Any]) -> None:
        self.forked += probe.get("forked", False)
        if probe.get("instead"):
            self.seen.set_aside(probe["commit"])
        if probe.get("dropped"):
            self._may_fork = self._may_fork and not probe.get("forked")
        else:
            self.seen.add(probe["commit"], seen_in(probe))
        if probe.get("outgrown"):
            self.outgrown.add(probe["commit"])
        self.runs += probe["runs"]
        self.search_runs += probe.get("searching", False)
        self.builds += bool(probe.get("build_s"))

    @property
    def launcher(self) -> Launcher:
        """Who runs the probes; made when the first one is due."""
        if self._launcher is None:
            self._launcher = self._make_launcher()
        return self._launcher

    def __enter__(self) -> Self:
        """Wait for Ctrl-C as for anything else."""
        self._interrupts.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """End all that runs."""
        if self.weigher is not None:
            self.weigher.close()
        if self._launcher is not None:
            self._launcher.close()
        self.book.release()
        self._interrupts.__exit__(None, None, None)

    def nothing_yet(self, stop: Stopped) -> NothingYet:
        """Write down that it was stopped before there was any answer, and return what to say."""
        self.book.finish(self._ended(stopped=str(stop)))
        return NothingYet(
            f"{stop}, before both ends were run",
            hint="rl bisect --resume",
            exit_code=130 if str(stop) == INTERRUPTED else 1,
        )

    def _ended(self, **why: str) -> dict[str, Any]:
        return {**why, "runs": self.runs, "seconds": self.sitting.spent_s}

    # --- both ends

    def run_ends(self, old: str, new: str, names: tuple[str, str], hint: str = "") -> Hunt:
        """Run both ends, and learn from them what is hunted; `hint` is for ends that are alike."""
        try:
            hunt = Ends(self, old, new, names).learnt(hint)
        except NotReproduced as error:
            self.book.finish(self._ended(refused=error.message))
            raise
        self.traced = frozenset()
        return hunt

    def is_to_trace(self, candidate: str) -> bool:
        """Tell whether the run of a candidate that begins now is to tell which lines run."""
        return candidate in self.traced and candidate not in self.seen

    def forget_traced(self) -> None:
        """Believe only runs that nobody looked on: the next look at the ends is such a one."""
        self.seen.forget_traced()
        self.book.drop_traced()

    def run_instead(self, candidates: list[str]) -> None:
        """Run these once more; what is seen then stands in the place of what was seen before."""
        for one in candidates:
            self.seen.set_aside(one)
        self.run_all(candidates, instead=True)

    # --- a line

    def search_line(
        self, hunt: Hunt, ids: Sequence[str], prior: Sequence[float], inside: str = ""
    ) -> tuple[Strategy, str]:
        """Search among candidates after the first, which is old; says why it was stopped."""

        def begin() -> LineSearch:
            return LineSearch(
                prior,
                rates=self.rates(hunt),
                confidence=self.request.confidence,
                confirmations=self.request.confirm,
                is_patient=self.request.has_budget,
            )

        return self.search(hunt, ids, begin, inside)

    def search(
        self, hunt: Hunt, ids: Sequence[str], begin: Callable[[], Strategy], inside: str = ""
    ) -> tuple[Strategy, str]:
        """Search among candidates in any way, which begins anew where what was seen was wrong."""
        places = {candidate: place for place, candidate in enumerate(ids)}
        stopped = ""
        while True:
            search = begin()
            self.seen.teach(search, places, hunt)
            try:
                self._await_weights(search)
                self._drive(search, places, hunt, inside)
                self._see_afresh(search, places, hunt)
            except Contradicted:
                continue
            except Stopped as stop:
                stopped = str(stop)
            return search, stopped

    def _await_weights(self, search: Strategy) -> None:
        """Give who weighs the candidates a moment: the first runs are those that it spares."""
        until = time.monotonic() + _MOMENT * self.seen.seconds()
        while self._weigher_of(search) and (left := until - time.monotonic()) > 0.0:
            self._wait(search, left)

    def _weigher_of(self, search: Strategy | None) -> Weigher | None:
        """Return who weighs the candidates of a search now, if anybody does."""
        weigher = self.weigher
        if search is None or weigher is None or not weigher.is_running:
            return None
        return weigher if weigher.size == search.size else None

    def _drive(self, search: Strategy, places: dict[str, int], hunt: Hunt, inside: str) -> None:
        ids = list(places)
        while True:
            if self._again:
                self._check_budget()
            while self._again and self.launcher.free:
                self.launcher.start(self._again.pop(0))
            running = [places[one] for one in self.launcher.running if one in places]
            wanted = search.propose(self.launcher.free, running) if self.launcher.free else []
            if wanted or self.launcher.running:
                self._check_budget()
            for place in wanted:
                self._start(ids[place], search)
            self.tell(self._state(search, places, hunt, inside))
            if not self.launcher.running:
                return
            probes = self._wait(search)
            while probes:
                self._hear(probes, search, places, hunt)
                self._see_untraced(hunt, places)
                probes = self._wait_for_the_rest(probes, search)

    def _hear(
        self, probes: list[Probe], search: Strategy, places: dict[str, int], hunt: Hunt
    ) -> None:
        """Learn from what has ended, and end what can tell nothing any more."""
        for probe in probes:
            is_confirming = search.is_steady or search.is_confirming
            is_searching = probe.candidate not in self.seen or not is_confirming
            self._note(probe, hunt, is_searching=is_searching)
        for probe in probes:
            if self._is_believed(probe, hunt):
                learn(search, places[probe.candidate], hunt, probe.outcome)
        if self.seen.is_misread(search, [*places], hunt):
            raise Contradicted
        for candidate in [*self.launcher.running]:
            if search.is_useless(places[candidate]):
                self.launcher.cancel(candidate)

    def _wait_for_the_rest(self, probes: list[Probe], search: Strategy) -> list[Probe]:
        """Wait a little for those that began with these: all together tell better what is next."""
        last = max(probes, key=lambda probe: probe.seconds)
        patience = _TOGETHER * last.seconds
        began = self._began.get(last.candidate, 0.0) + patience
        until = time.monotonic() + patience
        found: list[Probe] = []
        while not found and (left := until - time.monotonic()) > 0.0:
            if not any(self._began.get(one, began) < began for one in self.launcher.running):
                break
            found = self._wait(search, left)
        return found

    def _see_untraced(self, hunt: Hunt, places: dict[str, int]) -> None:
        """Where many fail otherwise, have an end run plainly that alone showed what is hunted."""
        end = self.seen.traced_only(hunt)
        is_due = end in places and end not in (*self._again, *self.launcher.running)
        if is_due and sum(self.seen.others(hunt).values()) >= _MANY_OTHERS:
            self._again.append(end)

    def probe_once(self, hunt: Hunt, candidate: str) -> Side:
        """Run a candidate, unless it was run before in a process of its own."""
        if not self.seen.is_plain(candidate):
            self.run_all([candidate], is_searching=True)
            if self.seen.is_contradicted(candidate, hunt):
                self._drop_forks()
        return hunt.side_of(self.seen[candidate][-1].outcome)

    # --- forks, of which nothing is believed that a fresh process would not show

    def _start(self, candidate: str, search: Strategy) -> None:
        """Run a candidate; in a fork where it is the first look at it, and not the last."""
        launcher = self.launcher
        self._began[candidate] = time.monotonic()
        is_first = candidate not in self.seen and candidate not in launcher.running
        if self._may_fork and is_first and search.is_steady and not search.is_confirming:
            launcher.start_forked(candidate)
        else:
            launcher.start(candidate)

    def _is_believed(self, probe: Probe, hunt: Hunt) -> bool:
        """Tell whether to learn from a probe now; what is in doubt is run afresh at once."""
        self._check_plain(probe.candidate, hunt)
        if not probe.is_forked:
            return True
        if not self._may_fork:  # it was on its way when forks were dropped
            return False
        if probe.is_doubtful or hunt.side_of(probe.outcome) is Side.OTHER:
            self._again.append(probe.candidate)
            return False
        return True

    def _check_plain(self, candidate: str, hunt: Hunt) -> None:
        """Begin anew where plain runs of a candidate have shown something else than others."""
        if not self.seen.is_contradicted(candidate, hunt):
            return
        if any(one.is_traced for one in self.seen[candidate]):
            raise Misled
        self._drop_forks()
        raise Contradicted

    def _drop_forks(self) -> None:
        """Believe no fork any more, and run no others."""
        self._may_fork = False
        self._again.clear()
        self.launcher.stop_forking()
        self.book.drop_forked()
        self.seen.forget_forks()
        text = "a run with its imports done showed something else than a fresh one: all run afresh"
        self.tell(Noted(text=text))

    def _see_afresh(self, search: Strategy, places: dict[str, int], hunt: Hunt) -> None:
        """Run plainly what the answer rests on, where only forks or traced runs have shown it."""
        ids = list(places)
        low, high = search.edges
        for candidate in (ids[low], ids[high]) if search.is_steady else ():
            if candidate in self.seen and not self.seen.is_plain(candidate):
                self.run_all([candidate])
                learn(search, places[candidate], hunt, self.seen[candidate][-1].outcome)
                self._check_plain(candidate, hunt)

    def rates(self, hunt: Hunt) -> Rates:
        """Say what is known of how often it fails, in terms of the new behaviour."""
        request = self.request
        if hunt.is_reversed:
            before = 0.0 if request.always_fails_before else None
            after = 1.0 if request.never_fails_after else None
        else:
            before = 0.0 if request.never_fails_before else None
            after = 1.0 if request.always_fails_after else None
        return Rates(before=before, after=after, steady=before is None and after is None)

    # --- running

    def run_all(
        self, candidates: list[str], *, instead: bool = False, is_searching: bool = False
    ) -> None:
        """Run these, as many at once as there are workers."""
        left = [*candidates]
        while left or self.launcher.running:
            self._check_budget()
            while left and self.launcher.free:
                self.launcher.start(left.pop(0))
            for probe in self._wait():
                self._note(probe, None, instead=instead, is_searching=is_searching)

    def _wait(self, search: Strategy | None = None, most_s: float | None = None) -> list[Probe]:
        """Wait until a probe has ended, or better weights for a search have come, or so long."""
        weigher = self._weigher_of(search)
        also: list[HasFileno] = [self._interrupts]
        if weigher is not None:
            also.append(weigher)
        limits = [one for one in (self.sitting.left_s, most_s) if one is not None]
        probes = self.launcher.wait(min(limits, default=None), also)
        if self._interrupts.came:
            raise Stopped(INTERRUPTED)
        weights = weigher.read() if weigher else None
        if weights and isinstance(search, LineSearch):
            search.reweigh(weights)
        return probes

    def _note(
        self, probe: Probe, hunt: Hunt | None, *, instead: bool = False, is_searching: bool
    ) -> None:
        self.runs += probe.runs
        self.search_runs += is_searching
        self.builds += bool(probe.build_s)
        lacked = [f"{name} is not in this clone: run without it" for name in probe.missing]
        for note in (*probe.notes, *lacked):
            if note not in self._noted:
                self._noted.add(note)
                self.tell(Noted(text=note))
        if probe.outgrown:
            self.outgrown.add(probe.candidate)
        is_dropped = probe.is_doubtful or (probe.is_forked and not self._may_fork)
        kept = probe_json(
            probe, self.book.path, instead=instead, is_dropped=is_dropped, is_searching=is_searching
        )
        self.book.note(kept)
        self.forked += probe.is_forked
        if not is_dropped:
            self.seen.add(probe.candidate, seen_in(kept))
        if hunt is not None:
            name, title = self._describe(probe.candidate)
            side = hunt.side_of(probe.outcome)
            self.tell(
                Probed(
                    name=name,
                    title=title,
                    side=side,
                    outcome=probe.outcome,
                    seconds=probe.seconds,
                    rung=probe.rung,
                )
            )

    def _check_budget(self) -> None:
        self.sitting.check_runs(self.runs - self._before)
        self.sitting.check_time()

    # --- telling

    def tell_preparing(self, candidate: str, what: str) -> None:
        """Tell what takes long before a candidate can be run."""
        self.tell(Preparing(name=self._describe(candidate)[0], what=what))

    def _state(self, search: Strategy, places: dict[str, int], hunt: Hunt, inside: str) -> State:
        chances = search.chances
        bits = -sum(one * log2(one) for one in chances if one > 0.0)
        is_ending = search.is_confirming or search.answer().is_found
        expected = 0 if is_ending else max(1, ceil(bits - 0.01))
        return State(
            size=search.size,
            sides=self.seen.sides(hunt, places),
            running=tuple(places[one] for one in self.launcher.running if one in places),
            chances=chances,
            left=search.left,
            runs=self.runs,
            expected=expected,
            seconds_left=expected * self.seen.seconds() / (1.0 if self.request.jobs <= 1 else 1.5),
            inside=inside,
        )
