"""Something of ours beside the program: it changes the program's world, or watches it run."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any


class Companion:
    """One of those around a program; each method is a moment of its life, in this order.

    All but `enter` and `after_our_death` are called in our own process. What is prepared is always
    ended, also when the program could not be started.
    """

    def prepare(self) -> Mapping[str, str]:
        """Make ready before anything was started; returns what the program's environment gets."""
        return {}

    def helpers(self) -> Collection[int]:
        """Name our own processes, which run beside the program and are not of its tree."""
        return ()

    def enter(self) -> None:
        """Change the new process, before it becomes the program; an OSError stops the launch."""

    def launched(self, pid: int) -> None:
        """Hear which process the program is; it may not have become the program yet."""

    def output_came(self, when: float) -> None:
        """Hear that the program wrote something, on the monotonic clock."""

    def voice(self) -> int:
        """Name the file that can be read when it has something to tell meanwhile; -1: none."""
        return -1

    def speak(self) -> bool:
        """Read that file and tell it, on a terminal that is not raw; False: no more will come."""
        return False

    def holds(self) -> bool:
        """Tell whether it stopped the program itself: then we do not stop with it."""
        return False

    def to_end(self) -> None:
        """Hear that the program is to end now: the person interrupted it, or its time is up."""

    def ended(self) -> None:
        """Put everything back: the program and all its processes are gone."""

    def after_our_death(self) -> None:
        """Put back what nobody else would, in the guard, when we were killed."""

    def used(self) -> Mapping[str, Any]:
        """Say what the program used, as `Outcome.usage` has it; nothing when nobody looked."""
        return {}

    def reached(self) -> Mapping[str, Any]:
        """Say which limit was reached, as `Outcome.reached` has it; nothing when none was."""
        return {}

    def lost(self) -> str:
        """Say why the program's end tells nothing of it; nothing when it does."""
        return ""

    def last_at(self, pid: int) -> str:
        """Say where a process was shortly before somebody else ended it; nothing if unknown."""
        return ""

    def explain(self, failure: str) -> str:
        """Say what our part in a failure of this title was; nothing when we had none."""
        return ""
