"""One sitting at a search: how many runs it may have, how long it may take, and why it ended."""

from __future__ import annotations

import time


class Stopped(Exception):
    """A search ends before it is done: interrupted, or out of runs or time."""


class Sitting:
    """Begins when it is made; without limits it goes on as long as there is something to do."""

    def __init__(self, *, most_runs: int | None, most_s: float | None) -> None:
        """Allow so many runs, and so long."""
        self.most_runs = most_runs
        self.most_s = most_s
        self._began = time.monotonic()

    @property
    def spent_s(self) -> float:
        """How long it has taken until now."""
        return time.monotonic() - self._began

    @property
    def left_s(self) -> float | None:
        """How long it may still take; None: as long as it likes."""
        return None if self.most_s is None else max(0.0, self.most_s - self.spent_s)

    def may_run(self, runs: int) -> bool:
        """Tell whether one more may be started after so many."""
        return self.most_runs is None or runs < self.most_runs

    def check_runs(self, runs: int) -> None:
        """Stop it when there were as many runs as there may be."""
        if not self.may_run(runs):
            raise Stopped(f"the budget of {self.most_runs} runs is used up")

    def check_time(self) -> None:
        """Stop it when the time is over."""
        if self.left_s == 0.0:
            raise Stopped("the time is used up")
