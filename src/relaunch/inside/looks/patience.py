"""Asks a stranger for its `repr`, but not for ever: its time is bounded where Python allows it.

On the main thread a timer that counts CPU time ends a `__repr__` that does not. It is used only
where the program itself does nothing with that timer, and everything is put back at once.
"""

from __future__ import annotations

from _signal import (
    ITIMER_VIRTUAL,
    SIG_DFL,
    SIG_IGN,
    SIGVTALRM,
    getitimer,
    getsignal,
    setitimer,
    signal,
)
from _thread import get_ident
from time import perf_counter

PATIENCE_S = 0.25
"""CPU time that a `__repr__` may take."""
SLOW_S = 0.02
"""A type that took longer than this once is not asked again."""
MANY = 256

_slow: dict[int, type] = {}
_asked: set[tuple[int, int]] = set()
_armed: list[bool] = []


class TooLong(BaseException):
    """A `__repr__` took more time than there is."""


def is_slow(kind: type) -> bool:
    """Tell whether a value of this type took too long before."""
    return id(kind) in _slow


def ask(value: object) -> str | None:
    """Return `repr(value)`; None if it fails, takes too long, or is being asked already."""
    key = (get_ident(), id(value))
    if key in _asked:
        return None
    _asked.add(key)
    began = perf_counter()
    try:
        return _timed(value)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
    finally:
        _asked.discard(key)
        if perf_counter() - began > SLOW_S:
            _remember(type(value))


def _remember(kind: type) -> None:
    if len(_slow) >= MANY:
        _slow.clear()
    _slow[id(kind)] = kind  # held, so that its id stays its own


def _timed(value: object) -> str:
    if _armed or not _ours():
        return repr(value)
    _armed.append(True)
    try:
        setitimer(ITIMER_VIRTUAL, PATIENCE_S)
        return repr(value)
    finally:
        try:
            _armed.clear()  # from here on the handler raises nothing
        finally:
            _put_back()


def _put_back() -> None:
    _armed.clear()  # it may have come at the very end, and only once
    setitimer(ITIMER_VIRTUAL, 0)
    signal(SIGVTALRM, SIG_IGN)  # forgets one that is still on its way: the default would kill
    signal(SIGVTALRM, SIG_DFL)


def _ours() -> bool:
    """Take the timer, unless the program uses it or this is not the main thread."""
    if getsignal(SIGVTALRM) != SIG_DFL or getitimer(ITIMER_VIRTUAL)[0]:
        return False
    try:
        signal(SIGVTALRM, _enough)
    except ValueError:
        return False
    return True


def _enough(*_: object) -> None:
    if _armed:
        raise TooLong
