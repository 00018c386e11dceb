"""What was gained: told as it comes, and kept with the search for who looks back."""

from __future__ import annotations

import time

from relaunch.session.past import outcome_json
from relaunch.session.shrinking.told import Gained, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.journal.searches import Search
    from relaunch.outcome import Outcome
    from relaunch.search.shrink.model import Attempt, Model
    from relaunch.session.shrinking.told import Event

    Parts = Mapping[str, Model]

TICK_S = 0.1
"""How it stands is told so often."""


def bytes_of(parts: Parts) -> int:
    """How large all parts are together."""
    return sum(model.bytes for model in parts.values())


class Gains:
    """Tells of the accepted steps of one search."""

    def __init__(self, original: Parts, book: Search, tell: Callable[[Event], object]) -> None:
        """Nothing is gained yet."""
        self._of = bytes_of(original)
        self._is_one = len(original) == 1
        self._book = book
        self._tell = tell
        self._steps = self._attempts = 0
        self._gained_at = self._told_at = time.monotonic()
        self.history: list[tuple[int, int]] = [(0, self._of)]
        """Attempts and bytes, after each of them."""
        self._outcomes: dict[bytes, Outcome] = {}
        """Of attempts that fail the same way, until they are taken."""

    def fails_so(self, attempt: Attempt, outcome: Outcome) -> None:
        """Remember how an attempt failed: it may be taken."""
        self._outcomes[attempt.key] = outcome

    def tell_new(self, steps: Sequence[Attempt], attempts: int, seconds: float) -> None:
        """Tell of those that were not told yet."""
        self._attempts = attempts
        if len(steps) == self._steps:
            return
        self._gained_at = time.monotonic()
        for step in steps[self._steps :]:
            size = bytes_of(step.parts)
            self.history.append((attempts, size))
            self._note(step, size, attempts)
            self._tell(
                Gained(
                    bytes=size,
                    of=self._of,
                    attempts=attempts,
                    seconds=seconds,
                    what=step.what,
                    part=step.changed,
                )
            )
        self._steps = len(steps)

    def _note(self, step: Attempt, size: int, attempts: int) -> None:
        if step.key not in self._outcomes:
            return
        outcome = self._outcomes.pop(step.key)
        self._book.note(
            {
                "bytes": size,
                "what": step.what if self._is_one else f"{step.changed}: {step.what}",
                "attempts": attempts,
                "outcome": outcome_json(outcome),
            }
        )

    def begin_at(self, steps: int) -> None:
        """Take so many for told: they are gone the known way."""
        self._steps = steps

    def back_to(self, steps: int, best: Parts) -> None:
        """So many are left: the rest was taken back."""
        self._steps = min(self._steps, steps)
        self.history.append((self._attempts, bytes_of(best)))

    def tell_state(self, best: Parts, attempts: int, per_s: float, trying: str) -> None:
        """Tell how it stands, if that was a moment ago."""
        now = time.monotonic()
        if now - self._told_at < TICK_S:
            return
        self._told_at = now
        self._tell(
            State(
                bytes=bytes_of(best),
                of=self._of,
                attempts=attempts,
                per_s=per_s,
                trying=trying,
                idle_s=now - self._gained_at,
            )
        )
