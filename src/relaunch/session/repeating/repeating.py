"""A whole repetition: so many runs, in each mode, and what can be said from them."""

from __future__ import annotations

import os

from relaunch.errors import LaunchError, PlaceError, UsageError
from relaunch.journal import searches
from relaunch.proc.interrupts import Interrupts
from relaunch.proc.launch import find_program
from relaunch.search.odds import bounds
from relaunch.search.rates import fisher
from relaunch.session.repeating.crew import LOAD, SCRATCH, Crew
from relaunch.session.repeating.remembered import KIND, request_json, run_json, run_of
from relaunch.session.repeating.repeated import Repeated
from relaunch.session.repeating.told import (
    PLAIN,
    Began,
    Counted,
    Ended,
    Found,
    Noticed,
    Rate,
    State,
)
from relaunch.session.sitting import Sitting, Stopped
from relaunch.session.sweeping.judge import apart, is_same
from relaunch.session.taken_up import take_up
from relaunch.trial.signature.match import Verdict, verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from relaunch.session.project import Project
    from relaunch.session.repeating.told import Event, Request, Run

_RECENT = 50
_KEPT_EACH = 3
"""Of each failure, the output of so many runs is kept."""


class Repeating:
    """One repetition. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        resume: searches.Search | None = None,
    ) -> None:
        """Find out what is to be run; UsageError for what cannot be."""
        self.request = request
        self.tell = tell
        recipe = request.recipe
        try:
            find_program(recipe.argv[0], recipe.cwd, {**os.environ, **recipe.env})
        except LaunchError as error:
            raise UsageError(error.message, hint=error.hint) from None
        home = project.home
        searches.sweep(home.journal, KIND, SCRATCH)
        start = {"kind": KIND, "request": request_json(request, home.project)}
        self.book = take_up(project, lambda: start, resume)
        self.runs = self.book.runs(run_of)
        self._before = len(self.runs)
        self._started = 0
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._interrupts = Interrupts()
        self._kept: dict[str, int] = {}
        self._last_number = max((run.number for run in self.runs), default=0)
        repeated = Repeated(
            recipe=recipe, project=home.project, redact=tuple(project.settings.record.redact)
        )
        self._crew = Crew(repeated, self.book, jobs=request.jobs, forks=request.forks)

    # --- running

    def run(self) -> Found:
        """Run all of it; what a person interrupts can go on later."""
        stopped = ""
        todo = [*self._missing()]
        self.tell(Began(number=self.book.number, todo=len(todo), known=self._before))
        with self._interrupts:
            try:
                self._drive(todo)
            except Stopped as stop:
                stopped = str(stop)
            finally:
                self._crew.close()
                self.book.release()
        return self._found(stopped)

    def _missing(self) -> Iterator[str]:
        """Name the mode of each run that is left: in turns, those of a busy machine at the end."""
        counts = dict.fromkeys(self.request.modes, 0)
        for run in self.runs:
            counts[run.mode] = counts.get(run.mode, 0) + 1
        together = [mode for mode in self.request.modes if LOAD not in mode.split("+")]
        alone = [mode for mode in self.request.modes if mode not in together]
        for number in range(self.request.times):
            yield from (mode for mode in together if counts[mode] <= number)
        for mode in alone:
            yield from [mode] * (self.request.times - counts[mode])

    def _drive(self, todo: list[str]) -> None:
        crew, number = self._crew, self._last_number
        total = len(self.runs) + len(todo)
        is_busy = False
        while todo or crew.running:
            if self.request.until_fail and self._failed():
                return
            while todo and crew.free and self.sitting.may_run(self._started):
                will_be_busy = LOAD in todo[0].split("+")
                if will_be_busy != is_busy and crew.running:
                    break  # others would feel it too
                is_busy = will_be_busy
                number += 1
                crew.start(number, todo.pop(0))
                self._started += 1
            self.tell(self._state(total))
            if not crew.running:
                self.sitting.check_runs(self._started)
            for run in sorted(
                crew.wait(self.sitting.left_s, self._interrupts), key=lambda one: one.number
            ):
                self._take(run, total)
            if todo or crew.running:
                self._check()

    def _check(self) -> None:
        if self._interrupts.came:
            raise Stopped(searches.INTERRUPTED)
        self.sitting.check_time()

    def _take(self, run: Run, total: int) -> None:
        if run.outcome.not_started and all(one.outcome.not_started for one in self.runs):
            why = f"the first run did not start: {run.outcome.not_started}"
            self.book.finish({"refused": why, "runs": len(self.runs)})
            raise PlaceError(why, hint="rl doctor")
        if self._crew.note:
            self.tell(Noticed(text=self._crew.note))
            self._crew.note = ""
        key = run.outcome.signature.digest if run.outcome.signature is not None else ""
        self._kept[key] = self._kept.get(key, 0) + 1
        if self._kept[key] > (_KEPT_EACH if key else 1):
            run = self._crew.forget(run)
        self.runs.append(run)
        self.book.note(run_json(run))
        if self._fails(run):
            self.tell(Ended(run=run, done=len(self.runs), total=total))

    def _state(self, total: int) -> State:
        recent = [run.seconds for run in self.runs[-_RECENT:]]
        mean = sum(recent) / max(1, len(recent))
        return State(
            done=len(self.runs),
            total=total,
            failed=self._failed(),
            running=len(self._crew.running),
            seconds_left=mean * (total - len(self.runs)) / self.request.jobs,
        )

    def _failed(self) -> int:
        return sum(map(self._fails, self.runs))

    def _fails(self, run: Run) -> bool:
        """Tell whether it failed, and as it is hunted where that is said."""
        if verdict(run.outcome, None) is not Verdict.SAME:
            return False
        found = run.outcome.signature
        return not self.request.recipe.match or (found is not None and found.kind == "pinned")

    # --- telling

    def _found(self, stopped: str) -> Found:
        untestable: dict[str, int] = {}
        for run in self.runs:
            if verdict(run.outcome, None) is Verdict.UNTESTABLE:
                unknown = run.outcome.unknown.get("match", "")
                why = run.outcome.not_started or unknown or f"exit {run.outcome.exit_code}"
                untestable[why] = untestable.get(why, 0) + 1
        return Found(
            runs=tuple(self.runs),
            before=self._before,
            rates=tuple(self._rates()),
            failures=tuple(_counted(self.runs)),
            untestable=untestable,
            left=sum(1 for _ in self._missing()),
            stopped=stopped,
            seconds=self.sitting.spent_s,
            forked=sum(run.forked for run in self.runs),
        )

    def _rates(self) -> Iterator[Rate]:
        counts = {}
        for mode in self.request.modes:
            counted = [
                run
                for run in self.runs
                if run.mode == mode and verdict(run.outcome, None) is not Verdict.UNTESTABLE
            ]
            counts[mode] = sum(map(self._fails, counted)), len(counted)
        plain = counts.get(PLAIN)
        for mode, (fails, runs) in counts.items():
            chance = None
            if plain is not None and mode != PLAIN and runs and plain[1]:
                chance = fisher(fails, runs - fails, plain[0], plain[1] - plain[0])
            yield Rate(mode=mode, bounds=bounds(fails, runs), chance=chance)


def _counted(runs: Sequence[Run]) -> list[Counted]:
    """Count each failure, the most frequent first."""
    failing = [run for run in runs if verdict(run.outcome, None) is Verdict.SAME]
    found = []
    for one in apart([run.outcome.signature for run in failing if run.outcome.signature]):
        same = [
            run
            for run in failing
            if run.outcome.signature is not None and is_same(run.outcome.signature, one)
        ]
        kept = next((run for run in same if run.folder), same[0])
        found.append(Counted(title=one.title, digest=one.digest, count=len(same), first=kept))
    return found
