"""Runs one thread at a time, and decides at each place whether another one goes on.

Each thread has a baton, a real lock: who waits for it is stopped. Nothing here depends on a clock,
unless the world outside has to do with it (`is_real`, `away`): so the same seed is the same run.
"""

from __future__ import annotations

import _thread
import sys
import time

from relaunch.inside.race.choosers import BLOCK, POINT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from relaunch.inside.race.choosers import Chooser

RUNS, WAITS, SLEEPS, AWAY, DONE = "runs", "waits", "sleeps", "away", "done"
FAIR = 2000
"""After so many places another thread has its turn: this one may be waiting for it in a loop."""
JUMP_S = 1.0
"""For so long in all, threads that sleep may wake while others run: they may be slow for once."""
_TICK_S = 1e-6
_LEAVING, _LEAVING_S = 1000, 0.001
_LONELY = 2000
"""So often only daemons wake by the clock before it is said that the others never will."""
_lock, _ident, _native = _thread.allocate_lock, _thread.get_ident, _thread.get_native_id
_mutex, _monotonic, _time, _sleep = _thread.RLock, time.monotonic, time.time, time.sleep


class Task:
    """A thread that is scheduled."""

    __slots__ = (
        "baton", "blocks", "children", "deadline", "id", "ident", "is_daemon", "is_late", "key",
        "name", "native", "on", "parent", "points", "quiet", "state", "streak",
    )  # fmt: skip

    def __init__(self, key: tuple[int, ...], name: str, *, is_daemon: bool) -> None:
        """A thread is known by whose how many-th child it is: no order of threads changes that."""
        self.key = key
        self.id = ".".join(map(str, key))
        self.name = name
        self.is_daemon = is_daemon
        self.baton = _lock()
        self.baton.acquire()
        self.state = RUNS
        self.on: Any = None
        """What it waits for."""
        self.deadline: float | None = None
        self.is_late = False
        self.points = self.blocks = self.children = self.streak = 0
        self.quiet = 0
        """Above 0 it is not interrupted: it is in the middle of a matter of ours."""
        self.ident = self.native = 0


class Scheduler:
    """The threads of this process."""

    def __init__(
        self, chooser: Chooser, *, most_points: int, ended: Callable[[str], object], own: Any
    ) -> None:
        """`ended(why)` is called when no thread can go on, or never ends; it does not come back.

        `own(file)` tells whether a file is the user's own.
        """
        self.chooser = chooser
        self.tasks: list[Task] = []
        self.by_ident: dict[int, Task] = {}
        self.runnable: list[Task] = []
        self.sleeping: list[Task] = []
        self.timed: list[Task] = []
        self.away: list[Task] = []
        self.current: Task | None = None
        self.switches: list[tuple[str, str, int, str, str, int]] = []
        self.loose: dict[str, str] = {}
        """Why another run with the same seed may differ, by kind."""
        self.steps = 0
        self.alive = 1
        """Threads that are not over."""
        self.clock = 0.0
        self.is_on = True
        self.is_real = False
        self.mutex = _mutex()
        self.waiting: dict[int, list[Task]] = {}
        self.started = _monotonic()
        self.wall = _time()
        self._most = most_points
        self._ended = ended
        self._own = own
        self._base = 0.0
        self._lonely = 0
        self._slow_s = JUMP_S
        self.on_second: Callable[[], object] = lambda: None
        """Called when there is a second thread, again."""
        self.heard: Callable[[str, Task, int, Task], object] | None = None
        """Hears of each switch."""

    # --- who there is

    def mine(self) -> Task | None:
        """Return the task of this thread; None for one that is not ours."""
        task = self.by_ident.get(_ident()) if self.is_on else None
        # A handler of a signal runs in a thread that waits for its turn, and what is collected as
        # garbage in the middle of a matter of ours: they must not take part.
        if task is None or task.quiet or (task is not self.current and task.state != AWAY):
            return None
        return task

    def first(self, name: str) -> Task:
        """Take this thread in; it runs."""
        task = Task((0,), name, is_daemon=False)
        self.tasks.append(task)
        self.chooser.began(task)
        self.runnable.append(task)
        self.current = task
        self.adopt(task)
        return task

    def add(self, parent: Task, name: str, *, is_daemon: bool) -> Task:
        """Know of a thread that is about to start; `ready` lets it run."""
        parent.children += 1
        task = Task((*parent.key, parent.children), name, is_daemon=is_daemon)
        with self.mutex:
            self.tasks.append(task)
            self.chooser.began(task)
            self.alive += 1
        if self.alive == 2:
            self.on_second()
        return task

    def adopt(self, task: Task) -> None:
        """Be this task, in its own thread."""
        task.ident, task.native = _ident(), _native()
        self.by_ident[task.ident] = task

    def ready(self, task: Task) -> None:
        """Let a new thread run when its turn comes."""
        with self.mutex:
            self._let(task)

    def drop(self, task: Task) -> None:
        """Forget a thread that could not be started."""
        with self.mutex:
            task.state = DONE
            self.alive -= 1
            self.tasks.remove(task)

    # --- going on, or not

    def point(self) -> None:
        """Let another thread run here, if it is to."""
        task = self.by_ident.get(_ident())
        if task is None or task.quiet or not self.is_on:
            return
        if task is not self.current:
            if task.state != AWAY:
                return
            self.come_back(task)
        task.points += 1  # also where nobody else could run: the same place has the same number
        if len(self.runnable) < 2 and not self.sleeping:
            return
        self.steps += 1
        if self.steps > self._most:
            self._ended("long")
        task.streak += 1
        others = self._others(task)
        other: Any = self.chooser.point(task, others)
        if other is None:
            if task.streak < FAIR:
                return
            other = self._after(task)
            if other is None:
                return
        self._switch(task, other)

    def _others(self, task: Task) -> list[Task]:
        """Return who could run instead: also who sleeps and comes next, as this one may be slow."""
        others = [one for one in self.runnable if one is not task]
        if self.sleeping and not self.is_real:
            next_one = min(self.sleeping, key=_due)
            if (next_one.deadline or 0.0) - self.clock <= self._slow_s:
                others.append(next_one)
        return others

    def _after(self, task: Task) -> Task | None:
        later = [one for one in self.runnable if one.key > task.key]
        earlier = [one for one in self.runnable if one.key < task.key]
        task.streak = 0
        return next(iter(later + earlier), None)

    def _switch(self, task: Task, other: Task) -> None:
        task.quiet += 1
        self._note(POINT, task, task.points, other)
        with self.mutex:
            task.streak = 0
            if other.state == SLEEPS:
                self._slow_s -= max(0.0, (other.deadline or 0.0) - self.clock)
                self.clock = max(self.clock, other.deadline or 0.0)
                self._let(other)
            self.current = other
        other.baton.release()
        task.baton.acquire()
        task.quiet -= 1

    def _note(self, kind: str, task: Task, count: int, other: Task) -> None:
        file, line = self._place(sys._getframe(2))
        self.switches.append((kind, task.id, count, other.id, file, line))
        if self.heard is not None:
            self.heard(kind, task, count, other)

    def _place(self, frame: FrameType | None) -> tuple[str, int]:
        """Return the line of the user's own that this is about."""
        while frame is not None:
            if self._own(frame.f_code.co_filename):
                return frame.f_code.co_filename, frame.f_lineno or 0
            frame = frame.f_back
        return "", 0

    def block(self, on: object, seconds: float | None = None, *, sleeps: bool = False) -> bool:
        """Wait until `on` is woken, or so long; False when the time is over."""
        task = self.by_ident[_ident()]
        if task is not self.current:
            self.come_back(task)
        task.quiet += 1
        with self.mutex:
            task.state = SLEEPS if sleeps else WAITS
            task.on = on
            task.blocks += 1
            task.is_late = False
            task.deadline = None if seconds is None else self.now() + max(0.0, seconds)
            self.runnable.remove(task)
            if task.deadline is not None:
                self.timed.append(task)
            if sleeps:
                self.sleeping.append(task)
            else:
                self.waiting.setdefault(id(on), []).append(task)
            self._pass_on(task)
        task.baton.acquire()
        task.quiet -= 1
        return not task.is_late

    def wake(self, on: object) -> None:
        """Let all go on that wait for it."""
        if id(on) not in self.waiting:
            return
        me = self.by_ident.get(_ident())
        if me is not None:
            me.quiet += 1
        with self.mutex:
            for task in [*self.waiting.get(id(on), ())]:
                self._let(task)
            self._take_up()
        if me is not None:
            me.quiet -= 1

    def _let(self, task: Task) -> None:
        """Let a task run when its turn comes; we have the mutex."""
        if task.state == WAITS:
            waiting = self.waiting.get(id(task.on), [])
            if task in waiting:
                waiting.remove(task)
            if not waiting:
                self.waiting.pop(id(task.on), None)
        for group in (self.timed, self.sleeping, self.away):
            if task in group:
                group.remove(task)
        task.state, task.on, task.deadline = RUNS, None, None
        if task not in self.runnable:
            self.runnable.append(task)
            self.runnable.sort(key=_key)

    def _take_up(self) -> None:
        """Give the turn to somebody if nobody has it; we have the mutex."""
        if self.current is None and self.runnable:
            self.current = self.runnable[0]
            self.current.baton.release()

    def _pass_on(self, task: Task) -> None:
        """Give the turn to another one, or to nobody; we have the mutex."""
        while True:
            if self.runnable:
                other: Any = self.runnable[0]
                if len(self.runnable) > 1:
                    other = self.chooser.blocked(task, self.runnable)
                    self._note(BLOCK, task, task.blocks, other)
                elif self.heard is not None and other is not task:
                    self.heard("", task, task.blocks, other)
                self.current = other
                other.streak = 0
                other.baton.release()
                return
            if self.timed and not self.is_real and not self.away:
                self._pass_time()
                continue
            self.current = None
            if not self.away and not self.timed and self._is_stuck(task):
                self._ended("deadlock")
            return

    def _pass_time(self) -> None:
        """Nobody can run before the next moment that somebody waits for: it is now."""
        hopeless = all(
            one.is_daemon or one.state == DONE or (one.state == WAITS and one.deadline is None)
            for one in self.tasks
        )
        self._lonely = self._lonely + 1 if hopeless else 0
        if self._lonely > _LONELY:
            self._ended("deadlock")
        task = min(self.timed, key=_due)
        self.clock = max(self.clock, task.deadline or 0.0)
        task.is_late = task.state == WAITS
        self._let(task)

    def _is_stuck(self, last: Task) -> bool:
        """Tell whether somebody waits whom nobody will wake; `last` was the last to run."""
        waiting = [one for one in self.tasks if one.state == WAITS]
        if not any(not one.is_daemon for one in waiting):
            return False
        ours = sum(one.state != DONE and one.ident > 0 for one in self.tasks) - 1
        ours += last.state == DONE  # it is here still
        for _ in range(_LEAVING):
            if _thread._count() <= ours + self.helpers:
                return True
            _sleep(_LEAVING_S)  # a thread that is over needs a moment to be gone
        return False

    helpers = 0
    """Threads of ours."""

    def exit(self, task: Task) -> None:
        """This thread is over."""
        if task is not self.current and self.is_on:
            self.come_back(task)
        task.quiet += 1
        with self.mutex:
            self.by_ident.pop(task.ident, None)
            task.state = DONE
            self.alive -= 1
            task.blocks += 1
            task.ident = 0
            if task in self.runnable:
                self.runnable.remove(task)
            for one in [*self.waiting.get(id(task), ())]:
                self._let(one)
            if self.is_on:
                self._pass_on(task)

    # --- the world outside

    def leave(self, why: str) -> Task | None:
        """Let others run while this thread is in a call that waits for the world outside."""
        task = self.mine()
        if task is None or task.quiet:
            return None
        if task is not self.current:
            self.come_back(task)
        with self.mutex:
            self.be_real(why)
            self.let_go(task)
        return task

    def let_go(self, task: Task) -> None:
        """Take the turn from a thread that does not come back; we have the mutex."""
        task.state = AWAY
        task.blocks += 1
        self.runnable.remove(task)
        self.away.append(task)
        self._pass_on(task)

    def come_back(self, task: Task) -> None:
        """Wait for our turn: others had it while we were outside."""
        with self.mutex:
            if task.state == AWAY:
                self._let(task)
            if self.current is None:
                self.current = task
            if self.current is task:
                return
        task.baton.acquire()

    def be_real(self, why: str) -> None:
        """Have time pass as it does outside, from now on."""
        self.loose.setdefault(why, "")
        if not self.is_real:
            self._base = _monotonic() - self.clock
            self.is_real = True

    def now(self) -> float:
        """Return the time since the beginning."""
        return _monotonic() - self._base if self.is_real else self.clock

    def tick(self) -> float:
        """Return the time; looking at it takes some, so that loops which wait for it end."""
        if not self.is_real:
            self.clock += _TICK_S
        return self.now()

    def time_out(self) -> None:
        """Wake who has slept long enough, where time is real."""
        with self.mutex:
            now = self.now()
            for task in [one for one in self.timed if one.deadline is not None]:
                if task.deadline is not None and task.deadline <= now:
                    task.is_late = task.state == WAITS
                    self._let(task)
            self._take_up()

    def stop(self) -> None:
        """Schedule no more: the program is over."""
        self.is_on = False


def _due(task: Task) -> tuple[float, tuple[int, ...]]:
    return task.deadline or 0.0, task.key


def _key(task: Task) -> tuple[int, ...]:
    return task.key
