"""Any history with merges: the commit that made the difference is found, or honestly a set."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.histories import History, own_settings

from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.session.bisect.bisection import Bisection
from relaunch.session.bisect.crew import Probe
from relaunch.session.bisect.told import Found, Request
from relaunch.session.project import open_project

__all__ = ["own_settings"]
PASSED = Outcome(exit_code=0)
FAILED = Outcome(exit_code=1, signature=Signature(kind="exit", title="broken", key=("exit 1",)))
OTHERWISE = Outcome(exit_code=3, signature=Signature(kind="exit", title="else", key=("exit 3",)))


class Table:
    """A launcher that knows what each commit does, and runs one after another."""

    def __init__(self, outcomes: dict[str, Outcome]) -> None:
        self.outcomes = outcomes
        self.running: list[str] = []
        self.asked: list[str] = []

    @property
    def free(self) -> int:
        return 1 - len(self.running)

    def start(self, candidate: str) -> None:
        self.running.append(candidate)
        self.asked.append(candidate)

    def wait(self, seconds: float | None, also: object = ()) -> list[Probe]:
        (candidate,) = self.running
        self.running.clear()
        outcome = self.outcomes[candidate]
        return [Probe(candidate=candidate, outcome=outcome, seconds=0.1, folder=os.getcwd())]

    def cancel(self, candidate: str) -> None:
        self.running.remove(candidate)

    def close(self) -> None:
        pass


class Planned(Bisection):
    """A bisection whose probes are looked up."""

    table: Table

    def _crew(self) -> Table:  # type: ignore[override]
        return self.table


def ancestors(parents: list[list[int]]) -> list[set[int]]:
    found: list[set[int]] = []
    for number, those in enumerate(parents):
        found.append({number}.union(*(found[one] for one in those)))
    return found


def shapes(rng: random.Random, size: int) -> list[list[int]]:
    """Make a history: each commit follows some earlier one, and now and then merges others."""
    parents: list[list[int]] = [[]]
    for number in range(1, size):
        first = max(0, number - 1 - int(rng.expovariate(1.0)))
        others = [one for one in range(number) if one != first]
        merged = rng.sample(others, min(len(others), 1)) if rng.random() < 0.35 else []
        parents.append([first, *merged])
    return parents


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 10_000))
def test_in_any_history_the_commit_itself_is_named(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    parents = shapes(rng, rng.randint(3, 24))
    history = History(tmp_path_factory.mktemp("history"))
    ids = history.graph(parents)
    reach = ancestors(parents)
    newest = len(ids) - 1
    inside = sorted(reach[newest] - {0})
    if not inside:
        return
    culprit = rng.choice(inside)
    hidden = {one for one in inside if rng.random() < 0.1} - {newest}
    outcomes = {
        ids[one]: OTHERWISE if one in hidden else FAILED if culprit in reach[one] else PASSED
        for one in range(len(ids))
    }
    found = search(history.top, monkeypatch, ids[0], ids[newest], outcomes)
    named = {commit.id for commit, _ in found.suspects}
    if found.is_found:
        (answer,) = named
        assert outcomes[answer] == FAILED
        above = [outcomes[ids[one]] for one in parents[ids.index(answer)]]
        assert FAILED not in above
        if not hidden:
            assert answer == ids[culprit]


def search(
    top: Path,
    monkeypatch: pytest.MonkeyPatch,
    old: str,
    new: str,
    outcomes: dict[str, Outcome],
) -> Found:
    monkeypatch.chdir(top)
    recipe = Recipe(argv=("true",), cwd=str(top))
    request = Request(recipe=recipe, good=old, bad=new, prior=False, repair=False)
    bisection = Planned(open_project(), request, tell=lambda _: None)
    bisection.table = Table(outcomes)
    found = bisection.run()
    assert len(bisection.table.asked) <= 80
    return found
