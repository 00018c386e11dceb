"""Runs of a repetition, several at once, each in a worker process of this machine.

A seat runs one after the other; in it a process may wait that has the libraries imported, and is
forked for each run.
"""

from __future__ import annotations

import os
import shutil

from relaunch.jsontext import loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.session.bisect.forks import Forks, way_of
from relaunch.session.past import outcome_of
from relaunch.session.repeating.told import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import HasFileno

    from relaunch.journal.searches import Search
    from relaunch.session.repeating.repeated import Repeated

LOAD = "load"
SCRATCH = "forks"
_PER_CPU = 2


class Place:
    """Where runs of one mode are, one after the other."""

    def __init__(self, path: str) -> None:
        """All places have the user's own tree."""
        self.path = path


class Crew:
    """Workers here."""

    def __init__(self, repeated: Repeated, book: Search, *, jobs: int, forks: bool) -> None:
        """Keep what the runs write in the folder of a search."""
        self._repeated = repeated
        self._path = book.path
        self._jobs = jobs
        top = repeated.project
        folder = os.path.join(book.path, SCRATCH)
        shutil.rmtree(folder, ignore_errors=True)
        self._forks = Forks(folder, top) if forks else None
        self._places: dict[tuple[int, str], Place] = {}
        self._busy: list[tuple[int, str, int, workers.Worker]] = []
        self._burners: list[workers.Worker] = []
        self.note = ""
        """How runs start, once that is known; said once."""

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._jobs - len(self._busy)

    @property
    def running(self) -> list[int]:
        """The numbers of what runs now."""
        return [number for number, *_ in self._busy]

    def start(self, number: int, mode: str) -> None:
        """Run it."""
        self._be_busy(LOAD in mode.split("+"))
        taken = {slot for _, _, slot, _ in self._busy}
        slot = next(one for one in range(self._jobs) if one not in taken)
        place = self._places.setdefault((slot, mode), Place(self._repeated.project))
        fork, is_noted = None, False
        if self._forks is not None:
            fork, is_noted = self._forks.fork_in(place), self._forks.is_noting(place)
        folder = self.folder(number)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        repeated = self._repeated
        worker = workers.Worker(
            lambda marker: repeated.run(mode, folder, marker, fork, is_noted=is_noted)
        )
        self._busy.append((number, mode, slot, worker))

    def wait(self, seconds: float | None, *also: HasFileno) -> list[Run]:
        """Wait until some have ended, or so long, or `also` has something; returns them."""
        ready = workers.wait([worker for *_, worker in self._busy], seconds, *also)
        found = []
        for entry in [*self._busy]:
            number, mode, slot, worker = entry
            answer = worker.read() if worker in ready else None
            if answer is not None:
                self._busy.remove(entry)
                found.append(self._run(number, mode, self._places[slot, mode], answer))
        return found

    def _run(self, number: int, mode: str, place: Place, answer: bytes) -> Run:
        try:
            told = loads(answer.decode("ascii"))
            outcome, seconds, way = outcome_of(told["outcome"]), told["seconds"], way_of(told)
        except (ValueError, KeyError, TypeError):
            died = Outcome(exit_code=125, not_started="the worker died")
            return Run(number=number, mode=mode, outcome=died, seconds=0.0)
        if self._forks is not None:
            self.note = self._forks.learn(place, way).replace("probes", "runs") or self.note
        return Run(
            number=number,
            mode=mode,
            outcome=outcome,
            seconds=seconds,
            folder=os.path.join("probes", os.path.basename(self.folder(number))),
            forked=way.forked is not None,
        )

    def folder(self, number: int) -> str:
        """Return where a run writes."""
        return os.path.join(self._path, "probes", f"{number:04d}")

    def forget(self, run: Run) -> Run:
        """Remove what a run wrote: there are many like it."""
        shutil.rmtree(self.folder(run.number), ignore_errors=True)
        return run.but(folder="")

    def _be_busy(self, wanted: bool) -> None:
        """Keep all CPUs busy, or let them be."""
        if wanted and not self._burners:
            count = _PER_CPU * (os.cpu_count() or 1)
            self._burners = [workers.Worker(_burn) for _ in range(count)]
        elif not wanted:
            self._let_be()

    def _let_be(self) -> None:
        for one in self._burners:
            one.kill()
        self._burners.clear()

    def close(self) -> None:
        """End all that runs, and leave nothing behind but what was written down."""
        for number, _, _, worker in self._busy:
            worker.cancel()
            shutil.rmtree(self.folder(number), ignore_errors=True)
        self._busy.clear()
        self._let_be()
        if self._forks is not None:
            self._forks.close()
        shutil.rmtree(os.path.join(self._path, SCRATCH), ignore_errors=True)


def _burn(_: str) -> bytes:
    """Compute until we are ended."""
    while True:
        sum(range(10_000))
