"""Clocks that count what a process has used: in a resumed one they go on where the snapshot was.

A forked process counts from zero. So stand-ins pass for the functions that read these clocks, from
the beginning of the program on: they add what had been used before the snapshot, and leave out what
resuming took. The times of day and the clocks that never stop need nothing.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import get_ident
from ctypes import CDLL, byref, c_long

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any

    Counts = Sequence[float]
    _Which = Callable[[Sequence[Any]], str]
    _Add = Callable[[Any, Counts], Any]

MODULE = "resource"
"""Has such a clock, and is cared for when it is imported."""
_PROCESS, _THREAD, _TIMES = "process", "thread", "times"
_CLOCKS = {time.CLOCK_PROCESS_CPUTIME_ID: _PROCESS, time.CLOCK_THREAD_CPUTIME_ID: _THREAD}
_USAGES = {0: "usage", 1: "usage of the thread", -1: "usage of children"}
"""By the numbers that `getrusage` takes."""
_OF_THREAD = (_THREAD, _USAGES[1])
_PEAK = 2
"""The field of `getrusage` that is no sum: the most memory that was ever used."""

_libc = CDLL(None)
_clock_ns, _times = time.clock_gettime_ns, os.times
_held: dict[str, Counts] = {}
_more: dict[str, Counts] = {}
"""What is to be added in this process; empty until it is resumed."""
_thread = 0
"""The one thread that a resumed process goes on with."""


def stand_in() -> None:
    """Put the stand-ins in place; `care_for` does it for `resource`."""
    _replace(time, "process_time", lambda _: _PROCESS, _seconds)
    _replace(time, "thread_time", lambda _: _THREAD, _seconds)
    _replace(time, "process_time_ns", lambda _: _PROCESS, _whole)
    _replace(time, "thread_time_ns", lambda _: _THREAD, _whole)
    _replace(time, "clock_gettime", lambda args: _CLOCKS.get(args[0], ""), _seconds)
    _replace(time, "clock_gettime_ns", lambda args: _CLOCKS.get(args[0], ""), _whole)
    _replace(os, "times", lambda _: _TIMES, _fields)
    if MODULE in sys.modules:
        care_for(sys.modules[MODULE])
    os.register_at_fork(after_in_child=_more.clear)


def care_for(resource: ModuleType) -> None:
    """Put the stand-in into a module that is imported now."""
    _replace(resource, "getrusage", lambda args: _USAGES.get(args[0], ""), _usage)


def hold() -> None:
    """Remember what has been used, right before a snapshot is taken."""
    _held.clear()
    _held.update(_used())
    for name, more in _more.items():
        _held[name] = _sum(name, _held[name], more)


def go_on() -> None:
    """In a resumed process, let the clocks say what was held, and count on from there."""
    global _thread
    _thread = get_ident()
    used = _used()
    for name, held in _held.items():
        _more[name] = _sum(name, held, [-one for one in used[name]])


def _used() -> Mapping[str, Counts]:
    """Read all the clocks of this process."""
    clocks = {name: [_clock_ns(number)] for number, name in _CLOCKS.items()}
    usages = {name: _usage_now(who) for who, name in _USAGES.items()}
    return {**clocks, **usages, _TIMES: [*_times()[:4], 0.0]}


def _usage_now(who: int) -> list[float]:
    """Ask as `getrusage` does, without the module: the program may never import it."""
    found = (c_long * 18)()
    _libc.getrusage(who, byref(found))
    user, user_us, system, system_us, *rest = found
    return [user + user_us / 1e6, system + system_us / 1e6, *rest]


def _sum(name: str, one: Counts, other: Counts) -> Counts:
    total = [round(a + b, 9) for a, b in zip(one, other, strict=True)]
    if name in _USAGES.values():
        total[_PEAK] = max(one[_PEAK], other[_PEAK])
    return total


# --- the stand-ins


def _seconds(value: float, more: Counts) -> float:
    return round(value + more[0] / 1e9, 9)


def _whole(value: int, more: Counts) -> int:
    return value + int(more[0])


def _fields(value: Any, more: Counts) -> Any:
    return type(value)(round(one + other, 9) for one, other in zip(value, more, strict=True))


def _usage(value: Any, more: Counts) -> Any:
    return type(value)(_sum(_USAGES[0], value, more))


class _Clock:
    """Passes for a function of C: it never becomes a method, and is pickled by its name."""

    def __init__(self, module: ModuleType, name: str, which: _Which, add: _Add) -> None:
        self._real, self._which, self._add = getattr(module, name), which, add
        self.__name__ = self.__qualname__ = name
        self.__doc__ = self._real.__doc__
        self.__module__ = module.__name__
        self.__self__ = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        value = self._real(*args, **kwargs)
        more = _added(self._which(args)) if _more else None
        return self._add(value, more) if more else value

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce__(self) -> str:
        return self.__name__


def _replace(module: ModuleType, name: str, which: _Which, add: _Add) -> None:
    setattr(module, name, _Clock(module, name, which, add))


def _added(name: str) -> Counts | None:
    if name in _OF_THREAD and get_ident() != _thread:
        return None  # it began after the snapshot
    return _more.get(name)
