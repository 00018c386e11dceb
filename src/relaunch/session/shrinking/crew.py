"""Runs attempts, several at once: forked from a program that is held, or each in its own process.

Each seat has a place and, where that can be, a program held in it. What is asked of a seat ends
with an outcome; who asks decides what it means.
"""

from __future__ import annotations

import os
import resource
import select
import sys
import time

from relaunch.errors import RelaunchError
from relaunch.inside.protocol import IMPORTED, hooked_env
from relaunch.jsontext import dumps, loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.proc.supervise import Ended
from relaunch.proc.tree import MARKER, end_marked
from relaunch.record import Record
from relaunch.session import facts
from relaunch.session.around import beside_a_run
from relaunch.session.bisect.forks import moved
from relaunch.session.past import outcome_json, outcome_of
from relaunch.session.shrinking.told import ARGS, STEPS
from relaunch.trial.engine import World, judge
from relaunch.trial.launch.forks import Noted, read_noted
from relaunch.trial.launch.held import Gone, Held, Spec
from relaunch.trial.redact import forms
from relaunch.trial.watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from _typeshed import HasFileno

    from relaunch.search.shrink.model import Model
    from relaunch.session.shrinking.places import Place
    from relaunch.trial.launch.held import End

    Parts = Mapping[str, Model]

FRESH = "fresh"
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
        env = hooked_env(self._env(parts), self.place.reports)
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
        _empty(place.reports)

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
                companions=beside_a_run(recipe, place.folder, roots[0], marker),
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
        elif self.held is not None and self.held.is_busy:
            self._is_cancelled = True
            self.held.kill()

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
            self.held.kill()

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
        try:
            return judge(self._recipe, world, watch, ended)
        finally:
            _empty(self.place.reports)

    def end(self) -> list[str]:
        """End what runs; returns the markers of what may be left of it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
        return [*([worker.marker] if worker is not None else []), *self.let_go()]


class Crew:
    """All seats."""

    def __init__(self, places: Sequence[Place], redact: Sequence[str], root: str) -> None:
        """Have a seat for each place, the first one aside; `root` has the person's own code."""
        recipe = places[0].recipe
        for place in places[1:]:
            place.copies = places[0].copies
        secrets = forms(facts.secret_values({**os.environ, **recipe.env}, redact))
        self.aside, *self.seats = [Seat(place, secrets, (root,)) for place in places]
        """What is never held: runs that must be in processes of their own."""
        self.way = FRESH
        self.why_not = ""
        """Why it is not held in a better way."""
        self._noted: Noted | None = None
        self._top = places[0].roots[0] if places[0].roots else ""
        self._ways: list[str] = []
        self._parts: Parts = {}

    def limit(self, limit: Limit) -> None:
        """Let each attempt take so much; what should fail may take longer on a busy machine."""
        for seat in self.seats:
            seat.limit = limit
        self.aside.limit = limit.longer

    def hold(self, noted: Noted, ways: Sequence[str], parts: Parts) -> None:
        """Have the program held in each seat, in the first of these ways that can be."""
        self._noted, self._parts = noted, parts
        self._ways = list(ways)
        self._next_way("")

    def _next_way(self, why: str) -> None:
        """Leave a way that cannot be; the last one is a process for each attempt."""
        self.why_not = why or self.why_not
        self.way = self._ways.pop(0) if self._ways else FRESH
        if any(markers := [marker for seat in self.seats for marker in seat.let_go()]):
            end_marked(*markers)
        if self.way == FRESH or self._noted is None:
            for seat in self.seats:
                seat.place.may_fork = False
            return
        try:
            for seat in self.seats:
                if seat.job is None:
                    seat.hold(self.way, self._noted, self._top, self._parts)
        except (OSError, RelaunchError) as error:
            self._next_way(str(error))

    def next_way(self, why: str) -> None:
        """Leave this way: it shows something else than a process of its own."""
        self._next_way(why)

    def hold_no_more(self, why: str) -> None:
        """Have each attempt in a process of its own from now on."""
        self._ways = []
        self._next_way(why)

    @property
    def is_ready(self) -> bool:
        """Tell whether all that is to be held is held."""
        return all(seat.held is None or seat.held.is_ready for seat in self.seats)

    @property
    def free(self) -> int:
        """How many more could run now."""
        return sum(seat.is_free for seat in self.seats)

    def start(self, job: Job) -> list[Job]:
        """Run it; returns jobs that have to be started again, as what was held is gone."""
        seat = next(seat for seat in self.seats if seat.is_free)
        try:
            seat.start(job)
        except Gone as gone:
            seat.job = None
            return [job, *self._lost(seat, str(gone))]
        return []

    def start_aside(self, job: Job) -> None:
        """Run it in a process of its own, beside all others."""
        self.aside.start(job)

    def start_anywhere(self, job: Job) -> bool:
        """Run it in a process of its own, aside or in a free seat; False if there is no place."""
        places = (self.aside, *(seat for seat in self.seats if seat.is_free))
        seat = next((one for one in places if one.job is None), None)
        if seat is None:
            return False
        usual, seat.limit = seat.limit, self.aside.limit
        seat.start(job)
        seat.limit = usual
        return True

    def wait(self, seconds: float | None, *also: HasFileno) -> tuple[list[Ran], list[Job]]:
        """Wait until something ends, or so long; returns what ran, and what must run again."""
        left = [seat.left_s for seat in self.seats if seat.left_s is not None]
        least = min([*left, *([seconds] if seconds is not None else [])], default=None)
        files = {fd: seat for seat in (self.aside, *self.seats) for fd in seat.files()}
        poll = select.poll()
        for fd in files:
            poll.register(fd, select.POLLIN)
        for other in also:
            poll.register(other.fileno(), select.POLLIN)
        ready = poll.poll(None if least is None else least * 1000 + 0.5)
        ran: list[Ran] = []
        again: list[Job] = []
        came = {fd for fd, _ in ready if fd in files}
        for seat in dict.fromkeys(files[fd] for fd in came):
            try:
                one = seat.take(came)
            except Gone as gone:
                again += self._lost(seat, str(gone))
                break  # the others are let go as well
            if one is not None:
                ran.append(one)
        for seat in self.seats:
            seat.check_time()
        return ran, again

    def _lost(self, seat: Seat, why: str) -> list[Job]:
        """Take the next way; returns what was running in forks."""
        jobs = []
        for one in self.seats:
            if one.held is not None and one.held.is_busy and one.job is not None:
                jobs.append(one.job)
                one.job = None
            elif one is seat and one._worker is None:
                one.job = None
        self._next_way(why)
        return jobs

    def cancel(self, jobs: Sequence[Job]) -> None:
        """End these."""
        for seat in (self.aside, *self.seats):
            if any(seat.job is job for job in jobs):
                seat.cancel()

    @property
    def running(self) -> list[Job]:
        """What runs now."""
        return [seat.job for seat in (self.aside, *self.seats) if seat.job is not None]

    def close(self) -> None:
        """End all, and leave nothing behind."""
        seats = (self.aside, *self.seats)
        end_marked(*(marker for seat in seats for marker in seat.end()))
        for seat in seats:
            seat.place.close()


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
