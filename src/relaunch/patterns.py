"""Looks for regular expressions of the user's: for so long and no longer, and Ctrl-C ends it.

`re` has no limit: `(a+)+b` takes twice as long for each `a` more, years for sixty of them. It does
let handlers of signals run, and one that raises ends it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from re import Match, Pattern
    from typing import Any
else:
    import _signal

LIMIT_S = 1.0
"""Of CPU time, for one pattern and one text."""
_STOPS = (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP)
_BACKTRACKS = frozenset("*+?{|")


class NotFinished(Exception):
    """Whether the pattern is in the text is unknown; the message says why."""


def compiled(text: str, *, multiline: bool = False) -> Pattern[str]:
    """Compile what a user wrote; ValueError with the fault of it in a few words."""
    import re
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a set in a set, and the like: it is not our code
            return re.compile(text, re.MULTILINE if multiline else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(str(error)) from None


class Patience:
    """Looks for patterns, for one trial or one question."""

    def __init__(self, *, holds_stops: bool = False) -> None:
        """With `holds_stops`, a signal that would end us ends the search alone, and is kept."""
        self._limit_s = LIMIT_S
        self._held = _STOPS if holds_stops else ()
        self._is_looking = False
        self.stopped_by = 0
        """The signal that was to end us while we looked; who has written down the rest obeys it."""

    def first(self, pattern: Pattern[str], text: str) -> Match[str] | None:
        """Return the first match; NotFinished if that takes too long."""
        found: Match[str] | None = self._look(pattern, text, lambda: pattern.search(text))
        return found

    def all(self, pattern: Pattern[str], text: str) -> list[Match[str]]:
        """Return all matches; NotFinished if that takes too long."""
        found: list[Match[str]] = self._look(pattern, text, lambda: [*pattern.finditer(text)])
        return found

    def _look(self, pattern: Pattern[str], text: str, look: Callable[[], Any]) -> Any:
        if self.stopped_by:
            raise NotFinished("rl was stopped while it looked for patterns")
        if _BACKTRACKS.isdisjoint(pattern.pattern):
            return look()  # it ends by itself
        before = {
            one: _signal.signal(one, self._stop)
            for one in self._held
            if _signal.getsignal(one) in (_signal.SIG_DFL, _signal.default_int_handler)
        }
        before[_signal.SIGVTALRM] = _signal.signal(_signal.SIGVTALRM, self._stop)
        timer = _signal.setitimer(_signal.ITIMER_VIRTUAL, self._limit_s)
        try:
            self._is_looking = True
            try:
                if self.stopped_by:  # just before it could be raised
                    raise _Stopped
                return look()
            finally:
                self._is_looking = False
        except _Stopped:
            if self.stopped_by:
                raise NotFinished("rl was stopped while it looked for patterns") from None
            what = f"`{pattern.pattern}` was not through {len(text):,} characters"
            raise NotFinished(f"{what} after {self._limit_s:g} s") from None
        finally:
            _signal.setitimer(_signal.ITIMER_VIRTUAL, *timer)
            for signal, handler in before.items():
                _signal.signal(signal, _signal.SIG_DFL if handler is None else handler)

    def _stop(self, signal: int, _frame: object) -> None:
        if signal != _signal.SIGVTALRM:
            self.stopped_by = signal
        if self._is_looking:
            raise _Stopped


class _Stopped(BaseException):
    """Ends a match from within the handler of a signal."""
