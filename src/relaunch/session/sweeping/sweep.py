"""A whole sweep: every combination a trial, several at once, and what explains the failures."""

from __future__ import annotations

import os

from relaunch.errors import LaunchError, PlaceError, UsageError
from relaunch.events import Warned
from relaunch.journal import searches
from relaunch.proc.interrupts import Interrupts
from relaunch.proc.launch import find_program
from relaunch.search.factors import explain
from relaunch.session.gate import pass_unsaved
from relaunch.session.plan import plan
from relaunch.session.repair import repair
from relaunch.session.request import Request as Launch
from relaunch.session.sitting import Sitting, Stopped
from relaunch.session.sweeping.cases import (
    cases_of,
    check,
    key_of,
    names_in,
    recipe_for,
    secrets_among,
)
from relaunch.session.sweeping.crew import Crew
from relaunch.session.sweeping.judge import judge
from relaunch.session.sweeping.remembered import KIND, request_json, run_json, run_of
from relaunch.session.sweeping.same_code import edited
from relaunch.session.sweeping.told import Began, Ended, Found, Kind, Noticed, State
from relaunch.session.taken_up import take_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    from relaunch.events import Event as Happened
    from relaunch.recipe import Recipe
    from relaunch.session.consent import Wanted
    from relaunch.session.project import Project
    from relaunch.session.sweeping.told import Event, Request, Run, Settings
    from relaunch.trial.place.unsaved import Unsaved

_MOST_ROUNDS = 10
"""So often combinations are added that decide between explanations."""
_RECENT = 50
"""From so many runs it is guessed how long the next ones take."""


class Sweep:
    """One sweep. Used once: `run()`."""

    def __init__(
        self,
        project: Project,
        request: Request,
        *,
        tell: Callable[[Event], object],
        ask: Callable[[Sequence[Unsaved]], str] | None = None,
        consent: Callable[[Wanted], bool] | None = None,
        resume: searches.Search | None = None,
    ) -> None:
        """Find out what is to be run; raises UsageError for what cannot be."""
        self.project = project
        self.request = request
        self.tell = tell
        self.ask = ask
        self._consent = consent
        self._said: set[str] = set()
        check(request.argv, request.factors)
        self.cases = cases_of(request)
        self.base, self.jobs, self._notes = self._how()
        self._check_program()
        self.book = take_up(project, self._start, resume, self._secrets())
        self.runs: list[Run] = self.book.runs(run_of)
        self.sitting = Sitting(most_runs=request.most_runs, most_s=request.most_s)
        self._total = self._started = 0
        self._before = len(self.runs)
        self._failed = sum(not run.outcome.passed for run in self.runs)

    def _start(self) -> dict[str, Any]:
        return {"kind": KIND, "request": request_json(self.request, self.project.home.project)}

    def _secrets(self) -> dict[str, str]:
        """Return the settings that are secrets, each with what is kept in its place."""
        redact = self.project.settings.record.redact
        return secrets_among(self.request.factors, self.base.argv, redact)

    # --- what is to be run

    def _how(self) -> tuple[Recipe, int, tuple[str, ...]]:
        """Return the recipe without any settings, how many run at once, and what to say of it.

        Sets move links of the tree, and resets may change any file: such runs are kept apart.
        """
        request = self.request
        launch = Launch(
            argv=request.argv,
            timeout_s=request.timeout_s,
            limits={"hang_s": request.hang_s} if request.hang_s else None,
            match=request.match or None,
        )
        project = self.project.but(cwd=request.cwd)
        (base,) = plan(project, launch, tell=self._hear, ask=self._consent)
        base = base.but(elsewhere=request.elsewhere)
        sets = {name for one in request.factors if one.kind is Kind.SET for name in one.values}
        if request.jobs == 1 or base.frozen or not (len(sets) > 1 or base.resets):
            return base, request.jobs, ()
        if self.project.home.too_wide:
            return base, 1, ("one at a time: they would change each other's files",)
        return base.but(frozen=True), request.jobs, ("each run has a copy of the code of its own",)

    def _check_program(self) -> None:
        """Refuse a command that cannot be found, before a thousand trials say so."""
        first = self.base.argv[0]
        if names_in(first) or any(one.name == "PATH" for one in self.request.factors):
            return
        env = {**os.environ, **self.base.env}
        try:
            find_program(first, self.base.cwd, env)
        except LaunchError as error:
            raise UsageError(error.message, hint=error.hint) from None

    def _missing(self) -> list[Settings]:
        """Return what was not run yet, each combination once before any comes again."""
        counts: dict[frozenset[tuple[str, str]], int] = {}
        for run in self.runs:
            counts[key_of(run.settings)] = counts.get(key_of(run.settings), 0) + 1
        return [
            case
            for number in range(self.request.times)
            for case in self.cases
            if counts.get(key_of(case), 0) <= number
        ]

    # --- running

    def run(self) -> Found:
        """Run all of it; what a person interrupts can go on later."""
        stopped = ""
        try:
            repair(self.project, tell=self._hear)
            crew = Crew(self.project, jobs=self.jobs, unsaved=self._pass_unsaved())
            with Interrupts() as interrupts:
                try:
                    self._run_all(crew, interrupts)
                except Stopped as stop:
                    stopped = str(stop)
                finally:
                    crew.close()
            return self._found(stopped)
        finally:
            self.book.release()

    def _pass_unsaved(self) -> tuple[str, ...]:
        return pass_unsaved(self.project, "", ask=self.ask, tell=self._hear)

    def _hear(self, event: Happened) -> None:
        if isinstance(event, Warned):
            self._notice(event.text)

    def _run_all(self, crew: Crew, interrupts: Interrupts) -> None:
        missing = self._missing()
        notes = self._notes if missing else ()
        done = len(self.runs)
        self.tell(Began(number=self.book.number, todo=len(missing), done=done, notes=notes))
        self._drive(crew, missing, interrupts)
        for _ in range(_MOST_ROUNDS if self.request.tell_apart else 0):
            self._drive(crew, self._telling(), interrupts)

    def _telling(self) -> list[Settings]:
        """Return what was not run, and would tell equally good explanations apart."""
        found = self._found("")
        findings = [found.explanation.failure, *(one for _, one in found.explanation.others)]
        cases = [case for one in findings if one is not None for case in one.tell_apart]
        return [*{key_of(case): case for case in cases}.values()]

    def _drive(self, crew: Crew, todo: list[Settings], interrupts: Interrupts) -> None:
        left = [*todo]
        self._total = len(self.runs) + len(left)
        while left or crew.running:
            while left and crew.free and self.sitting.may_run(self._started):
                settings = left.pop(0)
                crew.start(settings, self._recipe(settings), self._note(settings))
                self._started += 1
            self.tell(self._state(crew))
            if not crew.running:
                self.sitting.check_runs(self._started)
            for told in crew.wait(self.sitting.left_s, interrupts):
                for text in told.warnings:
                    self._notice(text)
                self._take(told.run)
            if left or crew.running:
                self._check_on(interrupts)

    def _check_on(self, interrupts: Interrupts) -> None:
        if interrupts.came:
            raise Stopped(searches.INTERRUPTED)
        self.sitting.check_time()

    def _recipe(self, settings: Settings) -> Recipe:
        return recipe_for(self.base, self.request.factors, settings)

    def _note(self, settings: Settings) -> str:
        return f"{self.book.id}: {words(settings, self.request.named)}"

    def _take(self, run: Run) -> None:
        if run.outcome.not_started and all(one.outcome.not_started for one in self.runs):
            hint = f"rl show {run.trial_id}" if run.trial_id else "rl doctor"
            why = f"the first run did not start: {run.outcome.not_started}"
            self.book.finish({"refused": why, "runs": len(self.runs)})
            raise PlaceError(why, hint=hint)
        self.book.note(run_json(run))
        self.runs.append(run)
        self._failed += not run.outcome.passed
        self.tell(Ended(run=run, done=len(self.runs), total=self._total))

    def _notice(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self.tell(Noticed(text=text))

    def _state(self, crew: Crew) -> State:
        recent = [run.seconds for run in self.runs[-_RECENT:]]
        mean = sum(recent) / max(1, len(recent))
        return State(
            done=len(self.runs),
            total=self._total,
            failed=self._failed,
            running=crew.running,
            seconds_left=mean * (self._total - len(self.runs)) / self.jobs,
        )

    # --- telling

    def _found(self, stopped: str) -> Found:
        judged = judge(self.runs, match=self.request.match)
        note = edited(self.project, self.runs)
        return Found(
            runs=tuple(self.runs),
            before=self._before,
            explanation=explain(judged.cases),
            hunted=judged.hunted,
            titles=judged.titles,
            examples=judged.examples,
            untestable=judged.untestable,
            left=len(self._missing()),
            stopped=stopped,
            seconds=self.sitting.spent_s,
            notes=(note,) if note else (),
        )


def words(settings: Settings, names: Iterable[str]) -> str:
    """Say a combination in short: `dtype=bf16 compile=1`."""
    return " ".join(f"{name}={settings[name]}" for name in names)
