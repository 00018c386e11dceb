"""Time that passes when nobody can run: a sleep costs nothing, and the same seed sees the same.

Once the world outside has to do with it (a process, a connection), time is as it is there.
"""

from __future__ import annotations

import time

from relaunch.inside.race.locks import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_sleep = time.sleep
_NS = 1_000_000_000


def begin() -> None:
    """Have the functions of `time` answer with it."""
    time.sleep = _slept
    for name in ("monotonic", "perf_counter", "time"):
        is_wall = name == "time"
        setattr(time, name, _read(getattr(time, name), is_wall=is_wall, scale=0))
        ns = f"{name}_ns"
        setattr(time, ns, _read(getattr(time, ns), is_wall=is_wall, scale=_NS))


def _slept(seconds: Any, /) -> None:
    """Stand for `time.sleep`."""
    scheduler = State.scheduler
    if scheduler is None or scheduler.mine() is None:
        return _sleep(seconds)
    if not isinstance(seconds, int | float) or seconds < 0:
        return _sleep(seconds)  # says what is wrong with it, or knows what it is
    scheduler.block("sleep", float(seconds), sleeps=True)
    return None


def _read(real: Callable[[], Any], *, is_wall: bool, scale: int) -> Callable[[], Any]:
    def read() -> Any:
        scheduler = State.scheduler
        if scheduler is None or scheduler.mine() is None:
            return real()
        base = scheduler.wall if is_wall else scheduler.started
        now = base + scheduler.tick()
        return int(now * scale) if scale else now

    read.__name__ = read.__qualname__ = getattr(real, "__name__", "time")
    return read
