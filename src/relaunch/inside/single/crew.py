"""The workers of a pool: one, unless work that waits for others needs more."""

from __future__ import annotations

import threading
import time
from collections import deque

from relaunch.inside.single.told import told
from relaunch.inside.single.turns import Job, Worker, current, until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_IDLE_S = 5.0
"""A task that sleeps, or reads from a network, is waited for so long."""


class Crew:
    """Up to so many stand-ins, each with a process of its own; tasks are done in their order."""

    def __init__(
        self,
        processes: list[Any],
        initializer: Callable[..., Any] | None,
        initargs: tuple[Any, ...],
        tasks_each: int | None,
    ) -> None:
        """Hire nobody yet; `tasks_each` of them, a worker is replaced by a new one."""
        self._processes = deque(processes)
        self._initialise = (initializer, initargs)
        self._tasks_each = tasks_each
        self._hired: list[Worker] = []
        self._done: dict[Worker, int] = {}
        self._waiting: deque[Job] = deque()
        self._lock = threading.RLock()

    def do(self, call: Callable[[], Any]) -> Job:
        """Have it done, and return when it is, or goes on beside; what it raised is in the job."""
        job = Job(call)
        with self._lock:
            worker = self._free()
            if worker is None:
                self._waiting.append(job)
                return job
            self._start(worker, job)
        _turn(worker)
        return job

    def wait(self, job: Job, timeout_s: float | None = None) -> bool:
        """Wait for a job that goes on beside, and do those that wait for a worker meanwhile."""
        worker = current()
        if job.done.is_set():
            return True
        if worker is not None:
            return until(worker, timeout_s, lambda left: self._step(job, left))
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._step(job, 0.02):
            if end is not None and time.monotonic() >= end:
                return job.done.is_set()
        return True

    def stop(self) -> None:
        """Let all go."""
        for worker in self._hired:
            if not worker.is_busy:
                worker.stop()

    def end(self) -> None:
        """End those that are at work still, and drop what waits."""
        self._waiting.clear()
        for worker in self._hired:
            if worker.is_busy:
                worker.end(15)
        self.stop()

    def begin(self) -> BaseException | None:
        """Hire the first worker, and return what its initializer raised."""
        return self._hire()[1]

    def _step(self, job: Job, seconds: float) -> bool:
        with self._lock:
            worker = self._free() if self._waiting else None
            if worker is not None:
                self._start(worker, self._waiting.popleft())
        if worker is not None:
            _turn(worker)
        return job.done.wait(seconds)

    def _free(self) -> Worker | None:
        for worker in self._hired:
            if not worker.is_busy:
                done = self._done.get(worker, 0)
                if self._tasks_each is None or done < self._tasks_each:
                    return worker
                self._processes.append(worker.process)
                self._hired.remove(worker)
                worker.stop()
        if self._processes:
            return self._hire()[0]
        return None

    def _hire(self) -> tuple[Worker, BaseException | None]:
        process = self._processes.popleft()
        worker = Worker(process.name, process)
        self._hired.append(worker)
        initializer, initargs = self._initialise
        if initializer is None:
            return worker, None
        job = Job(lambda: initializer(*initargs))
        worker.start(job)
        worker.turn(idle_s=_IDLE_S, busy_s=None)
        return worker, job.error

    def _start(self, worker: Worker, job: Job) -> None:
        self._done[worker] = self._done.get(worker, 0) + 1
        worker.start(job)


def _turn(worker: Worker) -> None:
    if not worker.turn(idle_s=_IDLE_S, busy_s=None):
        told("a task of it -> a thread beside: it waits for others")
