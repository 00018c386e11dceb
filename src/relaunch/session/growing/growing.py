"""A whole search: each dimension in turn, several runs at once, and nothing is run twice."""

from __future__ import annotations

from relaunch.journal import searches
from relaunch.proc.interrupts import Interrupts
from relaunch.session.growing.along import Along
from relaunch.session.growing.crew import KIND, SCRATCH, Crew, Probe
from relaunch.session.growing.remembered import request_json
from relaunch.session.growing.sized import Sized
from relaunch.session.growing.told import Began, Found, Probed, Turn
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.sitting import Sitting, Stopped
from relaunch.session.taken_up import take_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.session.growing.told import Dimension, Event, Request
    from relaunch.session.project import Project


class Growing:
    """One search. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Begin a search, or go on with one."""
        self.request = request
        self.tell = tell
        home = project.home
        searches.sweep(home.journal, KIND, SCRATCH)
        start = {"kind": KIND, "request": request_json(request, home.project)}
        self.book = take_up(project, lambda: start, resume)
        self.known = self.book.runs(
            lambda one: Probe(
                at=one["at"],
                outcome=outcome_of(one["outcome"]),
                peak_bytes=one["peak_bytes"],
                folder=one["folder"],
            )
        )
        self._before = len(self.known)
        self._started = 0
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._interrupts = Interrupts()
        sized = Sized(
            recipe=request.recipe,
            dimensions=request.dimensions,
            project=home.project,
            redact=tuple(project.settings.record.redact),
        )
        self._crew = Crew(sized, self.book, jobs=request.jobs)

    def run(self) -> Found:
        """Search to the end; what a person interrupts can go on later."""
        self.tell(Began(number=self.book.number, known=len(self.known)))
        begun: list[Along] = []
        stopped = ""
        with self._interrupts:
            try:
                for dimension in self.request.dimensions:
                    begun.append(self._begin(dimension))
                    self._drive(begun[-1])
            except Stopped as stop:
                stopped = str(stop)
            finally:
                self._crew.close()
                self.book.release()
        return self._found(begun, stopped)

    def _begin(self, dimension: Dimension) -> Along:
        along = Along(self.request, dimension)
        self.tell(Turn(dimension=dimension, fixed=along.fixed))
        for probe in self.known:
            along.remember(probe)
        return along

    def _drive(self, along: Along) -> None:
        """Ask, run and learn, one by one: what is remembered leads the same way once more."""
        while True:
            along.propose(self.request.jobs)
            probe = along.remembered()
            if probe is not None:
                self._learn(along, probe)
                continue
            self._launch(along)
            self.tell(along.state())
            if not self._crew.running:
                return
            self._wait(along)

    def _learn(self, along: Along, probe: Probe) -> None:
        seen = along.learn(probe)
        if any(probe is one for one in self.known[self._before :]):
            self.tell(
                Probed(
                    dimension=along.dimension,
                    value=along.value_of(probe.at),
                    seen=seen,
                    outcome=probe.outcome,
                    peak_bytes=probe.peak_bytes,
                )
            )
        for value in along.useless():
            self._crew.cancel(along.at(value))
            along.give_up(value)

    def _launch(self, along: Along) -> None:
        """Run what was asked for, as far as the budget goes."""
        for at in map(along.at, along.search.pending):
            if at in self._crew.running:
                continue
            if not self.sitting.may_run(self._started):
                if not self._crew.running:
                    self.sitting.check_runs(self._started)
                return
            self._crew.start(at)
            self._started += 1

    def _wait(self, along: Along) -> None:
        """Wait until some have ended, or the time is over; the smallest comes first."""
        self.sitting.check_time()
        probes = self._crew.wait(self.sitting.left_s, self._interrupts)
        for probe in sorted(probes, key=lambda probe: along.value_of(probe.at)):
            self._note(probe)
            along.remember(probe)
        if self._interrupts.came:
            raise Stopped(searches.INTERRUPTED)

    def _note(self, probe: Probe) -> None:
        self.known.append(probe)
        self.book.note(
            {
                "at": dict(probe.at),
                "outcome": outcome_json(probe.outcome),
                "peak_bytes": probe.peak_bytes,
                "folder": probe.folder,
            }
        )

    def _found(self, begun: list[Along], stopped: str) -> Found:
        return Found(
            grown=tuple(one.grown() for one in begun),
            runs=len(self.known),
            new_runs=len(self.known) - self._before,
            seconds=self.sitting.spent_s,
            stopped=stopped,
        )
