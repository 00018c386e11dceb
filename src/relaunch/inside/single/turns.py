"""Threads that stand for processes, and take turns: who gives one work waits until it is done.

Work that waits for another process, as at a queue that is filled later, cannot be done now: then it
goes on beside, and who waited goes on too. Otherwise one thing happens at a time.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from relaunch.inside.single.own import Own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

_STEP_S = 0.02
_WAITS_S = 0.05
"""Waiting so long for another process, it will not get there without us."""
_WINDOW_S = 0.5
_IDLE = 0.05
"""A thread that had less than this share of the time a CPU is idle."""
_CHECK_S = 0.1
_DEBUGGERS = ("/pdb.py", "/bdb.py", "/code.py", "/IPython/", "/ipdb/", "/debugpy/", "/pudb/")
_HERE = os.path.dirname(os.path.abspath(__file__))
_clock, _getpid = time.monotonic, os.getpid
_workers: dict[int, Worker] = {}
"""Thread to who it stands for."""


class Terminated(BaseException):
    """Ends the work of a stand-in, as a signal ends a process."""


class Left(BaseException):
    """The work left its process by `os._exit`."""

    def __init__(self, code: int) -> None:
        """Take the exit code."""
        super().__init__(code)
        self.code = code


class Job:
    """One piece of work, and what came of it."""

    def __init__(self, call: Callable[[], Any]) -> None:
        """Call it when it is its turn."""
        self.call = call
        self.done = threading.Event()
        self.value: Any = None
        self.error: BaseException | None = None


class Worker:
    """A thread that stands for one process; it does one job after the other."""

    def __init__(self, name: str, process: Any = None) -> None:
        """`process` is what `multiprocessing.current_process()` is in it."""
        self.name = name
        self.process = process
        self.own = Own()
        self.job: Job | None = None
        self.waiting_since: float | None = None
        self.ending: int | None = None
        """The signal that is to end it."""
        self.pid = _getpid()
        self._turns = self._stopped = False
        self._wake = threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    @property
    def is_busy(self) -> bool:
        """Tell whether it has work that is not done, or whose giver does not know so yet."""
        return self._turns or (self.job is not None and not self.job.done.is_set())

    def start(self, job: Job) -> None:
        """Begin with a job; `turn` must follow, and waits for it."""
        self.job, self._turns = job, True
        giver = current()
        self.own.enter(giver.own if giver is not None else None)
        if self._thread is None:
            context = _context()
            self._thread = threading.Thread(
                target=context.run, args=(self._work,), name=self.name, daemon=True
            )
            self._thread.start()
        self._wake.release()

    def turn(self, *, idle_s: float, busy_s: float | None) -> bool:
        """Wait until the job is done; False: it goes on beside.

        Idle for so long, or busy for so long, it is not waited for.
        """
        job = self.job
        assert job is not None
        began = _clock()
        meter = _Meter(self)
        try:
            while not job.done.wait(_STEP_S):
                now = _clock()
                since = self.waiting_since
                stuck = since is not None and now - since >= _WAITS_S
                stuck = stuck or meter.idle_s(now) >= idle_s
                stuck = stuck or (busy_s is not None and now - began >= busy_s)
                if stuck and not self._is_debugged():
                    return False
        except KeyboardInterrupt:  # a real process gets it too
            self.raise_in(KeyboardInterrupt)
            raise
        finally:
            self.own.leave()
            self._turns = False
        return True

    def waits(self) -> _Waiting:
        """Say that it waits for another process, as long as the block lasts."""
        return _Waiting(self)

    def check(self) -> None:
        """End here if that was asked for."""
        if self.ending is not None:
            raise Terminated

    def end(self, signal: int) -> None:
        """Have it end as soon as it runs Python; one that waits for another process sees it too."""
        self.ending = signal
        self.raise_in(Terminated)

    def raise_in(self, kind: type[BaseException]) -> None:
        """Raise something in its thread."""
        thread = self._thread
        if thread is None or thread.ident is None or self.job is None or self.job.done.is_set():
            return
        import ctypes

        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(kind)
        )

    def stop(self) -> None:
        """Let the thread go: no more work comes."""
        self._stopped = True
        self._wake.release()

    @property
    def thread_id(self) -> int:
        """The thread's number to the system; 0 when it has not begun."""
        return (self._thread.native_id or 0) if self._thread is not None else 0

    def _work(self) -> None:
        ident = threading.get_ident()
        _workers[ident] = self
        try:
            self._one_after_the_other()
        except (Terminated, KeyboardInterrupt):  # came when the work was done already
            pass
        finally:
            _workers.pop(ident, None)

    def _one_after_the_other(self) -> None:
        while True:
            self._wake.acquire()
            job = self.job
            if job is None or (self._stopped and job.done.is_set()):
                return
            try:
                job.value = job.call()
            except BaseException as error:
                job.error = error.with_traceback(_without_us(error.__traceback__))
            finally:
                self.waiting_since = None
                job.done.set()
                del job

    def _is_debugged(self) -> bool:
        """Tell whether a person looks at it: then nothing goes on without him."""
        ident = self._thread.ident if self._thread is not None else None
        frame = sys._current_frames().get(ident or 0)
        while frame is not None:
            if any(part in frame.f_code.co_filename for part in _DEBUGGERS):
                return True
            frame = frame.f_back
        return False


class _Waiting:
    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def __enter__(self) -> None:
        self._before = self._worker.waiting_since
        if self._before is None:
            self._worker.waiting_since = _clock()

    def __exit__(self, *_: object) -> None:
        self._worker.waiting_since = self._before


class _Meter:
    """Measures how long a thread has hardly had a CPU; where that cannot be told, never."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._idle_since = self._at = _clock()
        self._used: float | None = 0.0  # at the first look it has had some: no false idleness

    def idle_s(self, now: float) -> float:
        if now - self._at >= _WINDOW_S / 2:
            used = self._used_s()
            if used is None or self._used is None or used - self._used > _IDLE * (now - self._at):
                self._idle_since = now
            self._at, self._used = now, used
        return now - self._idle_since

    def _used_s(self) -> float | None:
        thread = self._worker.thread_id
        if not thread:
            return None
        try:
            with open(f"/proc/self/task/{thread}/schedstat", "rb") as file:
                return int(file.read().split()[0]) / 1e9
        except (OSError, ValueError, IndexError):
            return None


def current() -> Worker | None:
    """Return who the calling thread stands for; None for the program itself, and in its forks."""
    worker = _workers.get(threading.get_ident())
    return worker if worker is not None and worker.pid == _getpid() else None


def until(worker: Worker, timeout_s: float | None, step: Callable[[float], bool]) -> bool:
    """Call `step(seconds)`, which waits so long, until it says that it came; it can be ended."""
    end = None if timeout_s is None else _clock() + timeout_s
    with worker.waits():
        for left in _slices(end):
            worker.check()
            if step(left):
                return True
    return False


def _slices(end: float | None) -> Iterator[float]:
    while True:
        left = _CHECK_S if end is None else min(_CHECK_S, end - _clock())
        if left <= 0:
            return
        yield left


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback from the user's own call on; one with nothing but ours is left whole."""
    rest = trace
    while rest is not None and rest.tb_frame.f_code.co_filename.startswith(_HERE):
        rest = rest.tb_next
    return rest or trace


def _context() -> Any:
    import contextvars

    return contextvars.copy_context()
