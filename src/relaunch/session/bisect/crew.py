"""The launcher of a bisection: probes in worker processes of this machine, each in a checkout.

The search only knows `start`, `wait`, `cancel` and `close`: another launcher may run elsewhere.
"""

from __future__ import annotations

import os
import time

from relaunch.jsontext import loads
from relaunch.outcome import Outcome
from relaunch.proc import workers
from relaunch.record import Record
from relaunch.session.past import outcome_of
from relaunch.trial.place.checkout import open_checkout, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from _typeshed import HasFileno

    from relaunch.session.bisect.oracle import Oracle
    from relaunch.trial.place.checkout import Checkout

    class Launcher(Protocol):
        """Runs probes, several at once."""

        oracle: Oracle

        @property
        def free(self) -> int: ...  # how many more could run now
        @property
        def running(self) -> Sequence[str]: ...  # commits, in the order they were started
        def start(self, commit: str, when: float) -> None: ...
        def wait(self, seconds: float | None, also: HasFileno | None = None) -> list[Probe]: ...
        def cancel(self, commit: str) -> None: ...
        def close(self) -> None: ...


class Probe(Record):
    """One probe that ended by itself."""

    commit: str
    outcome: Outcome
    seconds: float
    folder: str
    missing: tuple[str, ...] = ()
    runs: int = 1
    """How often the command was run for it."""
    rung: str = ""
    """Which environment it needed."""
    needs: str = ""
    """Its requirements, by their digest."""


class Crew:
    """Workers here."""

    def __init__(self, oracle: Oracle, *, jobs: int, checkouts: str, outputs: str) -> None:
        """Use folders of the journal: for checkouts, and for what the probes write."""
        self.oracle = oracle
        self._jobs = jobs
        self._parent = checkouts
        self._outputs = outputs
        self._count = len(os.listdir(outputs)) if os.path.isdir(outputs) else 0
        self._idle: list[Checkout] = []
        self._busy: list[tuple[str, workers.Worker, Checkout, str]] = []
        sweep(checkouts)  # what a killed search left

    @property
    def free(self) -> int:
        """How many more could run now."""
        return self._jobs - len(self._busy)

    @property
    def running(self) -> list[str]:
        """The commits that are probed now."""
        return [commit for commit, *_ in self._busy]

    def start(self, commit: str, when: float) -> None:
        """Probe a commit, which is of that time."""
        checkout = self._idle.pop() if self._idle else open_checkout(self._parent, self.oracle.top)
        self._count += 1
        folder = os.path.join(self._outputs, f"{self._count:04d}-{commit[:12]}")
        os.makedirs(folder, mode=0o700)
        oracle = self.oracle
        worker = workers.Worker(lambda marker: oracle.probe(checkout, commit, when, folder, marker))
        self._busy.append((commit, worker, checkout, folder))

    def wait(self, seconds: float | None, also: HasFileno | None = None) -> list[Probe]:
        """Wait until some have ended, or so long, or `also` has something; returns them."""
        ready = workers.wait([worker for _, worker, *_ in self._busy], seconds, also)
        found = []
        for entry in [*self._busy]:
            commit, worker, checkout, folder = entry
            if worker not in ready:
                continue
            answer = worker.read()
            if answer is None:
                continue
            self._busy.remove(entry)
            self._idle.append(checkout)
            probe = _probe(commit, answer, time.monotonic() - worker.began, folder)
            if probe.rung and not probe.outcome.not_started:
                self.oracle.ladder.known[probe.needs] = probe.rung
            found.append(probe)
        return found

    def cancel(self, commit: str) -> None:
        """End the probe of a commit: it can tell nothing any more."""
        for entry in [*self._busy]:
            if entry[0] == commit:
                self._busy.remove(entry)
                entry[1].cancel()
                self._idle.append(entry[2])
                return

    def close(self) -> None:
        """End all that runs, and leave nothing behind but what was written down."""
        for commit in self.running:
            self.cancel(commit)
        for checkout in self._idle:
            checkout.close()
        self._idle.clear()
        sweep(self._parent)


def _probe(commit: str, answer: bytes, seconds: float, folder: str) -> Probe:
    try:
        told = loads(answer.decode("ascii"))
        return Probe(
            commit=commit,
            outcome=outcome_of(told["outcome"]),
            seconds=seconds,
            folder=folder,
            missing=tuple(told["missing"]),
            runs=told["runs"],
            rung=told["rung"],
            needs=told["needs"],
        )
    except (ValueError, KeyError, TypeError):
        died = Outcome(exit_code=125, not_started="the worker died")
        return Probe(commit=commit, outcome=died, seconds=seconds, folder=folder)
