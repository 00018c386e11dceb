"""The search in a graph: right or honest whatever it meets, in about as many runs as halving."""

from __future__ import annotations

import random
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.search.graph import GraphSearch
from relaunch.search.line import LineSearch, Side


@st.composite
def graphs(draw):
    """Commits with one parent or several near them; the last one has them all."""
    rng = random.Random(draw(st.integers(0, 10**6)))
    size = draw(st.integers(2, 90))
    parents: list[list[int]] = [[]]
    for at in range(1, size):
        near = range(max(0, at - 7), at)
        count = min(len(near), rng.choice((1, 1, 1, 2, 3)))
        parents.append(rng.sample(near, count))
    tips = {*range(size)}.difference(*parents)
    return [*parents, sorted(tips, reverse=True)]


def ancestors(parents):
    has: list[set[int]] = []
    for at, above in enumerate(parents):
        has.append({at}.union(*(has[up] for up in above)))
    return has


def drive(search, look, *, workers=1):
    """Let a search run against a world that `look` tells of; several at once end in any order."""
    rng = random.Random(7)
    search.learn(0, Side.OLD)
    search.learn(search.size, Side.NEW)
    search.runs = 0
    running: list[int] = []
    while search.runs < 1000:
        running += search.propose(workers - len(running), running)
        if not running:
            return search.answer()
        place = running.pop(rng.randrange(len(running)))
        search.learn(place, look(place))
        running = [one for one in running if not search.is_useless(one)]
    raise AssertionError("no end")


@given(graphs(), st.data(), st.integers(1, 3))
@examples(80)
def test_the_culprit_of_any_graph_is_found(parents, data, workers):
    has = ancestors(parents)
    culprit = data.draw(st.integers(1, len(parents) - 1))
    search = GraphSearch(parents, confirmations=1)
    answer = drive(search, lambda at: Side.NEW if culprit in has[at] else Side.OLD, workers=workers)
    assert answer.is_found
    assert answer.place == culprit


@given(graphs(), st.data(), st.integers(1, 2))
@examples(80)
def test_what_fails_otherwise_is_never_blamed(parents, data, workers):
    has = ancestors(parents)
    size = len(parents) - 1
    culprit = data.draw(st.integers(1, size))
    rng = random.Random(data.draw(st.integers(0, 1000)))
    broken = {at for at in range(1, size) if rng.random() < 0.3}

    def look(at):
        return Side.OTHER if at in broken else Side.NEW if culprit in has[at] else Side.OLD

    answer = drive(GraphSearch(parents, confirmations=1), look, workers=workers)
    assert culprit in {one.place for one in answer.suspects}
    assert not answer.is_found or answer.place == culprit
    assert answer.runs <= 6 * ceil(log2(size + 1)) + 12


def test_a_side_is_divided_like_the_line_it_comes_from():
    """Three commits of six lie on a side: still nothing takes more than halving all of them."""
    parents = [[at - 4, at - 1] if at % 6 == 5 else [at - 1][: min(at, 1)] for at in range(65)]
    has = ancestors(parents)
    for culprit in range(1, 65):
        asked: set[int] = set()

        def look(at, culprit=culprit, asked=asked):
            asked.add(at)
            return Side.NEW if culprit in has[at] else Side.OLD

        main = [at for at in range(65) if at % 6 not in (2, 3, 4)]
        answer = drive(GraphSearch(parents, main=main), look)
        assert answer.place == culprit
        assert len(asked) <= 7  # six, and the answer's parent where only its descendants were seen


def test_on_the_line_or_aside_the_line_is_run_where_both_tell_as_much():
    parents = [[], [0], [0], [1], [2], [3, 4]]
    assert GraphSearch(parents, main=[0, 2, 4, 5]).propose() == [4]
    assert GraphSearch(parents, main=[0, 1, 3, 5]).propose() == [3]


def test_what_changes_nothing_is_neither_suspected_nor_run():
    search = GraphSearch([[], [0], [1], [2]], ruled_out=[1, 2])
    answer = drive(search, lambda at: Side.NEW if at == 3 else Side.OLD)
    assert answer.place == 3
    assert answer.runs == 1


def test_after_a_contradiction_there_is_no_answer():
    search = GraphSearch([[], [0], [1], [2]])
    search.learn(2, Side.NEW)
    search.learn(2, Side.OLD)
    assert not search.is_steady
    assert search.propose() == []
    assert not search.answer().is_found


@pytest.mark.parametrize("culprit", [1, 5, 12, 20])
def test_a_graph_without_merges_is_as_sure_as_a_line_that_saw_the_same(culprit):
    graph = GraphSearch([[at - 1][:at] for at in range(21)], confirmations=1)
    line = LineSearch([1.0] * 20, confirmations=1)
    line.learn(0, Side.OLD)
    line.learn(20, Side.NEW)

    def look(at):
        side = Side.NEW if at >= culprit else Side.OLD
        line.learn(at, side)
        return side

    answer = drive(graph, look)
    assert answer.place == culprit
    assert answer.confidence == pytest.approx(line.answer().confidence)
    assert 0.98 <= answer.confidence < 1.0
    assert sum(one.chance for one in answer.suspects) == pytest.approx(answer.confidence)


@pytest.mark.parametrize("wanted", [0.9, 0.999])
def test_as_many_runs_are_asked_for_as_it_takes_to_be_so_sure(wanted):
    search = GraphSearch([[], [0], [0], [1, 2], [3], [4]], confidence=wanted)
    answer = drive(search, lambda at: Side.NEW if at >= 3 else Side.OLD)
    assert answer.is_found
    assert answer.confidence >= wanted


def test_in_graphs_it_is_as_often_right_as_it_says():
    """Programs that fail at times after the change, each as likely as it is taken to be."""
    rng = random.Random(11)
    stated, right, count = 0.0, 0, 0
    for _ in range(600):
        parents = [[at - 4, at - 1] if at % 6 == 5 else [at - 1][:at] for at in range(31)]
        has = ancestors(parents)
        culprit = rng.randrange(1, 31)
        rate = 1.0 if rng.random() < 0.9 else 1.0 - rng.random() ** 0.5
        answer = drive(
            GraphSearch(parents, confirmations=1),
            lambda at, c=culprit, r=rate, has=has: (
                Side.NEW if c in has[at] and rng.random() < r else Side.OLD
            ),
        )
        if answer.is_found:
            count += 1
            stated += answer.confidence
            right += answer.place == culprit
    assert abs(right - stated) / count < 0.03
