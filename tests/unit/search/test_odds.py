"""Bounds of a rate hold what they promise."""

from __future__ import annotations

from math import comb

import pytest

from relaunch.search.odds import bounds, runs_needed


def test_none_of_two_hundred_is_below_one_and_a_half_percent():
    found = bounds(0, 200)
    assert found.low == 0.0
    assert found.high == pytest.approx(1 - 0.05 ** (1 / 200), rel=1e-6)
    assert round(100 * found.high, 1) == 1.5


def test_the_bounds_are_those_of_clopper_and_pearson():
    # From R: binom.test(5, 20) and binom.test(1, 100).
    assert (round(bounds(5, 20).low, 4), round(bounds(5, 20).high, 4)) == (0.0866, 0.491)
    assert (round(bounds(1, 100).low, 6), round(bounds(1, 100).high, 6)) == (0.000253, 0.054459)


def test_all_that_fail_bound_from_below():
    found = bounds(30, 30)
    assert (round(found.low, 4), found.high) == (round(0.05 ** (1 / 30), 4), 1.0)


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.97])
def test_the_true_rate_lies_within_at_least_as_often_as_promised(rate):
    runs = 40
    inside = 0.0
    for fails in range(runs + 1):
        found = bounds(fails, runs)
        if found.low <= rate <= found.high:
            inside += comb(runs, fails) * rate**fails * (1 - rate) ** (runs - fails)
    assert inside >= 0.95


def test_so_many_runs_show_a_failure_of_that_rate():
    assert runs_needed(0.5) == 5
    assert runs_needed(0.01) == 299
    assert runs_needed(0.0) == runs_needed(1.0) == 1


def test_more_failures_than_runs_are_refused():
    with pytest.raises(ValueError, match="3 of 2"):
        bounds(3, 2)
