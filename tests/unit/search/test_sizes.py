"""From which size on it fails: the right value, few runs, and no claim that was not looked at."""

from __future__ import annotations

from itertools import pairwise
from math import ceil, log

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.search.grown import Direction, Shape
from relaunch.search.ladder import Scale
from relaunch.search.seen import Seen
from relaunch.search.sizes import Grow

PASSED, FAILED, OTHER, UNTESTABLE = Seen


def drive(grow, verdict, workers=1):
    """Run what is proposed, all of it before the next; return the answer and the rounds."""
    rounds = 0
    while values := grow.propose(workers):
        assert len(values) <= workers
        rounds += 1
        for value in values:
            grow.start(value)
        for value in values:
            grow.learn(value, verdict(value))
    return grow.answer(), rounds


def drive_in_any_order(grow, verdict, workers, choose):
    """Keep that many workers busy; `choose` says which of the pending ones ends first."""
    while True:
        for value in grow.propose(workers - len(grow.pending)):
            assert value not in grow.pending
            grow.start(value)
        if not grow.pending:
            return grow.answer()
        value = choose(grow.pending)
        grow.learn(value, verdict(value))


def plain_bound(grow, size):
    """D + L + 6, as the class promises."""
    return len(grow._opening) + (size - 1).bit_length() + 6


@st.composite
def ranges(draw, most=20_000):
    low = draw(st.integers(0, 300))
    return low, low + draw(st.integers(1, most)), draw(st.sampled_from([None, *Scale]))


@st.composite
def thresholds(draw, most=20_000):
    """A range and a value in it from which on the verdict is another one; or it fails at first."""
    low, high, scale = draw(ranges(most))
    threshold = draw(st.integers(low + 1, high))
    before, after = draw(st.sampled_from([(PASSED, FAILED), (FAILED, PASSED)]))
    return low, high, scale, threshold, before, after


# --- one change


@examples(300)
@given(thresholds(), st.integers(1, 9))
def test_the_edge_is_exact_and_the_runs_are_bounded(case, workers):
    low, high, scale, threshold, before, after = case
    grow = Grow(low, high, scale=scale)
    answer, rounds = drive(grow, lambda value: after if value >= threshold else before, workers)
    assert answer.edge is not None
    assert (answer.edge.before, answer.edge.after) == (threshold - 1, threshold)
    assert answer.edge.is_exact
    assert answer.is_monotone
    assert answer.direction is (Direction.FAILS_FROM if after is FAILED else Direction.PASSES_FROM)
    size, opening = high - low + 1, len(grow._opening)
    if workers == 1:
        assert answer.runs <= plain_bound(grow, size)
    halving = ceil(log(size) / log(workers + 1) - 1e-9)
    assert rounds <= ceil(opening / workers) + halving + ceil(6 / workers)


@examples(80)
@given(thresholds(), st.integers(1, 6), st.data())
def test_workers_may_end_in_any_order(case, workers, data):
    low, high, scale, threshold, before, after = case
    grow = Grow(low, high, scale=scale)
    answer = drive_in_any_order(
        grow,
        lambda value: after if value >= threshold else before,
        workers,
        lambda pending: data.draw(st.sampled_from(pending)),
    )
    assert (answer.edge.before, answer.edge.after) == (threshold - 1, threshold)
    assert answer.is_monotone
    assert answer.runs <= grow.bound


@given(ranges(), st.sampled_from([PASSED, FAILED]))
def test_a_verdict_that_never_changes_is_not_made_up(case, verdict):
    low, high, scale = case
    grow = Grow(low, high, scale=scale)
    answer, _ = drive(grow, lambda _: verdict)
    assert answer.edge is None
    assert answer.direction is (
        Direction.ALWAYS_FAILS if verdict is FAILED else Direction.NEVER_FAILS
    )
    assert answer.runs <= plain_bound(grow, high - low + 1)
    assert {look.value for look in answer.looks} >= {low, high}


@given(st.integers(1, 64), st.integers(2, 40), st.data())
def test_the_edge_is_exact_to_the_step(step, steps, data):
    low, high = 8, 8 + step * steps + data.draw(st.integers(0, step - 1))
    threshold = data.draw(st.integers(low + 1, high))
    grow = Grow(low, high, step=step)
    answer, _ = drive(grow, lambda value: FAILED if value >= threshold else PASSED)
    assert answer.edge.before < threshold <= answer.edge.after
    assert answer.edge.after - answer.edge.before <= step


def test_small_sizes_come_first_and_nothing_larger_than_needed():
    grow = Grow(1, 4096)
    tried = []
    while answer_is_open(grow):
        (value,) = grow.propose(1)
        tried.append(value)
        grow.learn(value, FAILED if value >= 129 else PASSED)
    assert tried[:9] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert max(tried) == 256
    assert len(tried) == 16


def answer_is_open(grow):
    edge = grow.answer().edge
    return edge is None or not edge.is_exact


def test_workers_double_ahead_and_then_divide():
    grow = Grow(1, 4096)
    assert grow.propose(4) == [1, 2, 4, 8]
    for value in (1, 2, 4):
        grow.learn(value, PASSED)
    grow.learn(8, FAILED)
    assert grow.propose(2) == [5, 6]
    grow.start(6)
    assert grow.propose(2) == [5, 7]


def test_a_doubling_that_no_longer_matters_can_be_stopped():
    grow = Grow(1, 4096)
    for value in (1, 2, 4, 8):
        grow.start(value)
    grow.learn(1, PASSED)
    grow.learn(4, FAILED)
    assert grow.is_useless(8)
    assert not grow.is_useless(2)


def test_both_ends_come_first_where_sizes_cost_alike():
    assert Grow(1000, 1500).propose(2) == [1000, 1500]
    assert Grow(1000, 1500).propose(4) == [1000, 1500, 1166, 1333]


def test_a_single_value_is_tried_once():
    answer, _ = drive(Grow(5, 5), lambda _: FAILED)
    assert (answer.edge, answer.direction, answer.runs) == (None, Direction.ALWAYS_FAILS, 1)


@given(thresholds(), st.integers(1, 20), st.integers(1, 4))
def test_the_budget_is_kept_and_what_is_known_by_then_is_told(case, budget, workers):
    low, high, scale, threshold, before, after = case
    grow = Grow(low, high, scale=scale, budget=budget)
    answer, _ = drive(grow, lambda value: after if value >= threshold else before, workers)
    assert answer.runs <= budget
    if answer.edge is not None:
        assert answer.edge.before < threshold <= answer.edge.after


# --- values that are no whole numbers


@given(st.floats(1e-6, 0.5), st.integers(1, 4))
def test_a_learning_rate_is_found_to_two_digits(threshold, workers):
    grow = Grow(1e-6, 1.0)
    answer, _ = drive(grow, lambda value: FAILED if value > threshold else PASSED, workers)
    assert answer.edge.before <= threshold < answer.edge.after
    assert answer.edge.after <= answer.edge.before * 1.11
    assert float(f"{answer.edge.after:.2g}") == answer.edge.after
    assert answer.is_monotone
    if workers == 1:
        assert answer.runs <= 2 + 10 + 6


def test_a_share_is_found_on_a_linear_scale():
    answer, _ = drive(Grow(0.0, 1.0), lambda value: FAILED if value > 0.345 else PASSED)
    assert (answer.edge.before, answer.edge.after) == (0.34, 0.35)


# --- values that say nothing


@st.composite
def with_stretches(draw, most):
    low, high, scale, threshold, before, after = draw(thresholds(3000))
    stretches = draw(
        st.lists(st.tuples(st.integers(low, high), st.integers(0, 400)), min_size=1, max_size=most)
    )
    unclear = draw(st.sampled_from([OTHER, UNTESTABLE]))

    def verdict(value):
        if any(first <= value <= first + width for first, width in stretches):
            return unclear
        return after if value >= threshold else before

    return low, high, scale, threshold, verdict


@examples(150)
@given(with_stretches(most=1), st.integers(1, 5))
def test_a_stretch_that_cannot_be_tested_leaves_the_narrowest_honest_bracket(case, workers):
    low, high, scale, threshold, verdict = case
    clear = [value for value in range(low, high + 1) if verdict(value).is_clear]
    grow = Grow(low, high, scale=scale)
    answer, _ = drive(grow, verdict, workers)
    assert answer.runs <= grow.bound
    if not clear or clear[0] >= threshold or clear[-1] < threshold:
        assert answer.edge is None
        return
    best = [(a, b) for a, b in pairwise(clear) if verdict(a) is not verdict(b)]
    assert [(answer.edge.before, answer.edge.after)] == best
    assert answer.edge.is_exact is (answer.edge.after - answer.edge.before == 1)
    assert answer.edge.is_hidden is not answer.edge.is_exact
    assert answer.edge.first_suspect == answer.edge.before + 1


@examples(80)
@given(with_stretches(most=6), st.integers(1, 5), st.data())
def test_with_many_such_stretches_the_bracket_still_holds_the_truth(case, workers, data):
    low, high, scale, threshold, verdict = case
    grow = Grow(low, high, scale=scale)
    answer = drive_in_any_order(
        grow, verdict, workers, lambda pending: data.draw(st.sampled_from(pending))
    )
    assert answer.runs <= grow.bound
    if answer.edge is not None:
        assert answer.edge.before < threshold <= answer.edge.after
        assert verdict(answer.edge.before).is_clear
        assert verdict(answer.edge.after).is_clear
    assert answer.shape is not Shape.NOT_MONOTONE


def test_where_only_other_failures_follow_their_beginning_is_found():
    grow = Grow(1, 4096)
    answer, _ = drive(grow, lambda value: PASSED if value < 300 else OTHER)
    assert answer.edge is None
    assert answer.direction is Direction.NEVER_FAILS
    assert [(one.seen, one.low, one.high) for one in answer.map] == [
        (PASSED, 1, 299),
        (OTHER, 300, 4096),
    ]


def test_where_nothing_can_be_judged_nothing_is_claimed():
    answer, _ = drive(Grow(1, 4096), lambda _: UNTESTABLE)
    assert answer.direction is Direction.UNKNOWN
    assert answer.shape is Shape.UNCHECKED


# --- more than one change


@examples(100)
@given(ranges(2000), st.data(), st.integers(1, 4))
def test_monotone_is_never_claimed_against_a_value_that_was_tried(case, data, workers):
    low, high, scale = case
    places = st.integers(low, high)
    edges = sorted(data.draw(st.lists(places, max_size=5)))
    modulus = data.draw(st.sampled_from([None, 2, 3, 8, 64]))

    def verdict(value):
        if modulus is not None:
            return FAILED if value % modulus else PASSED
        return FAILED if sum(edge <= value for edge in edges) % 2 else PASSED

    grow = Grow(low, high, scale=scale)
    answer, _ = drive(grow, verdict, workers)
    seen = [look.seen for look in answer.looks]
    changes = [(a, b) for a, b in pairwise(answer.looks) if a.seen is not b.seen]
    assert answer.runs <= grow.bound
    assert all(look.seen is verdict(look.value) for look in answer.looks)
    assert answer.is_monotone is (len(changes) <= 1)
    if changes:
        assert (answer.edge.before, answer.edge.after) == tuple(x.value for x in changes[0])
        assert answer.edge.is_exact
    assert [one.seen for one in answer.map] == [
        now for before, now in pairwise([None, *seen]) if now is not before
    ]
    if answer.pattern is not None and answer.pattern.is_sure:
        inside = answer.pattern.seen
        assert all(
            (look.value % answer.pattern.modulus == 0) is (look.seen is inside)
            for look in answer.looks
        )


@pytest.mark.parametrize(
    ("fails", "said", "most"),
    [
        (lambda n: n % 8, "passes only at multiples of 8", 12),
        (lambda n: n % 2, "passes only at multiples of 2", 12),
        (lambda n: n % 3 == 0, "fails only at multiples of 3", 20),
        (lambda n: n % 64 == 0, "fails only at multiples of 64", 25),
        (lambda n: n == 7, "fails from 7 on, but not always", 30),
        (lambda n: 100 <= n <= 200, "fails from 100 on, but not always", 32),
        (lambda n: n == 2, "fails from 2 on, but not always", 12),
        (lambda n: 130 <= n <= 200, "fails from 130 on, but not always", 38),
        (lambda n: n >= 129, "fails from 129 on", 22),
        (lambda n: n < 64, "passes from 64 on", 18),
    ],
)
def test_the_usual_shapes_are_recognised(fails, said, most):
    answer, _ = drive(Grow(1, 4096), lambda n: FAILED if fails(n) else PASSED)
    assert answer.text == said
    assert answer.runs <= most


@examples(60)
@given(st.integers(2, 4000), st.integers(0, 2000))
def test_both_sides_of_a_window_are_exact_once_it_is_seen(first, width):
    last = min(first + width, 4095)
    answer, _ = drive(Grow(1, 4096), lambda n: FAILED if first <= n <= last else PASSED)
    if answer.edge is None:  # it was overlooked, and no claim but of what was tried is made
        assert answer.direction is Direction.NEVER_FAILS
        return
    assert [(one.low, one.high) for one in answer.map] == [(1, first - 1), (first, last),
                                                           (last + 1, 4096)]  # fmt: skip
    assert all(one.is_low_exact and one.is_high_exact for one in answer.map)


def test_nothing_is_called_monotone_before_it_was_looked_elsewhere():
    grow = Grow(1, 4096)
    while answer_is_open(grow):
        (value,) = grow.propose(1)
        grow.learn(value, FAILED if value >= 100 else PASSED)
    assert grow.answer().shape is Shape.UNCHECKED
    elsewhere = []
    while values := grow.propose(1):
        elsewhere += values
        grow.learn(values[0], FAILED if values[0] >= 100 else PASSED)
    assert grow.answer().shape is Shape.MONOTONE
    assert min(elsewhere) < 99
    assert max(elsewhere) == 4096
    assert len(elsewhere) == 6


def test_what_runs_cost_is_kept_for_the_order():
    grow = Grow(1, 64)
    grow.learn(1, PASSED, seconds=0.5, peak_bytes=100)
    grow.learn(8, OTHER, key="oom")
    assert [(one.value, one.seconds, one.peak_bytes, one.key) for one in grow.answer().looks] == [
        (1, 0.5, 100, ""),
        (8, None, None, "oom"),
    ]


def test_other_failures_are_kept_apart_on_the_map():
    grow = Grow(1, 4)
    for value, key in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        grow.learn(value, OTHER, key=key)
    assert [(one.key, one.low, one.high) for one in grow.answer().map] == [("a", 1, 2), ("b", 3, 4)]
