"""Searches of rl in one repository, of which no commit is run: a table says what each shows.

It is run by the Python that has rl, and reads from standard input the commits and for each search
the culprit and what all commits show; it writes the runs of each, and whether that was right.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.session.bisect.bisection import Bisection
from relaunch.session.bisect.crew import Probe
from relaunch.session.bisect.told import Request
from relaunch.session.project import open_project

SHOWN = {
    "o": Outcome(exit_code=0),
    **{
        letter: Outcome(
            exit_code=1, signature=Signature(kind="exception", title=title, key=(title,))
        )
        for letter, title in (("n", "ValueError: broken"), ("x", "ImportError: missing"))
    },
}


class Answers:
    """Runs nothing: says at once what a commit shows, one at a time."""

    def __init__(self, shown: dict[str, str]) -> None:
        """Take a letter for each commit."""
        self._shown = shown
        self.running: list[str] = []

    @property
    def free(self) -> int:
        """How many may be started."""
        return 1 - len(self.running)

    def start(self, candidate: str) -> None:
        """Take one."""
        self.running.append(candidate)

    start_forked = start

    def wait(self, seconds: float | None, also: Sequence[object] = ()) -> list[Probe]:
        """Say what it shows."""
        candidate = self.running.pop()
        outcome = SHOWN[self._shown[candidate]]
        return [Probe(candidate=candidate, outcome=outcome, seconds=0.0, folder="nowhere")]

    def stop_forking(self) -> None:
        """Nothing is forked."""

    def cancel(self, candidate: str) -> None:
        """Forget one."""
        self.running.remove(candidate)

    def close(self) -> None:
        """Forget all."""
        self.running.clear()


def searched(ids: Sequence[str], culprit: str, shown: str) -> tuple[int, bool]:
    """Return the runs of a search, and whether it found the culprit."""
    answers = Answers(dict(zip(ids, shown, strict=True)))
    request = Request(
        recipe=Recipe(argv=("true",), cwd="."),
        good=ids[0],
        bad=ids[-1],
        jobs=1,
        prior=False,
        repair=False,
    )
    found = Bisection(
        open_project(), request, tell=lambda _: None, launcher=lambda: answers
    ).run()  # fmt: skip
    return found.search_runs, found.is_found and found.suspects[0][0].id == culprit


if __name__ == "__main__":
    commits, worlds = json.load(sys.stdin)
    json.dump([searched(commits, commits[place], shown) for place, shown in worlds], sys.stdout)
