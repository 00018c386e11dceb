"""Ends that do not always do the same: run until they differ, in whichever way is said of them.

Git and the search are real; what a commit shows is drawn at the rate of its side.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.histories import History, own_settings

from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.session.bisect.bisection import Bisection
from relaunch.session.bisect.crew import Probe
from relaunch.session.bisect.hunt import NotReproduced
from relaunch.session.bisect.told import Found, Request
from relaunch.session.project import open_project

__all__ = ["own_settings"]
FAILED = Outcome(
    exit_code=1,
    signature=Signature(kind="exception", title="ValueError: broken", key=("ValueError",)),
)
PASSED = Outcome(exit_code=0)
SIZE, CULPRIT, LEAST = 12, 7, 15
SAID = {
    "never_fails_before": (0.0, 0.3),
    "always_fails_after": (0.3, 1.0),
    "always_fails_before": (1.0, 0.7),
    "never_fails_after": (0.3, 0.0),
}
"""What is said of one side, and how often it fails before the change and after it."""


class Dice:
    """Runs nothing: what a commit shows is drawn anew each time."""

    free = 1

    def __init__(self, rates: dict[str, float], seed: int) -> None:
        self.rng = random.Random(seed)
        self.rates = rates
        self.running: list[str] = []
        self.counts = dict.fromkeys(rates, 0)

    def start(self, candidate: str) -> None:
        self.running.append(candidate)

    def wait(self, seconds: float | None, also: Sequence[object] = ()) -> list[Probe]:
        candidate = self.running.pop()
        self.counts[candidate] += 1
        outcome = FAILED if self.rng.random() < self.rates[candidate] else PASSED
        return [Probe(candidate=candidate, outcome=outcome, seconds=0.0, folder="nowhere")]

    start_forked = start

    def stop_forking(self) -> None:
        pass

    def cancel(self, candidate: str) -> None:
        self.running.remove(candidate)

    def close(self) -> None:
        self.running.clear()


class Line:
    """A line of commits that fail at one rate before the change and at another after it."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.ids = History(top).graph([[at - 1][:at] for at in range(SIZE)])

    def search(self, before: float, after: float, seed: int, **said: Any) -> Found:
        rates = {one: after if at >= CULPRIT else before for at, one in enumerate(self.ids)}
        self.dice = Dice(rates, seed)
        request = Request(
            recipe=Recipe(argv=("true",), cwd=str(self.top)),
            good=self.ids[0], bad=self.ids[-1], prior=False, repair=False, **said,
        )  # fmt: skip
        bisection = Bisection(
            open_project(), request, tell=lambda _: None, launcher=lambda: self.dice
        )  # fmt: skip
        return bisection.run()


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Line:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    top = tmp_path / "line"
    top.mkdir()
    monkeypatch.chdir(top)
    return Line(top)


@pytest.mark.parametrize("said", SAID)
def test_what_is_said_of_one_side_lets_the_end_of_the_other_one_waver(
    line: Line, said: str
) -> None:
    right = 0
    for seed in range(16):
        found = line.search(*SAID[said], seed, **{said: True})
        assert found.hunt.is_reversed == (said in ("always_fails_before", "never_fails_after"))
        assert not found.answer.is_steady
        right += found.is_found and found.suspects[0][0].id == line.ids[CULPRIT]
    assert right >= LEAST


@pytest.mark.parametrize("rates", [(0.0, 0.3), (0.2, 0.9), (0.3, 0.0), (0.9, 0.2)])
def test_ends_that_are_run_often_tell_the_direction_by_which_fails_more(
    line: Line, rates: tuple[float, float]
) -> None:
    for seed in range(8):
        found = line.search(*rates, seed, ends=10)
        assert found.hunt.is_reversed == (rates[0] > rates[1])


@pytest.mark.parametrize(("said", "most"), [("never_fails_before", 2), ("never_fails_after", 31)])
def test_an_end_is_run_again_only_where_that_can_tell_more(
    line: Line, said: str, most: int
) -> None:
    """What never fails before fails there: that the other end fails too is known already."""
    rate = 1.0 if said == "never_fails_before" else 0.0
    with pytest.raises(NotReproduced):
        line.search(rate, rate, 0, **{said: True})
    assert sum(line.dice.counts.values()) == most
