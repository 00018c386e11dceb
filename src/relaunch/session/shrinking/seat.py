"""One seat of a crew: a place, the program that is held there, and the one thing that runs."""

from __future__ import annotations

import os
import resource
import sys
import time

from relaunch.inside.protocol import IMPORTED, hooked_env
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.proc.supervise import Ended
from relaunch.proc.tree import MARKER
from relaunch.record import Record
from relaunch.session.around import beside_a_run
from relaunch.session.bisect.forks import moved
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.shrinking.told import ARGS, STEPS
from relaunch.trial.engine import World, judge
from relaunch.trial.launch.forks import Noted, read_noted
from relaunch.trial.launch.held import Gone, Held, Spec
from relaunch.trial.place.syspath import asking_pytest
from relaunch.trial.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

    from relaunch.search.shrink.model import Model
    from relaunch.session.shrinking.places import Place
    from relaunch.trial.launch.held import End

    Parts = Mapping[str, Model]

_LONGER = 4
_UNIT = 1 if sys.platform == "darwin" else 1024


class Job(Record):
    """What is to be run."""

    parts: Parts
    fresh: bool = False
    """In a process of its own."""
    guard: str = ""
    """This line instead of the command."""
    bare: bool = False
    """Without our hook: as a person runs it, with not a variable more than that needs."""
    noting: bool = False
    """It is to say what it imports."""


class Ran(Record):
    """What came of a job."""

    job: Job
    outcome: Outcome
    forked: bool
    seconds: float
    noted: Noted | None = None
    peak_bytes: int = 0


class Limit(Record):
    """What an attempt may take."""

    timeout_s: float | None = None
    memory_bytes: int = 0
    is_given: bool = False
    """A person said how long."""

    @property
    def longer(self) -> Limit:
        """Return it with more time, unless a person said how long."""
        if self.timeout_s is None or self.is_given:
            return self
        return self.but(timeout_s=_LONGER * self.timeout_s)


class Seat:
    """One place, what is held there, and what runs."""

    def __init__(self, place: Place, secrets: tuple[bytes, ...], roots: tuple[str, ...]) -> None:
        """Nothing runs yet."""
        self.place = place
        self.roots = place.roots or roots
        self.held: Held | None = None
        self.job: Job | None = None
        self.limit = Limit()
        self._recipe = place.recipe
        self._secrets = secrets
        self._worker: workers.Worker | None = None
        self._deadline: float | None = None
        self._is_late = self._is_cancelled = False

    # --- holding

    def hold(self, at: str, noted: Noted, top: str, parts: Parts) -> None:
        """Start the program and have it held; OSError or RelaunchError if it cannot be started."""
        self.place.put(parts)
        recipe = self.place.recipe_for(parts)
        here = self.place.folder if not self.place.roots else self.place.roots[0]
        spec = Spec(
            at=at,
            inputs=tuple(p for p in self.place.paths.values() if not os.path.isdir(p)),
            folders=tuple(p for p in self.place.paths.values() if os.path.isdir(p)),
            noted=moved(noted, top, here) if self.place.roots else noted,
            roots=(here, *self.roots),
            words=self.place.request.changing,
            stdin=self.place.stdin,
            memory_bytes=self.limit.memory_bytes,
        )
        env = asking_pytest(self._env(parts), recipe.argv, recipe.cwd)
        env = hooked_env(env, self.place.reports)
        self.held = Held(recipe.argv, cwd=recipe.cwd, env=env, spec=spec, folder=self.place.folder)

    def let_go(self) -> list[str]:
        """Hold no more; returns the marker of what may be left of it."""
        held, self.held = self.held, None
        return [held.close()] if held is not None else []

    @property
    def is_free(self) -> bool:
        """Tell whether it could run something now."""
        return self.job is None and (self.held is None or self.held.is_ready)

    # --- running

    def start(self, job: Job) -> None:
        """Run it; OSError if its input cannot be written, Gone if what was held is gone."""
        self.place.put(job.parts)
        _empty(self.place.reports)  # a fork that was ended may have written one
        self._is_late = self._is_cancelled = False
        self.job = job
        timeout = self.limit.timeout_s
        self._deadline = None
        if self.held is None or job.fresh or job.guard:
            self._worker = self._fresh(job)
            return
        self._recipe = self.place.recipe_for(job.parts)
        words = None
        if ARGS in job.parts or STEPS in job.parts:
            fixed = len(self.place.recipe.argv) - self.place.request.changing
            words = self._recipe.argv[fixed:]
        self.held.go(words)
        self._deadline = time.monotonic() + timeout if timeout else None

    def _env(self, parts: Parts) -> dict[str, str]:
        return self.place.whole_env(parts)

    def _fresh(self, job: Job) -> workers.Worker:
        place, limit, secrets, roots = self.place, self.limit, self._secrets, self.roots
        recipe = place.guard_for(job.guard) if job.guard else place.recipe_for(job.parts)
        recipe = recipe.but(limits=recipe.limits.but(timeout_s=limit.timeout_s))
        env = self._env(job.parts)

        def work(marker: str) -> bytes:
            if limit.memory_bytes:
                _limit_memory(limit.memory_bytes)
            if place.stdin:
                os.dup2(os.open(place.stdin, os.O_RDONLY), 0)
            told = {**env, MARKER: marker}
            if job.noting:
                told[IMPORTED] = os.pathsep.join(roots)
            world = World(
                env=told,
                reports="" if job.bare else place.reports,
                project=roots,
                secrets=secrets,
                quiet=True,
                companions=beside_a_run(recipe, place.folder, roots[0], marker, secrets),
            )
            began = time.monotonic()
            outcome, forked = place.run(recipe, world, fresh=job.fresh)
            noted = read_noted(place.reports, os.getpid()) if job.noting else None
            return dumps(
                {
                    "outcome": outcome_json(outcome),
                    "forked": forked,
                    "seconds": time.monotonic() - began,
                    "peak": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * _UNIT,
                    "noted": {**vars(noted)} if noted is not None else None,
                }
            ).encode("ascii")

        return workers.Worker(work)

    def cancel(self) -> None:
        """End what runs: nobody wants to know any more."""
        if self._worker is not None:
            self._worker.cancel(asked_s=0.0)
            self._worker = self.job = None
        elif self.is_forking:
            self._is_cancelled = True
            self._kill()

    @property
    def is_forking(self) -> bool:
        """Tell whether something runs in a fork of what is held."""
        return self.held is not None and self.held.is_busy

    def drop(self) -> Job | None:
        """Forget what ran in a fork: what was held is gone. Returns it."""
        if self._worker is not None:
            return None
        job, self.job, self._deadline = self.job, None, None
        return job

    def _kill(self) -> None:
        """End the fork that runs; who is gone is told of when it is listened to."""
        assert self.held is not None
        try:
            self.held.kill()
        except Gone:
            pass

    def files(self) -> list[int]:
        """Return what turns readable when there is something to take."""
        if self._worker is not None:
            return [self._worker.fileno()]
        return self.held.files() if self.held is not None else []

    @property
    def left_s(self) -> float | None:
        """How long it may still run."""
        return None if self._deadline is None else max(0.0, self._deadline - time.monotonic())

    def check_time(self) -> None:
        """End what runs for too long."""
        if self._deadline is not None and self.left_s == 0.0 and self.held is not None:
            self._is_late, self._deadline = True, None
            self._kill()

    def take(self, files: Collection[int]) -> Ran | None:
        """Take what came from these; Gone if what was held is gone: its job must run again."""
        if self._worker is not None:
            if self._worker.fileno() not in files:
                return None
            answer = self._worker.read()
            if answer is None:
                return None
            self._worker = None
            return self._of_fresh(answer)
        if self.held is None:
            return None
        end = self.held.take()
        if end is None:
            return None
        job, self.job, self._deadline = self.job, None, None
        if job is None or self._is_cancelled:
            return None
        outcome = self._judged(end)
        return Ran(job=job, outcome=outcome, forked=True, seconds=end.seconds)

    def _of_fresh(self, answer: bytes) -> Ran:
        job, self.job = self.job, None
        assert job is not None
        noted: Any = None
        try:
            told = loads(answer.decode("ascii"))
            outcome, seconds, peak = outcome_of(told["outcome"]), told["seconds"], told["peak"]
            noted, forked = told["noted"], told["forked"]
        except (ValueError, KeyError, TypeError):
            outcome, seconds, peak = Outcome(exit_code=125, not_started="the worker died"), 0.0, 0
            forked = False
        if noted is not None:
            noted = Noted(
                argv=tuple(noted["argv"]),
                path=tuple(noted["path"]),
                modules=tuple((name, kind, file) for name, kind, file in noted["modules"]),
            )
        return Ran(
            job=job, outcome=outcome, forked=forked, seconds=seconds, noted=noted, peak_bytes=peak
        )

    def _judged(self, end: End) -> Outcome:
        status = end.status
        signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        watch = Watch(record=lambda *_: None, started=0.0)
        if end.output:
            watch.chunk(end.seconds, 1, end.output)
        ended = Ended(
            exit_code=None if signal else os.WEXITSTATUS(status),
            signal=None if self._is_late else signal,
            timed_out=self._is_late,
            duration_s=end.seconds,
        )
        world = World(env={}, reports=self.place.reports, project=self.roots, secrets=self._secrets)
        return judge(self._recipe, world, watch, ended)

    def end(self) -> list[str]:
        """End what runs; returns the markers of what may be left of it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
        return [*([worker.marker] if worker is not None else []), *self.let_go()]


def _empty(folder: str) -> None:
    for name in os.listdir(folder):
        try:
            os.unlink(os.path.join(folder, name))
        except OSError:
            pass


def _limit_memory(size: int) -> None:
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard == resource.RLIM_INFINITY or hard > size:
        resource.setrlimit(resource.RLIMIT_DATA, (size, hard))
