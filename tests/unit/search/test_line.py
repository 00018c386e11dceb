"""The search on a line: right or honest whatever it meets, and never with many more runs."""

from __future__ import annotations

import random
from itertools import pairwise
from math import ceil, log2

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.search.line import LineSearch, Side, flattened
from relaunch.search.posterior import Posterior, Rates

SIZES = st.integers(1, 400)


def drive(search, look, *, workers=1, most=3000):
    """Let a search run against a world that `look` tells of; several at once end in any order."""
    rng = random.Random(7)
    running: list[int] = []
    while search.runs < most:
        running += search.propose(workers - len(running), running)
        if not running:
            return search.answer()
        place = running.pop(rng.randrange(len(running)))
        search.learn(place, *look(place))
        running = [one for one in running if not search.is_useless(one)]
    raise AssertionError(f"{most} runs, and no end")


def steady(culprit):
    return lambda place: (Side.NEW if place >= culprit else Side.OLD,)


def begun(size, culprit, *, prior=None, **more):
    search = LineSearch(prior or [1.0] * size, **more)
    search.learn(0, Side.OLD)
    search.learn(size, Side.NEW)
    search.runs = 0
    return search


@given(SIZES, st.data())
def test_a_steady_program_takes_about_as_many_runs_as_halving(size, data):
    culprit = data.draw(st.integers(1, size))
    answer = drive(begun(size, culprit), steady(culprit))
    assert answer.is_found
    assert answer.place == culprit
    assert answer.is_steady
    assert answer.runs <= ceil(log2(size)) + 2


@given(SIZES, st.data(), st.integers(2, 4))
@examples(40)
def test_several_at_once_find_the_same(size, data, workers):
    culprit = data.draw(st.integers(1, size))
    answer = drive(begun(size, culprit), steady(culprit), workers=workers)
    assert answer.is_found
    assert answer.place == culprit


@given(st.integers(2, 300), st.data())
@examples(60)
def test_a_stretch_that_fails_otherwise_is_never_blamed(size, data):
    culprit = data.draw(st.integers(1, size))
    first = data.draw(st.integers(1, size - 1))
    last = data.draw(st.integers(first, size - 1))

    def look(place):
        if first <= place <= last:
            return Side.OTHER, "broken"
        return steady(culprit)(place)

    answer = drive(begun(size, culprit), look)
    suspects = {one.place for one in answer.suspects}
    hidden = first <= culprit <= last + 1
    assert culprit in suspects
    if answer.is_found:
        assert answer.place == culprit
    if not hidden:
        assert answer.is_found or len(suspects) < size
    assert answer.runs <= 6 * ceil(log2(size)) + 12


@pytest.mark.parametrize(
    ("size", "first", "last", "culprit"), [(170, 1, 167, 170), (294, 3, 292, 1)]
)
def test_where_nearly_all_fails_otherwise_the_neighbours_of_the_ends_are_tried(
    size, first, last, culprit
):
    """The rest is given up after many runs in vain, but not unseen what lies beside the ends."""

    def look(place):
        return (Side.OTHER, "broken") if first <= place <= last else steady(culprit)(place)

    answer = drive(begun(size, culprit), look)
    assert answer.is_found
    assert answer.place == culprit


@given(st.integers(40, 140), st.data())
@examples(40)
def test_who_is_patient_finds_what_nearly_all_of_a_range_hides(size, data):
    """Only the culprit and the one before it show anything else than another failure."""
    culprit = data.draw(st.integers(1, size))

    def look(place):
        told = {0, culprit - 1, culprit, size}
        return steady(culprit)(place) if place in told else (Side.OTHER, "broken")

    answer = drive(begun(size, culprit, is_patient=True), look)
    assert (answer.is_found, answer.place) == (True, culprit)
    assert answer.runs <= size + 4
    soon = drive(begun(size, culprit), look)
    assert culprit in {one.place for one in soon.suspects}


@given(st.integers(2, 200), st.data())
@examples(40)
def test_scattered_breakage_costs_runs_and_never_the_answer(size, data):
    culprit = data.draw(st.integers(1, size))
    seed = data.draw(st.integers(0, 1000))
    rng = random.Random(seed)
    broken = {place for place in range(1, size) if rng.random() < 0.3}

    def look(place):
        return (Side.OTHER, f"{place % 3}") if place in broken else steady(culprit)(place)

    answer = drive(begun(size, culprit), look)
    assert culprit in {one.place for one in answer.suspects}
    if not {culprit - 1, culprit} & broken:
        assert not answer.is_found or answer.place == culprit
    if answer.is_found:
        assert answer.place == culprit


def test_a_long_stretch_that_fails_otherwise_is_left_behind_in_few_runs():
    size, total = 250, 0
    for culprit in (10, 60, 190, 245):
        found = drive(
            begun(size, culprit),
            lambda place, c=culprit: (Side.OTHER, "x") if 64 < place < 185 else steady(c)(place),
        )
        assert found.is_found
        total += found.runs
    assert total <= 4 * 15


@given(st.integers(3, 400), st.integers(2, 5))
@examples(40)
def test_several_at_once_divide_evenly_what_is_left(size, workers):
    places = sorted(begun(size, 1).propose(workers))
    assert len(places) == min(workers, size - 1)
    parts = [b - a for a, b in pairwise([0, *places, size])]
    assert max(parts) - min(parts) <= max(1, size // (4 * workers))


@pytest.mark.parametrize("size", [61, 100, 250])
def test_of_two_that_tell_as_much_the_older_is_run(size):
    assert begun(size, 1).propose() == [size // 2]


def test_what_cannot_be_tested_hides_no_more_than_itself():
    def look(place):
        return (Side.OTHER, "x") if place in (60, 61, 200) else steady(61)(place)

    answer = drive(begun(250, 61, confirmations=1), look)
    assert not answer.is_found
    assert {one.place for one in answer.suspects} == {60, 61, 62}
    assert answer.confidence >= 0.98


def test_what_cannot_change_anything_and_cannot_be_tested_is_not_run_for_ever():
    def look(place):
        return (Side.OTHER, "x") if 4 <= place <= 8 else steady(7)(place)

    weights = [1.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    answer = drive(begun(10, 7, prior=weights, confirmations=1), look, most=60)
    assert 7 in {one.place for one in answer.suspects}


def test_a_prior_that_knows_finds_it_sooner_and_one_that_errs_costs_little():
    size, culprit = 512, 300
    knows = [100.0 if place in (culprit, 17, 401) else 1.0 for place in range(1, size + 1)]
    errs = [100.0 if place in (5, 6, 7) else 1.0 for place in range(1, size + 1)]
    plain = drive(begun(size, culprit), steady(culprit)).runs
    assert drive(begun(size, culprit, prior=knows), steady(culprit)).runs <= plain - 2
    assert drive(begun(size, culprit, prior=errs), steady(culprit)).runs <= plain + 4


def test_where_nothing_can_change_nothing_is_blamed_or_run():
    weights = [0.0] * 99 + [1.0] + [0.0] * 27 + [1.0]
    answer = drive(begun(128, 100, prior=weights), steady(100))
    assert answer.place == 100
    assert answer.runs <= 3  # one that tells, and the answer itself and the one before it


def test_a_better_prior_may_come_late():
    search = begun(1000, 700)
    search.learn(500, Side.OLD)
    search.reweigh([50.0 if place == 700 else 1.0 for place in range(1, 1001)])
    assert search.posterior.chances[700] == max(search.posterior.chances)
    assert search.posterior.chances[400] == 0.0 or search.posterior.chances[400] < 1e-3


@pytest.mark.parametrize(
    ("before", "after", "rates"),
    [
        (0.3, 1.0, Rates(after=1.0)),
        (0.0, 0.3, Rates(before=0.0)),
        (0.1, 0.9, Rates()),
        (0.2, 1.0, Rates(steady=True)),
    ],
)
def test_an_unsteady_program_is_found_about_as_often_as_is_claimed(before, after, rates):
    size, rounds, right, claimed = 100, 60, 0, 0.0
    for seed in range(rounds):
        rng = random.Random(seed)
        culprit = rng.randint(1, size)

        def look(place, rng=rng, culprit=culprit):
            rate = after if place >= culprit else before
            return (Side.NEW if rng.random() < rate else Side.OLD,)

        search = LineSearch([1.0] * size, rates=rates, confirmations=2)
        for place in (0, size):
            search.learn(place, *look(place))
        answer = drive(search, look)
        right += answer.place == culprit
        claimed += answer.suspects[0].chance
    assert abs(right - claimed) / rounds <= 0.09  # 60 rounds: 3 standard deviations


def test_a_contradiction_ends_the_belief_that_it_always_does_the_same():
    search = begun(64, 32)
    assert search.is_steady
    search.learn(40, Side.NEW)
    search.learn(40, Side.OLD)
    assert not search.is_steady
    assert not search.answer().is_found


def test_what_cannot_be_is_taken_for_what_was_not_known():
    search = begun(64, 32, rates=Rates(before=0.0, after=1.0))
    search.learn(30, Side.NEW)
    search.learn(30, Side.OLD)
    assert not search.posterior.is_impossible
    assert sum(search.posterior.chances) == pytest.approx(1.0)


def test_confirmations_are_runs_of_the_answer_and_of_the_one_before_it():
    asked = []

    def look(place):
        asked.append(place)
        return steady(5)(place)

    answer = drive(begun(8, 5, confirmations=2), look)
    assert answer.is_found
    assert asked.count(4) == 3
    assert asked.count(5) == 3


def test_while_the_answer_is_confirmed_nothing_else_is_run():
    search = begun(2, 1, confirmations=2)
    search.learn(1, Side.NEW)
    assert search.propose(4) == [1]
    assert search.propose(4, [1, 1]) == []


@given(st.lists(st.floats(0, 10, allow_subnormal=False), min_size=1, max_size=50))
def test_a_flattened_prior_sums_to_one_and_rules_nothing_else_out(prior):
    found = flattened(prior)
    assert sum(found) == pytest.approx(1.0)
    if sum(prior) > 0:
        assert [one > 0 for one in found] == [one > 0 for one in prior]


@given(
    st.integers(2, 30),
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=12),
    st.sampled_from([Rates(steady=True), Rates(), Rates(before=0.0), Rates(after=1.0)]),
)
def test_the_table_of_stretches_is_what_bayes_says_place_by_place(size, seen, rates):
    from relaunch.search.posterior import pairs_of

    posterior = Posterior([1.0] * size, rates)
    seen = [(place, is_new) for place, is_new in seen if place <= size]
    for place, is_new in seen:
        posterior.learn(place, is_new=is_new)
    expected = [0.0]
    for culprit in range(1, size + 1):
        total = 0.0
        for pair in pairs_of(rates):
            chance = pair.weight
            for place, is_new in seen:
                rate = pair.after if place >= culprit else pair.before
                chance *= rate if is_new else 1.0 - rate
            total += chance
        expected.append(total)
    whole = sum(expected)
    assert posterior.is_impossible == (whole <= 0.0)
    if whole > 0.0:
        assert posterior.chances == pytest.approx([one / whole for one in expected], abs=1e-9)
