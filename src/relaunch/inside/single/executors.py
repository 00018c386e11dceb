"""`ProcessPoolExecutor` in one process: futures that are done when they are handed out."""

from __future__ import annotations

import functools
import itertools
import os
import threading

from relaunch.inside.single.copies import copied
from relaunch.inside.single.crew import Crew
from relaunch.inside.single.processes import numbered
from relaunch.inside.single.told import told
from relaunch.inside.single.turns import Left

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType
    from typing import Any

_ABRUPT = (
    "A process in the process pool was terminated abruptly while the future was running or pending."
)
_AT_INIT = "A process in the process pool was terminated abruptly: its initializer failed."


def executors(module: ModuleType) -> None:
    """Replace the class, for who imports it from now on."""
    theirs: Any = module
    theirs.ProcessPoolExecutor = _made(theirs)


def _made(theirs: Any) -> Any:
    base, futures = theirs.ProcessPoolExecutor, theirs._base

    class ProcessPoolExecutor(base):  # type: ignore[misc,valid-type]
        def __init__(
            self,
            max_workers: int | None = None,
            mp_context: Any = None,
            initializer: Callable[..., Any] | None = None,
            initargs: tuple[Any, ...] = (),
            *,
            max_tasks_per_child: int | None = None,
        ) -> None:
            count = getattr(os, "process_cpu_count", os.cpu_count)() or 1
            count = count if max_workers is None else max_workers
            if count <= 0:
                raise ValueError("max_workers must be greater than 0")
            if initializer is not None and not callable(initializer):
                raise TypeError("initializer must be a callable")
            self._mp_context = mp_context or _context(theirs, max_tasks_per_child)
            _check_tasks(max_tasks_per_child, self._mp_context)
            self._max_workers = count
            self._initializer, self._initargs = initializer, initargs
            self._max_tasks_per_child = max_tasks_per_child
            self._processes: Any = {}
            self._shutdown_thread = False
            self._shutdown_lock = threading.Lock()
            self._broken: Any = False
            self._cause: BaseException | None = None
            people = [_process(self._mp_context) for _ in range(count)]
            self._crew = Crew(people, initializer, initargs, max_tasks_per_child)
            self._begun = initializer is None
            self._left: list[tuple[Any, Any]] = []
            told(f"ProcessPoolExecutor of {count} workers -> this process")

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._check()
            if not self._begun:
                self._begun = True
                error = self._crew.begin()
                if error is not None:
                    self._break(_AT_INIT, error)
            future = futures.Future()
            if self._broken:
                future.set_exception(self._broken_now())
                return future
            future.set_running_or_notify_cancel()
            job = self._crew.do(lambda: _call(fn, args, kwargs))
            if job.done.is_set():
                self._settle(job, future)
            else:
                follow = functools.partial(self._follow, job, future)
                threading.Thread(target=follow, daemon=True).start()
                self._left.append((job, future))
            return future

        def map(
            self,
            fn: Any,
            *iterables: Any,
            timeout: float | None = None,
            chunksize: int = 1,
            **_: Any,
        ) -> Any:
            if chunksize < 1:
                raise ValueError("chunksize must be >= 1.")
            found = []
            items = zip(*iterables, strict=False)
            while chunk := _some(items, chunksize):
                found.append(self.submit(functools.partial(theirs._process_chunk, fn), chunk))
                if found[-1].done() and found[-1].exception() is not None:
                    break  # who asks for the results gets no further
            return _results(found, timeout)

        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            with self._shutdown_lock:
                self._shutdown_thread = True
            if wait:
                for job, future in self._left:
                    self._crew.wait(job)
                    futures.wait([future])
            self._crew.stop()

        def terminate_workers(self) -> None:
            self._crew.end()
            self._shutdown_thread = True

        kill_workers = terminate_workers

        def _check(self) -> None:
            with self._shutdown_lock:
                if self._broken:
                    raise self._broken_now()
                if self._shutdown_thread:
                    raise RuntimeError("cannot schedule new futures after shutdown")

        def _follow(self, job: Any, future: Any) -> None:
            self._crew.wait(job)
            self._settle(job, future)

        def _settle(self, job: Any, future: Any) -> None:
            if isinstance(job.error, Left):
                self._break(_ABRUPT, job.error)
                future.set_exception(self._broken_now())
            elif job.error is not None:
                future.set_exception(job.error)
            else:
                future.set_result(job.value)

        def _break(self, words: str, cause: BaseException) -> None:
            self._broken, self._cause = words, cause

        def _broken_now(self) -> BaseException:
            error: BaseException = theirs.BrokenProcessPool(self._broken)
            error.__cause__ = self._cause
            return error

    ProcessPoolExecutor.__name__ = ProcessPoolExecutor.__qualname__ = base.__name__
    ProcessPoolExecutor.__module__, ProcessPoolExecutor.__doc__ = base.__module__, base.__doc__
    return ProcessPoolExecutor


def _context(theirs: Any, tasks: int | None) -> Any:
    return theirs.mp.get_context("spawn") if tasks is not None else theirs.mp.get_context()


def _check_tasks(tasks: Any, context: Any) -> None:
    if tasks is None:
        return
    if not isinstance(tasks, int):
        raise TypeError("max_tasks_per_child must be an integer")
    if tasks <= 0:
        raise ValueError("max_tasks_per_child must be >= 1")
    if context.get_start_method(allow_none=False) == "fork":
        raise ValueError(
            "max_tasks_per_child is incompatible with the 'fork' multiprocessing start method;"
            " supply a different mp_context."
        )


def _process(context: Any) -> Any:
    process = context.Process()
    process._popen = numbered()
    return process


def _call(fn: Any, args: Any, kwargs: Any) -> Any:
    fn, args, kwargs = copied((fn, args, kwargs))
    return copied(fn(*args, **kwargs))


def _some(items: Iterator[Any], count: int) -> tuple[Any, ...]:
    return tuple(itertools.islice(items, count))


def _results(found: list[Any], timeout: float | None) -> Iterator[Any]:
    for future in found:
        yield from future.result(timeout)


def joblib(module: ModuleType) -> None:
    """Have joblib's processes be its own way to run one task after the other."""
    theirs: Any = module

    class InTurn(theirs.SequentialBackend):  # type: ignore[misc]
        def configure(self, n_jobs: int = 1, parallel: Any = None, **kwargs: Any) -> Any:
            told(f"joblib.Parallel of {n_jobs} jobs -> this process")
            return super().configure(n_jobs=n_jobs, parallel=parallel)

    for name in ("loky", "multiprocessing"):
        if name in theirs.BACKENDS:
            theirs.BACKENDS[name] = InTurn
