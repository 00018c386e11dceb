"""Searches in random histories with merges: right, or honest about what it may be; in few runs.

Git, the line, the merges and the search are real; what a commit shows is read from a table.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import ceil, log2
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.histories import History, own_settings

from relaunch.outcome import Outcome, Signature
from relaunch.recipe import Recipe
from relaunch.session.bisect.bisection import Bisection
from relaunch.session.bisect.crew import Probe
from relaunch.session.bisect.told import Found, Request
from relaunch.session.project import open_project

__all__ = ["own_settings"]
HUNTED = Signature(kind="exception", title="ValueError: broken", key=("ValueError",))
SEEDS = range(40)


class Table:
    """Runs nothing: says at once what a commit shows."""

    def __init__(self, shown: dict[str, Outcome], jobs: int) -> None:
        self.shown = shown
        self.jobs = jobs
        self.running: list[str] = []
        self.count = 0

    @property
    def free(self) -> int:
        return self.jobs - len(self.running)

    def start(self, candidate: str) -> None:
        self.running.append(candidate)

    def wait(self, seconds: float | None, also: Sequence[object] = ()) -> list[Probe]:
        candidate = self.running.pop(self.count % len(self.running))
        self.count += 1
        outcome = self.shown[candidate]
        return [Probe(candidate=candidate, outcome=outcome, seconds=0.0, folder="nowhere")]

    start_forked = start

    def stop_forking(self) -> None:
        pass

    def cancel(self, candidate: str) -> None:
        self.running.remove(candidate)

    def close(self) -> None:
        self.running.clear()


class Slow(Table):
    """Says it one by one, as processes do that began together: each took a while."""

    alone = 0
    """How often one was started beside another that had begun before."""
    is_waited_for = False

    def start(self, candidate: str) -> None:
        self.alone += self.is_waited_for and bool(self.running)
        super().start(candidate)

    start_forked = start

    def wait(self, seconds: float | None, also: Sequence[object] = ()) -> list[Probe]:
        probes = [one.but(seconds=60.0) for one in super().wait(seconds, also)]
        self.is_waited_for = bool(self.running)
        return probes

    def cancel(self, candidate: str) -> None:
        super().cancel(candidate)
        self.is_waited_for = bool(self.running)


class Wavering(Table):
    """What fails passes when it is run once more, and so on by turns."""

    def wait(self, seconds: float | None, also: Sequence[object] = ()) -> list[Probe]:
        probes = super().wait(seconds, also)
        for one in probes:
            if not self.shown[one.candidate].passed:
                self.again = {**self.again, one.candidate: self.again.get(one.candidate, 0) + 1}
        passed = Outcome(exit_code=0)
        return [
            one.but(outcome=passed) if self.again.get(one.candidate, 1) % 2 == 0 else one
            for one in probes
        ]

    again: dict[str, int] = {}


class Random:
    """A history and the truth about it: one culprit, and all that has it fails."""

    def __init__(self, top: Path, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.size = rng.randint(4, 120)
        self.parents: list[list[int]] = [[]]
        for at in range(1, self.size):
            self.parents.append(self._above(at))
        self.history = History(top)
        self.ids = self.history.graph(self.parents)
        self.has = [{0}]
        for at in range(1, self.size):
            self.has.append({at}.union(*(self.has[up] for up in self.parents[at])))
        self.culprit = rng.choice(sorted(self.has[-1] - {0}))

    def _above(self, at: int) -> list[int]:
        """Choose parents: mostly one, and merges of whatever there is, criss-cross included."""
        rng = self.rng
        near = [*range(max(0, at - 9), at)]
        first = at - 1 if rng.random() < 0.6 else rng.choice(near)
        count = 1 if rng.random() < 0.75 else rng.choice((2, 2, 3))
        others = [one for one in near if one != first]
        return [first, *rng.sample(others, min(count - 1, len(others)))]

    def is_new(self, at: int) -> bool:
        return self.culprit in self.has[at]

    def shown(self, broken: set[int], *, is_reversed: bool) -> dict[str, Outcome]:
        table = {}
        for at, commit in enumerate(self.ids):
            if at in broken:
                kind = f"other{at % 2}"
                other = Signature(kind="exception", title=kind, key=(kind,))
                table[commit] = Outcome(exit_code=1, signature=other)
            elif self.is_new(at) != is_reversed:
                table[commit] = Outcome(exit_code=1, signature=HUNTED)
            else:
                table[commit] = Outcome(exit_code=0)
        return table

    def search(
        self,
        shown: dict[str, Outcome],
        jobs: int,
        kind: type[Table] = Table,
        most_runs: int | None = None,
    ) -> tuple[Found, int]:
        self.table = table = kind(shown, jobs)
        recipe = Recipe(argv=("true",), cwd=str(self.history.top))
        request = Request(
            recipe=recipe, good=self.ids[0], bad=self.ids[-1], jobs=jobs, prior=False,
            repair=False, most_runs=most_runs,
        )  # fmt: skip
        bisection = Bisection(
            open_project(), request, tell=lambda _: None, launcher=lambda: table
        )  # fmt: skip
        return bisection.run(), table.count


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    top = tmp_path / "graph"
    top.mkdir()
    monkeypatch.chdir(top)
    return top


@pytest.mark.parametrize("seed", SEEDS)
def test_the_culprit_of_any_history_is_found(here: Path, seed: int) -> None:
    world = Random(here, seed)
    is_reversed = seed % 4 == 3
    found, runs = world.search(world.shown(set(), is_reversed=is_reversed), jobs=1 + seed % 3)
    assert found.is_found
    assert found.suspects[0][0].id == world.ids[world.culprit]
    # Each merge that is entered costs a line of its own, and a look at each of its sides.
    depth = 1 + len(found.merged_by)
    assert runs <= depth * (2 * ceil(log2(world.size + 1)) + 8)


def test_a_merge_costs_no_more_runs_than_a_line_of_as_many_commits(here: Path) -> None:
    """Five runs halve 32; a merge is one more: its first parent, of which only children were seen.

    The line first and then a side of it rounds up twice.
    """
    world = Random(here, 0)
    world.size = 33
    world.parents = [[at - 4, at - 1] if at % 6 == 5 else [at - 1][:at] for at in range(33)]
    world.ids = world.history.graph(world.parents)
    world.has = [{0}]
    for at in range(1, 33):
        world.has.append({at}.union(*(world.has[up] for up in world.parents[at])))
    counts = []
    for world.culprit in range(1, 33):
        found, _ = world.search(world.shown(set(), is_reversed=False), jobs=1)
        assert found.is_found
        assert found.suspects[0][0].id == world.ids[world.culprit]
        is_aside = world.culprit % 6 in (2, 3, 4) and world.culprit < 30
        merges = [world.ids[world.culprit // 6 * 6 + 5]] if is_aside else []
        assert [one.id for one in found.merged_by] == merges
        counts.append(found.search_runs)
    assert max(counts) <= 6
    assert sum(counts) <= 5 * 32 + 5


def test_an_unsteady_program_is_searched_on_the_line_after_all(here: Path) -> None:
    world = Random(here, 5)
    found, _ = world.search(world.shown(set(), is_reversed=False), 1, Wavering)
    assert not found.answer.is_steady
    assert world.ids[world.culprit] in {one.id for one, _ in found.suspects} or _brought_in(
        world, found
    )


def test_probes_that_began_together_are_heard_together_before_others_begin(here: Path) -> None:
    world = Random(here, 5)
    found, _ = world.search(world.shown(set(), is_reversed=False), 2, Slow)
    assert found.is_found
    assert world.table.count > 4
    assert isinstance(world.table, Slow)
    assert world.table.alone == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_commits_that_fail_otherwise_are_never_blamed(here: Path, seed: int) -> None:
    world = Random(here, seed)
    rng = world.rng
    ends = {0, world.size - 1}
    if seed % 2:
        broken = {at for at in range(world.size) if rng.random() < 0.3} - ends
    else:
        first = rng.randrange(world.size)
        broken = {*range(first, first + world.size // 4)} - ends
    found, _ = world.search(world.shown(broken, is_reversed=False), jobs=1 + seed % 2)
    suspects = {commit.id for commit, _ in found.suspects}
    truth = world.ids[world.culprit]
    if found.is_found:
        assert suspects == {truth}
    else:
        assert truth in suspects or _brought_in(world, found)


def _brought_in(world: Random, found: Found) -> bool:
    """Tell whether the culprit came in with one of the suspects, which could not be looked into."""
    places = [world.ids.index(commit.id) for commit, _ in found.suspects]
    return any(
        world.culprit in world.has[at]
        and not any(world.culprit in world.has[up] for up in world.parents[at][:1])
        for at in places
    )


class Straight(Random):
    """The same without merges."""

    def _above(self, at: int) -> list[int]:
        return [at - 1]


@takes_turns
@pytest.mark.parametrize("seed", range(60))
def test_breakage_after_it_was_mended_is_never_taken_for_what_was_mended(
    here: Path, seed: int
) -> None:
    """What passes first mended it; commits that fail otherwise lie scattered on both sides."""
    world = Straight(here, seed)
    rng = world.rng
    rate = rng.choice((0.1, 0.3, 0.5))
    broken = {at for at in range(world.size) if rng.random() < rate} - {0, world.size - 1}
    truth = next(at for at in range(world.culprit, world.size) if at not in broken)
    found, runs = world.search(world.shown(broken, is_reversed=True), jobs=1 + seed % 2)
    suspects = {commit.id for commit, _ in found.suspects}
    assert world.ids[truth] in suspects
    assert not found.is_found or len(suspects) == 1
    assert runs <= 8 * ceil(log2(world.size + 1)) + 16
    for budget in range(2, runs, 5):
        part, _ = world.search(world.shown(broken, is_reversed=True), 1, most_runs=budget)
        named = {commit.id for commit, _ in part.suspects}
        assert world.ids[truth] in named, budget
