"""Where a failure is no longer sure: a little smaller it comes by chance, as at a stack's end."""

from __future__ import annotations

from relaunch.session.shrinking.gains import bytes_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.model import Attempt

_MARGIN = 1.02
"""So much larger a result may be for not being smaller than what failed only now and then."""


class Edge:
    """What did not fail though it had before, and how to keep clear of it."""

    def __init__(self) -> None:
        """Nothing was doubted yet."""
        self._bytes = 0
        """Of the largest that was."""

    def doubt(self, attempt: Attempt) -> None:
        """It failed, and then it did not."""
        self._bytes = max(self._bytes, bytes_of(attempt.parts))

    def clear_of(self, steps: Sequence[Attempt]) -> int:
        """Return how many of the steps to keep: the last may lie below what was doubted."""
        if not steps:
            return 0
        most = _MARGIN * bytes_of(steps[-1].parts)
        for count in range(len(steps), 0, -1):
            size = bytes_of(steps[count - 1].parts)
            if size > most:
                break
            if size > self._bytes:
                return count
        return len(steps)
