"""When to look again: soon near the limit or while it grows, seldom otherwise. Pure."""

from __future__ import annotations

LONGEST_S, SHORTEST_S = 0.05, 0.001
FASTEST = 4 << 30
"""Bytes a second that a program may begin to take from one moment to the next."""
_STEADY = 1 << 30
"""The same of one that took nothing more for a while: it may stay so for hours."""
_STEADY_AFTER_S = 0.5
_OVER = 0.005
"""By so much of the limit it may be passed."""
_FADES_S = 0.2
"""A growth that was seen counts half after so long."""
_LAST_S, _LAST_AT_MOST_S = 0.002, 0.02
"""Who reaches it in so little time is looked at without a pause, but not for long: a moment later
it would be at another line."""


class Pace:
    """Says how long may be waited, from what was seen so far."""

    def __init__(self, limit: int) -> None:
        """Nothing was seen yet."""
        self.limit = limit
        self._used, self._when = 0, 0.0
        self._rate = 0.0
        self._grew = 0.0
        self._last_since = 0.0

    @property
    def rate(self) -> float:
        """Return by how many bytes a second it grows, the latest counting most."""
        return self._rate

    def wait_s(self, used: int, now: float) -> float:
        """Return how long to wait after `used` bytes were seen `now`."""
        self._note(used, now)
        if used + self._rate * _LAST_S < self.limit:
            self._last_since = 0.0
        elif now - (self._last_since or now) < _LAST_AT_MOST_S:
            self._last_since = self._last_since or now
            return 0.0
        is_steady = now - self._grew > _STEADY_AFTER_S
        fastest = max(_STEADY if is_steady else FASTEST, 2 * self._rate)
        room = max(0, self.limit - used) + _OVER * self.limit
        return min(LONGEST_S, max(SHORTEST_S, room / fastest))

    def _note(self, used: int, now: float) -> None:
        """Learn by how much it grows; a moment that is too short tells nothing."""
        passed = now - self._when
        if self._when and passed < SHORTEST_S / 2:
            return
        if self._when:
            grown = (used - self._used) / passed
            self._rate = max(grown, self._rate * 0.5 ** (passed / _FADES_S), 0.0)
        if used > self._used * 1.001:
            self._grew = now
        self._used, self._when = used, now
