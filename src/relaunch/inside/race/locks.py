"""Locks, and a queue, whose waits are known: who waits lets others run, and nobody waits unseen.

Each has a real one inside, which is what counts. So all is as ever for threads that are not
scheduled, in forks, and when the program is over. Conditions, semaphores, events, barriers and
queues of the standard library are made of these.
"""

from __future__ import annotations

import _queue
import _thread
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from relaunch.inside.race.scheduler import Scheduler, Task

_real_lock, _real_rlock, _RealQueue = _thread.allocate_lock, _thread.RLock, _queue.SimpleQueue
_MADE_OF_LOCKS = ("/threading.py", "/queue.py", "/concurrent/futures/", __file__)


class State:
    """What the locks of this process share."""

    scheduler: Scheduler | None = None
    own: Any = None
    """Tells whether a file is the user's own."""
    plain = 0
    """Above 0, real locks are made: for matters between threads that Python itself has."""


def _made_at(frame: FrameType | None) -> tuple[bool, str, int]:
    """Tell whether a lock is the program's own, and where it was made: file and line."""
    while frame is not None:
        file = frame.f_code.co_filename
        if State.own is not None and State.own(file):
            return True, file, frame.f_lineno or 0
        if not any(part in file for part in _MADE_OF_LOCKS):
            return False, file, frame.f_lineno or 0
        frame = frame.f_back
    return False, "", 0


class Waited:
    """What locks of both kinds have in common."""

    kind = ""
    _make: Any = None
    """Makes a real one."""

    def __new__(cls) -> Any:
        """Make one of ours, or a real one where only that will do."""
        return cls._make() if State.plain else object.__new__(cls)

    def __init__(self) -> None:
        """Make one that is free."""
        self._real: Any = self._make()
        self.holder: Task | None = None
        self._is_own, self.file, self.line = _made_at(sys._getframe(1))

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it; others run while we wait."""
        scheduler = State.scheduler
        task = scheduler.mine() if scheduler is not None else None
        if scheduler is None or task is None:
            return bool(self._real.acquire(blocking, timeout))
        if (not blocking and timeout != -1) or (timeout < 0 and timeout != -1):
            self._real.acquire(blocking, timeout)  # says what is wrong with it
        if self._is_own:
            scheduler.point()
        if self._real.acquire(False):
            self.holder = task
            return True
        if not blocking:
            return False
        until = None if timeout == -1 else scheduler.now() + timeout
        while True:
            left = None if until is None else until - scheduler.now()
            in_time = scheduler.block(self, left)
            if self._real.acquire(False):
                self.holder = task
                return True
            if not in_time:
                return False

    def release(self) -> None:
        """Give it back, and let those go on that wait for it."""
        scheduler = State.scheduler
        if scheduler is None:
            self._real.release()
            return
        self._released(scheduler)
        if self._is_own:
            scheduler.point()

    def _released(self, scheduler: Scheduler) -> None:
        self._real.release()
        self.holder = None
        scheduler.wake(self)

    def locked(self) -> bool:
        """Tell whether somebody has it."""
        return bool(self._real.locked())

    def __enter__(self) -> bool:
        """Take it."""
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()

    def _at_fork_reinit(self) -> None:
        self._real._at_fork_reinit()
        self.holder = None

    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def __repr__(self) -> str:
        return repr(self._real)


class Lock(Waited):
    """Stands for `threading.Lock`."""

    kind = "Lock"
    _make = staticmethod(_real_lock)


class RLock(Waited):
    """Stands for `threading.RLock`."""

    kind = "RLock"
    _make = staticmethod(_real_rlock)

    def _released(self, scheduler: Scheduler) -> None:
        self._real.release()
        if not self._real._is_owned():
            self.holder = None
            scheduler.wake(self)

    def _is_owned(self) -> bool:
        return bool(self._real._is_owned())

    def _recursion_count(self) -> int:
        return int(self._real._recursion_count())

    def _release_save(self) -> Any:
        """Give it back wholly: for a condition, which takes it again later."""
        saved = self._real._release_save()
        self.holder = None
        if State.scheduler is not None:
            State.scheduler.wake(self)
        return saved

    def _acquire_restore(self, saved: Any) -> None:
        self.acquire()
        self._real._release_save()
        self._real._acquire_restore(saved)


class SimpleQueue:
    """Stands for `queue.SimpleQueue`."""

    kind = "SimpleQueue"

    def __init__(self) -> None:
        """Make an empty one."""
        self._real: Any = _RealQueue()
        self.holder = None
        self._is_own, self.file, self.line = _made_at(sys._getframe(1))

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put it in; never waits."""
        self._real.put(item)
        if State.scheduler is not None:
            State.scheduler.wake(self)
            if self._is_own:
                State.scheduler.point()

    def put_nowait(self, item: Any) -> None:
        """Put it in."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Take one out; others run while we wait for it."""
        scheduler = State.scheduler
        if scheduler is None or scheduler.mine() is None:
            return self._real.get(block, timeout)
        if timeout is not None and timeout < 0:
            return self._real.get(block, timeout)  # says what is wrong with it
        if self._is_own:
            scheduler.point()
        until = None if timeout is None else scheduler.now() + timeout
        while block and self._real.empty():
            left = None if until is None else until - scheduler.now()
            if not scheduler.block(self, left):
                break
        return self._real.get_nowait()

    def get_nowait(self) -> Any:
        """Take one out, if there is one."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Tell whether there is none."""
        return bool(self._real.empty())

    def qsize(self) -> int:
        """Tell how many there are."""
        return int(self._real.qsize())

    def __class_getitem__(cls, _: Any) -> Any:
        """Be written as `SimpleQueue[int]`."""
        return cls
