"""The launcher of a search: probes in worker processes of this machine, each in a place of its own.

The search only knows `start`, `wait`, `cancel` and `close`: another launcher may run elsewhere.
"""

from __future__ import annotations

import os
import time

from relaunch.jsontext import loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.record import Record
from relaunch.session.bisect.forks import way_of
from relaunch.session.past import outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    from _typeshed import HasFileno

    from relaunch.session.bisect.forks import Forks

    class Launcher(Protocol):
        """Runs probes, several at once."""

        @property
        def free(self) -> int: ...  # how many more could run now
        @property
        def running(self) -> Sequence[str]: ...  # candidates, in the order they were started
        def start(self, candidate: str) -> None: ...
        def wait(self, seconds: float | None, also: Sequence[HasFileno] = ()) -> list[Probe]: ...
        def cancel(self, candidate: str) -> None: ...
        def start_forked(self, candidate: str) -> None: ...  # in a fork, where there can be one
        def stop_forking(self) -> None: ...
        def close(self) -> None: ...


class Probe(Record):
    """One probe that ended by itself."""

    candidate: str
    outcome: Outcome
    seconds: float
    folder: str
    missing: tuple[str, ...] = ()
    """Submodules and large files that could not be put there: the user has not got them."""
    runs: int = 1
    """How often the command was run for it."""
    rung: str = ""
    """Which environment it needed."""
    python: str = ""
    """The Python of that environment."""
    needs: str = ""
    """Its requirements, by their digest."""
    build_s: float = 0.0
    """What building took; 0 if nothing had to be built."""
    notes: tuple[str, ...] = ()
    """What a person should know of it."""
    helped: bool = True
    """False when that environment brought nothing."""
    extra: tuple[str, ...] = ()
    """Packages in it that the requirements do not name."""
    outgrown: bool = False
    """Another Python might run it, and none was to be tried yet."""
    is_forked: bool = False
    """It began with its imports done."""
    is_doubtful: bool = False
    """Nobody knows how it ended."""
    is_traced: bool = False
    """Which of its lines ran was noted."""
    not_forked: str = ""
    """Why it was a fresh process after all."""


class Crew:
    """Workers here."""

    def __init__(
        self,
        probe: Callable[..., bytes],
        *,
        place: Callable[[], Any],
        learnt: Callable[[Probe], object],
        doing: Callable[[str, str], object],
        jobs: int,
        outputs: str,
        forks: Forks | None = None,
    ) -> None:
        """Let `probe(place, candidate, folder, marker)` run in workers.

        A `place` is made for each worker, and closed at the end. What a probe writes goes to its
        folder in `outputs`. `learnt` hears of those that an environment helped, `doing`
        what takes long before a candidate is run, and nothing when that is over. With `forks`, a
        probe also gets who forks in the place, or None, and whether to note imports.
        """
        self._forks = forks
        self._probe = probe
        self._make_place = place
        self._learnt = learnt
        self._doing = doing
        self._jobs = jobs
        self._outputs = outputs
        self._count = len(os.listdir(outputs)) if os.path.isdir(outputs) else 0
        self._idle: list[Any] = []
        self._busy: list[tuple[str, workers.Worker, Any, str]] = []
        self._last: dict[str, Any] = {}

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._jobs - len(self._busy)

    @property
    def running(self) -> list[str]:
        """The candidates that are probed now."""
        return [candidate for candidate, *_ in self._busy]

    def start(self, candidate: str) -> None:
        """Probe a candidate, in a fresh process."""
        self._start(candidate, is_forked=False)

    def start_forked(self, candidate: str) -> None:
        """Probe a candidate, in a fork of a process that has its imports, where there is one."""
        self._start(candidate, is_forked=True)

    def _start(self, candidate: str, *, is_forked: bool) -> None:
        place = self._place_for(candidate)
        self._count += 1
        folder = os.path.join(self._outputs, f"{self._count:04d}-{candidate[:12]}")
        os.makedirs(folder, mode=0o700)
        words = [place, candidate, folder]
        more = []
        if self._forks is not None:
            fork = self._forks.fork_in(place) if is_forked else None
            more = [fork, self._forks.is_noting(place)]
        worker = workers.Worker(lambda marker: self._probe(*words, marker, *more))
        self._busy.append((candidate, worker, place, folder))

    def _place_for(self, candidate: str) -> Any:
        """Take the place where it was probed before, if it is free: what was built is there."""
        place = self._last.get(candidate)
        if place in self._idle:
            self._idle.remove(place)
        else:
            place = self._idle.pop() if self._idle else self._make_place()
        self._last[candidate] = place
        return place

    def wait(self, seconds: float | None, also: Sequence[HasFileno] = ()) -> list[Probe]:
        """Wait until some have ended, or so long, or one of `also` has something; returns them."""
        ready = workers.wait([worker for _, worker, *_ in self._busy], seconds, *also)
        found = []
        for entry in [*self._busy]:
            candidate, worker, place, folder = entry
            answer = worker.read() if worker in ready else None
            for text in worker.said():
                self._doing(candidate, text)
            if answer is None:
                continue
            self._busy.remove(entry)
            self._idle.append(place)
            probe = _probe(candidate, answer, time.monotonic() - worker.began, folder)
            if probe.rung and probe.helped and not probe.outcome.not_started:
                self._learnt(probe)
            found.append(self._with_way(probe, place, answer))
        return found

    def _with_way(self, probe: Probe, place: Any, answer: bytes) -> Probe:
        """Say whether a probe was forked, and learn how the next ones can be."""
        if self._forks is None or not answer:
            return probe
        way = way_of(loads(answer.decode("ascii")))
        note = self._forks.learn(place, way)
        return probe.but(
            is_forked=way.forked is not None,
            is_doubtful=way.forked is not None and way.forked.is_doubtful,
            not_forked=way.why,
            notes=(*probe.notes, note) if note else probe.notes,
        )

    def stop_forking(self) -> None:
        """Use fresh processes only from now on."""
        if self._forks is not None:
            self._forks.give_up("a fork showed something else than a fresh process")

    def cancel(self, candidate: str) -> None:
        """End the probe of a candidate: it can tell nothing any more."""
        for entry in [*self._busy]:
            if entry[0] == candidate:
                self._busy.remove(entry)
                entry[1].cancel()
                self._doing(candidate, "")
                self._idle.append(entry[2])
                return

    def close(self) -> None:
        """End all that runs."""
        for candidate in self.running:
            self.cancel(candidate)
        if self._forks is not None:
            self._forks.close()
        for place in self._idle:
            place.close()
        self._idle.clear()


def _probe(candidate: str, answer: bytes, seconds: float, folder: str) -> Probe:
    try:
        told = loads(answer.decode("ascii"))
        return Probe(
            candidate=candidate,
            outcome=outcome_of(told["outcome"]),
            seconds=seconds,
            folder=folder,
            missing=tuple(told["missing"]),
            runs=told["runs"],
            rung=told["rung"],
            python=told.get("python", ""),
            needs=told["needs"],
            build_s=told.get("build_s", 0.0),
            notes=tuple(told.get("notes", ())),
            helped=told.get("helped", True),
            extra=tuple(told.get("extra", ())),
            outgrown=told.get("outgrown", False),
            is_traced=told.get("traced", False),
        )
    except (ValueError, KeyError, TypeError):
        died = Outcome(exit_code=125, not_started="the worker died")
        return Probe(candidate=candidate, outcome=died, seconds=seconds, folder=folder)
