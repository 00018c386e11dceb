"""`multiprocessing.Pool` in one process: the same methods, the same order, one task at a time."""

from __future__ import annotations

import itertools
import os
import sys
import threading

from relaunch.inside.single.copies import copied
from relaunch.inside.single.crew import Crew
from relaunch.inside.single.processes import numbered
from relaunch.inside.single.told import place, told
from relaunch.inside.single.turns import Left, current

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import ModuleType
    from typing import Any

_NONE: dict[str, Any] = {}
_CALLBACK_S = 0.3
"""A callback is waited for so long: it may want a lock that the caller has."""


def pools(module: ModuleType) -> None:
    """Replace the class, for who imports it from now on; pools of threads stay as they are."""
    theirs: Any = module
    theirs.Pool = _made(theirs)


def _made(theirs: Any) -> Any:
    """Return a Pool that is one to `isinstance`, and none of whose threads and queues are made."""
    base = theirs.Pool

    class Pool(base):  # type: ignore[misc,valid-type]
        def __init__(
            self,
            processes: int | None = None,
            initializer: Callable[..., Any] | None = None,
            initargs: tuple[Any, ...] = (),
            maxtasksperchild: int | None = None,
            context: Any = None,
        ) -> None:
            if isinstance(self, theirs.ThreadPool):  # whose __init__ asks for `Pool`'s
                base.__init__(self, processes, initializer, initargs)
                return
            self._pool: list[Any] = []
            self._state = theirs.INIT
            self._ctx = context or theirs.get_context()
            worker = current()
            if worker is not None and worker.process._config.get("daemon"):
                raise AssertionError("daemonic processes are not allowed to have children")
            count = processes if processes is not None else _cpus()
            _check(count, initializer, maxtasksperchild)
            self._processes = count
            self._maxtasksperchild = maxtasksperchild
            self._initializer, self._initargs = initializer, initargs
            self._pool = [_process(self._ctx) for _ in range(count)]
            self._crew = Crew(self._pool, initializer, initargs, maxtasksperchild)
            self.theirs = theirs
            self._lazy: list[_Lazy] = []
            self._asked: list[Any] = []
            told(f"Pool of {count} processes -> this one")
            error = self._crew.begin() if initializer is not None else None
            if error is not None:  # a real pool would start workers for ever
                raise error
            self._state = theirs.RUN

        # --- one task after the other ----------------------------------------------------------

        def apply(self, func: Any, args: Any = (), kwds: Any = _NONE) -> Any:
            return self.apply_async(func, args, kwds).get()

        def apply_async(
            self,
            func: Any,
            args: Any = (),
            kwds: Any = _NONE,
            callback: Any = None,
            error_callback: Any = None,
        ) -> Any:
            self._check_running()
            job = self._crew.do(lambda: _call(theirs, func, args, kwds))
            return self._result([job], lambda values: values[0], callback, error_callback)

        def map(self, func: Any, iterable: Any, chunksize: int | None = None) -> Any:
            return self._map_async(func, iterable, theirs.mapstar, chunksize).get()

        def starmap(self, func: Any, iterable: Any, chunksize: int | None = None) -> Any:
            return self._map_async(func, iterable, theirs.starmapstar, chunksize).get()

        def _map_async(
            self,
            func: Any,
            iterable: Any,
            mapper: Any,
            chunksize: int | None = None,
            callback: Any = None,
            error_callback: Any = None,
        ) -> Any:
            self._check_running()
            items = iterable if hasattr(iterable, "__len__") else list(iterable)
            if chunksize is None:
                chunksize, extra = divmod(len(items), self._processes * 4)
                chunksize += bool(extra)
            jobs = []
            for task in theirs.Pool._get_tasks(func, items, max(chunksize, 1)) if items else ():
                jobs.append(self._crew.do(_mapping(theirs, mapper, task)))
                if jobs[-1].error is not None:  # what follows would not be asked for
                    break
            return self._result(
                jobs, lambda values: [*itertools.chain(*values)], callback, error_callback
            )

        def _result(self, jobs: Any, join: Any, callback: Any, error_callback: Any) -> Any:
            result = Result(self, jobs, join, callback, error_callback)
            self._asked.append(result)
            return result

        def imap(self, func: Any, iterable: Any, chunksize: int = 1) -> Any:
            self._check_running()
            if chunksize < 1:
                raise ValueError(f"Chunksize must be 1+, not {chunksize:n}")
            lazy = _Lazy(theirs, self._crew, func, iterable)
            self._lazy.append(lazy)
            return lazy if chunksize == 1 else iter(lazy)

        imap_unordered = imap

        # --- its life --------------------------------------------------------------------------

        def close(self) -> None:
            if self._state == theirs.RUN:
                self._state = theirs.CLOSE

        def terminate(self) -> None:
            self._state = theirs.TERMINATE
            self._lazy.clear()
            self._crew.end()
            self._tell_unasked()

        def join(self) -> None:
            if self._state == theirs.RUN:
                raise ValueError("Pool is still running")
            if self._state not in (theirs.CLOSE, theirs.TERMINATE):
                raise ValueError("In unknown state")
            for lazy in self._lazy:
                lazy.rest()
            for result in self._asked:
                result.wait()
            self._crew.stop()
            self._tell_unasked()

        def _tell_unasked(self) -> None:
            """Tell of errors that nobody asked for: with processes they are lost as well."""
            for result in self._asked:
                result.tell_unasked()
            self._asked = [one for one in self._asked if not one.ready()]

        def __del__(self, *_: Any, **__: Any) -> None:
            crew = getattr(self, "_crew", None)
            if crew is not None and not sys.is_finalizing():
                crew.stop()

    Pool.__name__, Pool.__qualname__ = base.__name__, base.__qualname__
    Pool.__module__, Pool.__doc__ = base.__module__, base.__doc__
    return Pool


def _cpus() -> int:
    return getattr(os, "process_cpu_count", os.cpu_count)() or 1


def _check(count: int, initializer: Any, tasks: Any) -> None:
    if count < 1:
        raise ValueError("Number of processes must be at least 1")
    if tasks is not None and (not isinstance(tasks, int) or tasks <= 0):
        raise ValueError("maxtasksperchild must be a positive int or None")
    if initializer is not None and not callable(initializer):
        raise TypeError("initializer must be a callable")


def _process(ctx: Any) -> Any:
    """Return what a worker is to itself; it is never started."""
    process = ctx.Process()
    process.name = process.name.replace("Process", "PoolWorker")
    process.daemon = True
    process._popen = numbered()
    return process


def _call(theirs: Any, func: Any, args: Any, kwds: Any) -> Any:
    func, args, kwds = copied((func, tuple(args), dict(kwds)), _package(theirs))
    return _given_back(theirs, _guarded(func, args, kwds))


def _mapping(theirs: Any, mapper: Any, task: Any) -> Callable[[], Any]:
    def call() -> Any:
        return _given_back(theirs, _guarded(mapper, (copied(task, _package(theirs)),), {}))

    return call


def _package(theirs: Any) -> str:
    return str(theirs.__name__.partition(".")[0])


def _guarded(func: Any, args: Any, kwds: Any) -> Any:
    try:
        return func(*args, **kwds)
    except (Left, SystemExit) as error:
        code = error.code
        words = f"a worker of a pool left with exit code {code}; a real pool would wait for ever"
        raise RuntimeError(words) from error


def _given_back(theirs: Any, value: Any) -> Any:
    try:
        return copied(value, _package(theirs))
    except Exception as error:
        raise theirs.MaybeEncodingError(error, value) from error


class Result:
    """What `apply_async` and `map_async` return."""

    def __init__(
        self, pool: Any, jobs: list[Any], join: Any, callback: Any, error_callback: Any
    ) -> None:
        """Wait for these jobs; `join` makes the value of theirs."""
        self._pool, self._jobs, self._join = pool, jobs, join
        self._callbacks = (callback, error_callback)
        self._where = place()
        self._asked = False
        self._lock = threading.Lock()
        self._called = False
        self._caller: threading.Thread | None = None
        if all(job.done.is_set() for job in jobs):
            self._call_back()
        else:  # somebody must be there when a worker is free again
            threading.Thread(target=self.wait, daemon=True).start()

    def get(self, timeout: float | None = None) -> Any:
        """Return the value, or raise what the worker raised: the same exception, its traceback."""
        self.wait(timeout)
        if not self.ready():
            raise self._pool.theirs.TimeoutError
        self._asked = True
        error = self._error()
        if error is not None:
            raise error
        return self._join([job.value for job in self._jobs])

    def wait(self, timeout: float | None = None) -> None:
        """Wait until it is done."""
        for job in self._jobs:
            if not self._pool._crew.wait(job, timeout):
                return
        self._call_back()
        caller = self._caller
        if caller is not None and caller is not threading.current_thread():
            caller.join(timeout)

    def ready(self) -> bool:
        """Tell whether it is done, and its callback too."""
        called = self._caller is None or not self._caller.is_alive()
        return called and all(job.done.is_set() for job in self._jobs)

    def successful(self) -> bool:
        """Tell whether nothing was raised."""
        if not self.ready():
            raise ValueError(f"{self!r} not ready")
        self._asked = True
        return self._error() is None

    def tell_unasked(self) -> None:
        """Tell of an error that nobody asked for."""
        error = self._error() if self.ready() and not self._asked else None
        if error is not None and self._callbacks[1] is None:
            self._asked = True
            told(f"its result was never asked for: {type(error).__name__}: {error}", self._where)

    def _error(self) -> BaseException | None:
        return next((job.error for job in self._jobs if job.error is not None), None)

    def _call_back(self) -> None:
        """Call back from another thread, as a pool does."""
        with self._lock:
            if self._called:
                return
            self._called = True
        error = self._error()
        call = self._callbacks[0] if error is None else self._callbacks[1]
        if call is not None:
            value = error if error is not None else self._join([job.value for job in self._jobs])
            self._caller = threading.Thread(target=call, args=(value,), daemon=True)
            self._caller.start()
            self._caller.join(_CALLBACK_S)


class _Lazy:
    """What `imap` returns: each task is done when its result is wanted."""

    def __init__(self, theirs: Any, crew: Crew, func: Any, iterable: Iterable[Any]) -> None:
        self._theirs, self._crew, self._func = theirs, crew, func
        self._items = iter(iterable)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.next()

    def next(self, timeout: float | None = None) -> Any:
        item = next(self._items)
        job = self._crew.do(lambda: _call(self._theirs, self._func, (item,), {}))
        if not self._crew.wait(job, timeout):
            raise self._theirs.TimeoutError
        if job.error is not None:
            raise job.error
        return job.value

    def rest(self) -> None:
        """Do what nobody took the result of: with processes it is done too."""
        while True:
            try:
                self.next()
            except StopIteration:
                return
            except Exception as error:
                told(f"its result was never asked for: {type(error).__name__}: {error}")
