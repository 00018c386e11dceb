"""Threads that are scheduled: those of `threading`, executors and timers, and of `_thread` itself.

How a thread starts and ends is left to Python, which settles that with real locks; only what it
runs in between waits for its turn.
"""

from __future__ import annotations

import _queue
import _thread
import sys
import threading
import time

from relaunch.inside.race import locks
from relaunch.inside.race.locks import State
from relaunch.inside.race.scheduler import DONE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.inside.race.scheduler import Scheduler, Task

_Thread: Any = threading.Thread
_init, _start, _join, _is_alive = _Thread.__init__, _Thread.start, _Thread.join, _Thread.is_alive
_shutdown: Any = threading._shutdown  # type: ignore[attr-defined]
_new_thread = _thread.start_new_thread
_TASK = "_relaunch_task"


class Watching:
    """What is done in each thread that is scheduled, at its beginning and end."""

    begin: Callable[[], object] = staticmethod(lambda: None)
    end: Callable[[], object] = staticmethod(lambda: None)
    over: Callable[[Scheduler], object] = staticmethod(lambda _: None)
    """When the program is over."""


def replace() -> None:
    """Put ours in place of Python's; as long as nothing is scheduled, all is as ever."""
    module: Any = threading
    raw: Any = _thread
    module._time = time.monotonic
    module.Lock = module._allocate_lock = raw.allocate_lock = raw.allocate = locks.Lock
    module.RLock = module._CRLock = raw.RLock = locks.RLock
    simple: Any = _queue
    simple.SimpleQueue = locks.SimpleQueue
    queue: Any = sys.modules.get("queue")
    if queue is not None and hasattr(queue, "_PySimpleQueue"):
        queue.SimpleQueue = locks.SimpleQueue
    _Thread.__init__, _Thread.start, _Thread.join, _Thread.is_alive = _made, _begun, _joined, _lives
    module._shutdown = _over
    raw.start_new_thread = raw.start_new = _new


def settle() -> None:
    """In a fork: what Python has remade with locks of ours has to be real."""
    module: Any = threading
    module._active_limbo_lock = locks._real_rlock()
    if hasattr(module, "_shutdown_locks_lock"):
        module._shutdown_locks_lock = locks._real_lock()


def _mine() -> tuple[Scheduler | None, Task | None]:
    scheduler = State.scheduler
    return scheduler, scheduler.mine() if scheduler is not None else None


def _made(self: Any, *words: Any, **named: Any) -> None:
    """Stand for `Thread.__init__`: how it starts is a matter between real threads."""
    State.plain += 1
    try:
        _init(self, *words, **named)
    finally:
        State.plain -= 1


def _begun(self: Any) -> None:
    """Stand for `Thread.start`."""
    scheduler, me = _mine()
    if scheduler is None or me is None or _started(self):
        return _start(self)  # type: ignore[no-any-return]
    task = scheduler.add(me, self.name, is_daemon=self.daemon)
    vars(self)[_TASK] = task
    run = self.run

    def scheduled() -> None:
        vars(self).pop("run", None)
        _run(scheduler, task, run, lambda: self._invoke_excepthook(self))

    vars(self)["run"] = scheduled
    me.quiet += 1
    State.plain += 1
    try:
        _start(self)
    except BaseException:
        scheduler.drop(task)
        vars(self).pop("run", None)
        raise
    finally:
        me.quiet -= 1
        State.plain -= 1
    scheduler.ready(task)
    scheduler.point()
    return None


def _started(thread: Any) -> bool:
    event = vars(thread).get("_started")
    return event is None or event.is_set()


def _run(
    scheduler: Scheduler, task: Task, run: Callable[[], object], failed: Callable[[], object]
) -> None:
    """Be a thread: wait for our turn, run, and let others go on."""
    scheduler.adopt(task)
    task.baton.acquire()
    try:
        Watching.begin()
        run()
    except BaseException:
        failed()
    finally:
        Watching.end()
        scheduler.exit(task)


def _joined(self: Any, timeout: float | None = None) -> None:
    """Stand for `Thread.join`."""
    scheduler, me = _mine()
    task = vars(self).get(_TASK)
    if scheduler is None or me is None or task is None or task is me:
        return _join(self, timeout)  # type: ignore[no-any-return]
    scheduler.point()
    until = None if timeout is None else scheduler.now() + max(0.0, timeout)
    while task.state != DONE:
        left = None if until is None else until - scheduler.now()
        if not scheduler.block(task, left):
            return None
    return _join(self)  # type: ignore[no-any-return]


def _lives(self: Any) -> bool:
    """Stand for `Thread.is_alive`."""
    task = vars(self).get(_TASK)
    scheduler = State.scheduler
    if task is None or scheduler is None or not scheduler.is_on:
        return bool(_is_alive(self))
    return bool(task.state != DONE)


def _new(function: Any, args: Any, kwargs: Any = None, /) -> int:
    """Stand for `_thread.start_new_thread`."""
    scheduler, me = _mine()
    words = (function, args) if kwargs is None else (function, args, kwargs)
    if scheduler is None or me is None or State.plain:
        return _new_thread(*words)
    if not callable(function) or not isinstance(args, tuple):
        return _new_thread(*words)  # says what is wrong with it
    named = dict(kwargs or {})
    name = getattr(function, "__name__", "thread")
    task = scheduler.add(me, name, is_daemon=True)

    def scheduled() -> None:
        _run(scheduler, task, lambda: function(*args, **named), _unraisable)

    ident = _new_thread(scheduled, ())
    scheduler.ready(task)
    scheduler.point()
    return ident


def _unraisable() -> None:
    kind, error, _ = sys.exc_info()
    if kind is not SystemExit and error is not None:
        sys.excepthook(type(error), error, error.__traceback__)


def _over() -> None:
    """Stand for `threading._shutdown`: wait for threads that are no daemons, by turns."""
    scheduler, me = _mine()
    if scheduler is not None and me is not None:
        module: Any = threading
        module._SHUTTING_DOWN = True
        calls = [*reversed(module._threading_atexits)]
        module._threading_atexits.clear()
        for call in calls:
            call()
        while True:
            left = [one for one in scheduler.tasks if one is not me and not one.is_daemon]
            todo = next((one for one in left if one.state != DONE), None)
            if todo is None:
                break
            scheduler.block(todo)
        Watching.over(scheduler)
        scheduler.stop()
    _shutdown()
