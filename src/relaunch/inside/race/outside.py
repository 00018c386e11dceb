"""The world outside: calls that really wait, processes, connections, and loops of asyncio.

What waits outside must not stop the threads here: after a moment they go on, and from then on two
runs with one seed may differ, which is told. A call that computes is waited for.
"""

from __future__ import annotations

import _thread
import os
import select
import sys
import time

from relaunch.inside.race.locks import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.race.scheduler import Scheduler, Task

_LOOK_S = 0.01
_LOOKS, _FUTEX_LOOKS = 5, 100
"""So often a call is seen to wait before it is let go; more often where it may be Python's lock.

Looks are counted, as a busy machine takes the time from who looks, too.
"""
_IDLE_S = 0.002
_FUTEX = (b"202", b"98")
"""The number of the call by which locks wait, on x86-64 and on arm64."""
_REAL = {
    "subprocess.Popen": "it starts a process",
    "os.system": "it starts a process",
    "os.posix_spawn": "it starts a process",
    "os.spawn": "it starts a process",
    "os.fork": "it forks",
    "os.forkpty": "it forks",
    "socket.connect": "it connects to a socket",
}
_sleep, _cpu = time.sleep, time.clock_gettime
_cpu_clock = getattr(time, "pthread_getcpuclockid", None)
_new_thread, _getpid = _thread.start_new_thread, os.getpid
_open, _read, _close = os.open, os.read, os.close
_RealEpoll: Any = getattr(select, "epoll", None)


def replace() -> None:
    """Have loops of asyncio let others run while they wait."""
    if _RealEpoll is not None:
        module: Any = select
        module.epoll = Epoll


def watch(scheduler: Scheduler) -> None:
    """Look after calls that wait, and notice what starts processes."""
    sys.addaudithook(_heard)
    scheduler.helpers += 1
    _new_thread(_watching, (scheduler, _getpid()))


def _heard(event: str, _: Any) -> None:
    if event in _REAL and State.scheduler is not None and State.scheduler.mine() is not None:
        State.scheduler.be_real(_REAL[event])


def _watching(scheduler: Scheduler, pid: int) -> None:
    """Look now and then whether who has the turn does something with it."""
    task: Task | None = None
    seen: tuple[int, int, float] = 0, 0, 0.0
    looks = 0
    while scheduler.is_on and _getpid() == pid:
        _sleep(_LOOK_S)
        if scheduler.is_real and scheduler.timed:
            scheduler.time_out()
        now = scheduler.current
        if now is None or now.ident == 0:
            task = None
            continue
        used = _used(now)
        marks = now.points, now.blocks, used
        if now is not task or marks[:2] != seen[:2] or used - seen[2] > _IDLE_S:
            task, seen, looks = now, marks, 0
            continue
        looks += 1
        if looks > _LOOKS and _is_asleep(now, is_long=looks > _FUTEX_LOOKS):
            _let_go(scheduler, now)
            task = None


def _used(task: Task) -> float:
    """Return how long a thread has computed."""
    try:
        return _cpu(_cpu_clock(task.ident)) if _cpu_clock is not None else 0.0
    except OSError:
        return 0.0


def _is_asleep(task: Task, *, is_long: bool) -> bool:
    """Tell whether a thread waits in the kernel; a lock may be Python's own, which is soon free."""
    text = _text(f"/proc/self/task/{task.native}/syscall")
    if not text or text.startswith(b"running"):
        state = _text(f"/proc/self/task/{task.native}/stat").rpartition(b")")[2].split()[:1]
        return is_long and state in ([b"S"], [b"D"])
    return is_long or text.split()[0] not in _FUTEX


def _text(path: str) -> bytes:
    try:
        fd = _open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return _read(fd, 4096)
    except OSError:
        return b""
    finally:
        _close(fd)


def _let_go(scheduler: Scheduler, task: Task) -> None:
    frame = sys._current_frames().get(task.ident)
    file, line = scheduler._place(frame)
    with scheduler.mutex:
        if scheduler.current is not task or task.state != "runs":
            return
        what = frame.f_code.co_name if frame is not None else "a call"
        at = f"{file}:{line}" if file else what
        scheduler.be_real("a call waits for the world outside")
        scheduler.loose["a call waits for the world outside"] = at
        scheduler.let_go(task)


class Epoll:
    """Stands for `select.epoll`, by which loops of asyncio wait."""

    def __init__(self, *words: Any, **named: Any) -> None:
        """Make a real one."""
        self._real = _RealEpoll(*words, **named)

    @classmethod
    def fromfd(cls, fd: int) -> Any:
        """Make one of a descriptor."""
        made = cls.__new__(cls)
        made._real = _RealEpoll.fromfd(fd)
        return made

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> Any:
        """Wait; others run meanwhile."""
        found = self._real.poll(0, maxevents)
        if found or timeout == 0 or State.scheduler is None:
            return found or self._real.poll(timeout, maxevents)
        task = State.scheduler.leave("asyncio and selectors wait as ever")
        try:
            return self._real.poll(timeout, maxevents)
        finally:
            if task is not None:
                State.scheduler.come_back(task)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> Any:
        """Be used in a `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self._real.close()
