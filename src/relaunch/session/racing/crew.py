"""Schedules, several at once: each seat holds the program at its start, and forks it for each."""

from __future__ import annotations

import marshal
import os
import select
import shutil
import time

from relaunch.errors import RelaunchError
from relaunch.inside.protocol import hooked_env
from relaunch.outcome import Outcome
from relaunch.proc.supervise import Ended
from relaunch.proc.tree import end_marked
from relaunch.session import facts
from relaunch.session.racing import stuck
from relaunch.session.racing.told import Run
from relaunch.trial.engine import World, judge, run_trial
from relaunch.trial.launch.held import OPEN, START, Gone, Held, Spec
from relaunch.trial.launch.held_there import HeldThere
from relaunch.trial.place.syspath import asking_pytest
from relaunch.trial.redact import forms, redact, redact_all
from relaunch.trial.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from _typeshed import HasFileno

    from relaunch.recipe import Recipe
    from relaunch.trial.launch.forks import Noted
    from relaunch.trial.launch.held import End

STUCK = 99
LONG = "long"
_TOLD = "told"
_START_S = 120.0
_NOT_PYTHON = "what it starts is not Python itself"


class Seat:
    """One program that is held, and the schedule that runs."""

    def __init__(
        self, recipe: Recipe, folder: str, *, roots: tuple[str, ...], redact: Sequence[str]
    ) -> None:
        """Nothing is held yet."""
        self._recipe = recipe
        self._folder = folder
        self._roots = roots
        self._reports = os.path.join(folder, "reports")
        os.makedirs(self._reports, mode=0o700)
        env = {**os.environ, "PYTHONHASHSEED": "0", **recipe.env}
        self._env = asking_pytest(env, recipe.argv, recipe.cwd)
        self._secrets = forms(facts.secret_values(self._env, redact))
        self._held: Held | HeldThere | None = None
        self.job: tuple[int, Mapping[str, Any]] | None = None
        self._deadline: float | None = None
        self._is_late = False

    def hold(self, noted: Noted | None, tests: Sequence[str]) -> None:
        """Start the program; OSError or RelaunchError if it cannot be started.

        With `tests`, it is held where it first looks at these.
        """
        spec = Spec(
            at=OPEN if tests else START,
            inputs=tuple(one for one in tests if not os.path.isdir(one)),
            folders=tuple(one for one in tests if os.path.isdir(one)),
            noted=noted,
            roots=self._roots,
            is_race=True,
        )
        recipe = self._recipe
        if recipe.elsewhere is not None:
            self._held = HeldThere(
                recipe,
                run=_run,
                env=self._env,
                spec=spec,
                folder=self._folder,
                reports=self._reports,
            )
            return
        env = hooked_env(self._env, self._reports)
        self._held = Held(recipe.argv, cwd=recipe.cwd, env=env, spec=spec, folder=self._folder)

    @property
    def is_free(self) -> bool:
        """Tell whether it could run something now."""
        return self.job is None and self._held is not None and self._held.is_ready

    @property
    def left_s(self) -> float | None:
        """How long its schedule may still take."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def start(self, number: int, order: Mapping[str, Any]) -> None:
        """Run a schedule; Gone if what was held is gone."""
        assert self._held is not None
        self._is_late = False
        self.job = number, order
        timeout = self._recipe.limits.timeout_s
        self._deadline = time.monotonic() + timeout if timeout is not None else None
        self._held.go(order={**order, "told": os.path.join(self._folder, _TOLD)})

    def files(self) -> list[int]:
        """Return what turns readable when there is something to take."""
        return self._held.files() if self._held is not None else []

    def check_time(self) -> None:
        """End what runs for too long."""
        if self.left_s == 0.0 and self._held is not None:
            self._is_late, self._deadline = True, None
            self._held.kill()

    def take(self) -> tuple[int, Run] | None:
        """Take what came; Gone if what was held is gone."""
        end = self._held.take() if self._held is not None else None
        if end is None or self.job is None:
            return None
        (number, order), self.job, self._deadline = self.job, None, None
        told = self._told()
        run = Run(
            seed=order.get("seed", 0),
            outcome=self._judged(end, told),
            seconds=end.seconds,
            told=told,
            output=redact(end.output, self._secrets),
        )
        return number, run

    def _told(self) -> Mapping[str, Any]:
        path = os.path.join(self._folder, _TOLD)
        try:
            with open(path, "rb") as file:
                told = marshal.loads(file.read())
            os.unlink(path)
        except (OSError, ValueError, EOFError, TypeError):
            return {}
        if not isinstance(told, dict):
            return {}
        if self._secrets:
            told["lines"] = redact_all(told.get("lines", []), self._secrets)
        return told

    def _judged(self, end: End, told: Mapping[str, Any]) -> Outcome:
        status = end.status
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        if told.get("stuck") == stuck.DEADLOCK:
            found = stuck.signature(stuck.read(told["waits"]))
            return Outcome(exit_code=STUCK, duration_s=end.seconds, signature=found)
        is_late = self._is_late or told.get("stuck") == LONG
        watch = Watch(record=lambda *_: None, started=0.0)
        if end.output:
            watch.chunk(end.seconds, 1, end.output)
        ended = Ended(
            exit_code=None if signal else os.WEXITSTATUS(status),
            signal=None if is_late else signal,
            timed_out=is_late,
            duration_s=end.seconds,
        )
        world = World(env={}, reports=self._reports, project=self._roots, secrets=self._secrets)
        try:
            return judge(self._recipe, world, watch, ended)
        finally:
            for name in os.listdir(self._reports):
                os.unlink(os.path.join(self._reports, name))

    def close(self) -> list[str]:
        """Hold no more; returns the marker of what may be left of it."""
        held, self._held = self._held, None
        return [held.close()] if held is not None else []


class Crew:
    """All seats: of this machine, or each on one of those that are held."""

    def __init__(
        self,
        recipe: Recipe,
        folder: str,
        *,
        jobs: int,
        roots: tuple[str, ...],
        redact: Sequence[str],
    ) -> None:
        """Have so many."""
        self._folder = folder
        self._cwd = recipe.cwd
        shutil.rmtree(folder, ignore_errors=True)
        self.seats = [
            Seat(recipe, os.path.join(folder, str(number)), roots=roots, redact=redact)
            for number in range(jobs)
        ]

    def hold(self, noted: Noted | None, check: Callable[[], object], *also: HasFileno) -> str:
        """Have the program held in each seat; returns why it cannot be, or nothing.

        As late as can be: pytest where it looks at the tests, others with their libraries imported.
        `check` may raise, whenever `also` has something.
        """
        ways: list[tuple[Noted | None, Sequence[str]]] = [(None, ())]
        if noted is not None:
            tests = tests_of(noted, self._cwd)
            ways = [*([(None, tests)] if tests else []), (noted, ()), *ways]
        why = ""
        for way in ways:
            why = self._hold(*way, check, *also)
            if not why:
                break
        return why

    def _hold(
        self,
        noted: Noted | None,
        tests: Sequence[str],
        check: Callable[[], object],
        *also: HasFileno,
    ) -> str:
        until = time.monotonic() + _START_S
        try:
            for seat in self.seats:
                seat.hold(noted, tests)
            while not all(seat.is_free for seat in self.seats):
                self.wait(max(0.0, until - time.monotonic()), *also)
                check()
                if time.monotonic() > until:
                    raise Gone(_NOT_PYTHON)
        except (Gone, RelaunchError, OSError) as error:
            self._close_all()
            return _NOT_PYTHON if "does not open it" in str(error) else str(error)
        return ""

    @property
    def free(self) -> int:
        """How many more could run now."""
        return sum(seat.is_free for seat in self.seats)

    @property
    def running(self) -> list[int]:
        """What runs now."""
        return [seat.job[0] for seat in self.seats if seat.job is not None]

    def start(self, number: int, order: Mapping[str, Any]) -> None:
        """Run a schedule; it is known by this number."""
        next(seat for seat in self.seats if seat.is_free).start(number, order)

    def wait(self, seconds: float | None, *also: HasFileno) -> list[tuple[int, Run]]:
        """Wait until some have ended, or so long, or `also` has something; returns them."""
        left = [seat.left_s for seat in self.seats if seat.left_s is not None]
        least = min([*left, *([seconds] if seconds is not None else [])], default=None)
        files = {fd: seat for seat in self.seats for fd in seat.files()}
        poll = select.poll()
        for fd in (*files, *(other.fileno() for other in also)):
            poll.register(fd, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(None if least is None else least * 1000 + 0.5)]
        found = []
        for seat in dict.fromkeys(files[fd] for fd in ready if fd in files):
            one = seat.take()
            if one is not None:
                found.append(one)
        for seat in self.seats:
            seat.check_time()
        return found

    def close(self) -> None:
        """End all, and leave nothing behind."""
        self._close_all()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_all(self) -> None:
        markers = [marker for seat in self.seats for marker in seat.close()]
        if markers:
            end_marked(*markers)


def _run(
    recipe: Recipe, env: Mapping[str, str], record: Callable[[float, int, bytes], object]
) -> Outcome:
    """Run who holds the program elsewhere, as any trial runs there."""
    return run_trial(recipe, World(env=env, quiet=True), record=record).outcome


def tests_of(noted: Noted, cwd: str) -> tuple[str, ...]:
    """Return the files and folders of tests that a command of pytest names."""
    if not any(name == "_pytest" for name, _, _ in noted.modules):
        return ()
    words = [os.path.join(cwd, word.partition("::")[0]) for word in noted.argv[2:]]
    return tuple(dict.fromkeys(word for word in words if os.path.exists(word)))
