"""Runs at several sizes at once, each in a worker process of this machine."""

from __future__ import annotations

import os
import shutil

from relaunch.jsontext import loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.record import Record
from relaunch.session.past import outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed import HasFileno

    from relaunch.journal.searches import Search
    from relaunch.session.growing.sized import Sized

KIND = "grow"
SCRATCH = "rows"
"""Where files that were cut lie, while they are used."""


class Probe(Record):
    """One run that ended by itself."""

    at: Mapping[str, float]
    outcome: Outcome
    peak_bytes: int | None
    folder: str
    """Where its output is, below the folder of the search."""


class Crew:
    """Workers here."""

    def __init__(self, sized: Sized, book: Search, *, jobs: int) -> None:
        """Keep what the runs write in the folder of a search."""
        self._sized = sized
        self._path = book.path
        self._jobs = jobs
        self._count = _last_number(os.path.join(book.path, "probes"))
        self._busy: list[tuple[Mapping[str, float], workers.Worker, str]] = []

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._jobs - len(self._busy)

    @property
    def running(self) -> list[Mapping[str, float]]:
        """The sizes that are run now."""
        return [at for at, *_ in self._busy]

    def start(self, at: Mapping[str, float]) -> None:
        """Run it at these sizes."""
        self._count += 1
        name = f"{self._count:04d}"
        folder, scratch = self._folder(name), os.path.join(self._path, SCRATCH, name)
        for path in (folder, scratch):
            os.makedirs(path, mode=0o700)
        sized = self._sized
        worker = workers.Worker(lambda marker: sized.run(at, folder, scratch, marker))
        self._busy.append((at, worker, name))

    def wait(self, seconds: float | None, *also: HasFileno) -> list[Probe]:
        """Wait until some have ended, or so long, or `also` has something; returns them."""
        ready = workers.wait([worker for _, worker, _ in self._busy], seconds, *also)
        found = []
        for entry in [*self._busy]:
            at, worker, name = entry
            answer = worker.read() if worker in ready else None
            if answer is not None:
                self._busy.remove(entry)
                self._clear(name)
                found.append(_probe(at, answer, os.path.join("probes", name)))
        return found

    def cancel(self, at: Mapping[str, float]) -> None:
        """End a run: it can tell nothing any more."""
        for entry in [*self._busy]:
            if entry[0] == at:
                self._busy.remove(entry)
                entry[1].cancel()
                self._clear(entry[2])
                shutil.rmtree(self._folder(entry[2]), ignore_errors=True)

    def close(self) -> None:
        """End all that runs, and leave nothing behind but what was written down."""
        for at in self.running:
            self.cancel(at)
        shutil.rmtree(os.path.join(self._path, SCRATCH), ignore_errors=True)

    def _folder(self, name: str) -> str:
        return os.path.join(self._path, "probes", name)

    def _clear(self, name: str) -> None:
        shutil.rmtree(os.path.join(self._path, SCRATCH, name), ignore_errors=True)


def _last_number(folder: str) -> int:
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return max((int(name) for name in names if name.isdecimal()), default=0)


def _probe(at: Mapping[str, float], answer: bytes, folder: str) -> Probe:
    try:
        told = loads(answer.decode("ascii"))
        outcome, peak = outcome_of(told["outcome"]), told["peak_bytes"]
    except (ValueError, KeyError, TypeError):
        outcome, peak = Outcome(exit_code=125, not_started="the worker died"), None
    return Probe(at=at, outcome=outcome, peak_bytes=peak, folder=folder)
