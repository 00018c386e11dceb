"""Asks a stranger for its `repr`, but not for ever: its time is bounded where Python allows it.

On the main thread a timer that counts CPU time ends a `__repr__` that does not end by itself. It is
used only where the program does nothing with that timer, and everything is put back at once. A type
that was slow is not asked again, on any thread.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` itself takes long to import
from _thread import get_ident
from time import perf_counter, thread_time

PATIENCE_S = 0.25
"""CPU time that a `__repr__` may take."""
SLOW_CPU_S, SLOW_S = 0.1, 1.0
"""A type that took longer than this once is not asked again."""
_MANY = 256

_slow: dict[int, type] = {}
_asked: set[tuple[int, int]] = set()
_armed: list[float] = []
"""Until which CPU time of its thread a `__repr__` may run."""


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
    began, cpu = perf_counter(), thread_time()
    try:
        return str.__str__(_timed(value))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None
    finally:
        _asked.discard(key)
        if perf_counter() - began > SLOW_S or thread_time() - cpu > SLOW_CPU_S:
            _remember(type(value))


def _remember(kind: type) -> None:
    if len(_slow) >= _MANY:
        _slow.clear()
    _slow[id(kind)] = kind  # held, so that its id stays its own


def _timed(value: object) -> str:
    if _armed or not _take_timer():
        return repr(value)
    _armed.append(thread_time() + PATIENCE_S)
    try:
        _signal.setitimer(_signal.ITIMER_VIRTUAL, PATIENCE_S)
        return repr(value)
    finally:
        try:
            _armed.clear()  # from here on the handler raises nothing
        finally:
            _put_back()


def _take_timer() -> bool:
    """Take the timer, unless the program uses it or this is not the main thread."""
    if _signal.getsignal(_signal.SIGVTALRM) != _signal.SIG_DFL:
        return False
    if _signal.getitimer(_signal.ITIMER_VIRTUAL)[0]:
        return False
    try:
        _signal.signal(_signal.SIGVTALRM, _enough)
    except ValueError:
        return False
    return True


def _put_back() -> None:
    _armed.clear()  # the timer may have come at the very end, and it comes once
    _signal.setitimer(_signal.ITIMER_VIRTUAL, 0)
    # Ignoring it forgets a signal that is still on its way: the default would end the program.
    _signal.signal(_signal.SIGVTALRM, _signal.SIG_IGN)
    _signal.signal(_signal.SIGVTALRM, _signal.SIG_DFL)


def _enough(*_: object) -> None:
    if _armed:
        left = _armed[0] - thread_time()
        if left <= 0.001:
            raise TooLong
        _signal.setitimer(_signal.ITIMER_VIRTUAL, left)  # it was other threads that worked
