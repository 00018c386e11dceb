"""Where no snapshot could be taken, and why: counted in the program, kept by the host."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MOST = 8
"""How many reasons are told; who has more has them all alike."""


class Counted:
    """Those of one run, in the program."""

    def __init__(self, tell: Callable[[dict[str, Any]], object]) -> None:
        """Tell the host by a message."""
        self._tell = tell
        self._last: dict[str, dict[str, Any]] = {}
        self._told: dict[str, int] = {}

    def note(self, why: str, at: str) -> None:
        """Count one more; it is told when there are twice as many as were told before."""
        known = self._last.get(why)
        if known is None and len(self._last) >= _MOST:
            return
        count = known["count"] + 1 if known else 1
        self._last[why] = {"op": "refused", "why": why, "at": at, "count": count}
        if count >= 2 * self._told.get(why, 0):
            self._say(why)

    def rest(self) -> None:
        """Tell what was not told yet."""
        for why, last in self._last.items():
            if last["count"] != self._told.get(why):
                self._say(why)

    def _say(self, why: str) -> None:
        self._told[why] = self._last[why]["count"]
        self._tell(self._last[why])


class Known:
    """Those of the last run, in the host."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}

    def forget(self) -> None:
        """Another run begins."""
        self._known.clear()

    def note(self, message: dict[str, Any], at: str) -> None:
        """Hear of one."""
        why = str(message["why"])
        if why in self._known or len(self._known) < _MOST:
            self._known[why] = {"why": why, "at": at, "count": int(message["count"])}

    def listed(self) -> list[dict[str, Any]]:
        """List reason, last place and how often, the most frequent first."""
        return sorted(self._known.values(), key=lambda one: -int(one["count"]))

    def why_none(self) -> str:
        """Say why there is no snapshot at all; only where `listed` is not empty."""
        most = self.listed()[0]
        return f"no snapshots: {most['why']} (at {most['at']})"
