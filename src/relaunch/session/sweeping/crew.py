"""The runs of a sweep, several at once: each is a trial of the journal, in a worker of its own."""

from __future__ import annotations

import time

from relaunch.errors import RelaunchError
from relaunch.events import Warned
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.proc.tree import send
from relaunch.record import Record
from relaunch.session.attempt import Attempt
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.repair import repair
from relaunch.session.sweeping.told import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Sequence

    from _typeshed import HasFileno

    from relaunch.events import Event
    from relaunch.recipe import Recipe
    from relaunch.session.project import Project
    from relaunch.session.sweeping.told import Settings
else:
    import _signal

_ASKED_S = 2.0
"""What a run has to end by itself after an interrupt."""


class Told(Record):
    """What a worker has to say: its run, and what a person should know."""

    run: Run
    warnings: tuple[str, ...] = ()


class Crew:
    """Workers here."""

    def __init__(self, project: Project, *, jobs: int, unsaved: tuple[str, ...] = ()) -> None:
        """Run up to `jobs` at once."""
        self._project = project
        self._jobs = jobs
        self._unsaved = unsaved
        self._busy: list[tuple[Settings, workers.Worker]] = []

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._jobs - len(self._busy)

    @property
    def running(self) -> tuple[Settings, ...]:
        """The combinations that run now."""
        return tuple(settings for settings, _ in self._busy)

    def start(self, settings: Settings, recipe: Recipe, note: str) -> None:
        """Run one combination."""
        worker = workers.Worker(lambda _: _attempt(self._project, recipe, note, self._unsaved))
        self._busy.append((settings, worker))

    def wait(self, seconds: float | None, *also: HasFileno) -> list[Told]:
        """Wait until some have ended, or so long, or `also` has something; returns them."""
        ready = workers.wait([worker for _, worker in self._busy], seconds, *also)
        found = []
        for settings, worker in [*self._busy]:
            answer = worker.read() if worker in ready else None
            if answer is not None:
                self._busy.remove((settings, worker))
                found.append(_told(settings, answer, time.monotonic() - worker.began))
        return found

    def close(self) -> None:
        """End all that runs: its trials count as interrupted, and the user's links go back."""
        if not self._busy:
            return
        for _, worker in self._busy:
            send(-worker.pid, _signal.SIGINT)  # the group, as Ctrl-C would
        until = time.monotonic() + _ASKED_S
        while self._busy and time.monotonic() < until:
            self.wait(max(0.0, until - time.monotonic()))
        for _, worker in self._busy:
            worker.cancel()
        self._busy.clear()
        repair(self._project, tell=lambda _: None)


def _attempt(project: Project, recipe: Recipe, note: str, unsaved: Sequence[str]) -> bytes:
    """Make it a trial; runs in the worker. Returns JSON."""
    warnings: list[str] = []

    def tell(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.text)

    attempt = Attempt(project, recipe, tell=tell, note=note, quiet=True, unsaved=tuple(unsaved))
    try:
        outcome = attempt.run()
    except RelaunchError as error:
        outcome = Outcome(exit_code=125, not_started=error.message)
    answer = {
        "trial": attempt.trial.id if attempt.trial else "",
        "outcome": outcome_json(outcome),
        "code": attempt.code.digest if attempt.code else "",
        "warnings": warnings,
    }
    return dumps(answer).encode("ascii")


def _told(settings: Settings, answer: bytes, seconds: float) -> Told:
    try:
        said = loads(answer.decode("ascii"))
        run = Run(
            settings=settings,
            trial_id=said["trial"],
            outcome=outcome_of(said["outcome"]),
            seconds=seconds,
            code=said["code"],
        )
        return Told(run=run, warnings=tuple(said["warnings"]))
    except (ValueError, KeyError, TypeError):
        died = Outcome(exit_code=125, not_started="the worker died")
        return Told(run=Run(settings=settings, trial_id="", outcome=died, seconds=seconds))
