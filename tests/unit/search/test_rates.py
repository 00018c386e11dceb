"""Counts under conditions: an exact test of them, and what two conditions do only together."""

from __future__ import annotations

import random
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.search.combine import combinations
from relaunch.search.conditions import Table
from relaunch.search.rates import Counts, fisher, rates
from relaunch.search.together import at_least, interactions

COUNT = st.integers(0, 40)
DESIGN = combinations({"a": ["0", "1"], "b": ["0", "1"], "c": ["0", "1", "2"]})


@given(COUNT, COUNT, COUNT, COUNT)
def test_fisher_is_the_sum_of_all_tables_as_unlikely(a, b, c, d):
    weights = {
        n: comb(a + b, n) * comb(c + d, a + c - n)
        for n in range(max(0, a + c - c - d), min(a + b, a + c) + 1)
    }
    exact = sum(one for one in weights.values() if one <= weights[a]) / sum(weights.values())
    assert fisher(a, b, c, d) == pytest.approx(exact, rel=1e-6)


def test_fisher_of_a_known_table():
    assert fisher(8, 2, 1, 5) == pytest.approx(0.0349650, rel=1e-5)
    assert fisher(1200, 1300, 0, 2500) < 1e-300


@given(COUNT, st.floats(0, 1), st.integers(0, 40))
def test_a_binomial_tail(fails, rate, more):
    runs = fails + more
    exact = sum(comb(runs, n) * rate**n * (1 - rate) ** (runs - n) for n in range(fails, runs + 1))
    assert at_least(fails, runs, rate) == pytest.approx(exact, rel=1e-6, abs=1e-12)


def counts_of(chance, repeats, seed):
    """Fail each case of the design with its chance."""
    dice = random.Random(seed)
    cases = [case for case in DESIGN for _ in range(repeats)]
    failing = sum(1 << n for n, case in enumerate(cases) if dice.random() < chance(case))
    table = Table(cases)
    return Counts(table, failing, table.everything & ~failing)


def test_the_most_telling_value_comes_first():
    found = rates(counts_of(lambda case: 0.6 if case["c"] == "2" else 0.05, 10, 1))
    assert found[0].condition.text == "c=2"
    assert found[0].runs == 40
    assert found[0].chance < 1e-6
    assert len(found) == 7


def test_two_values_that_fail_only_together_interact():
    # Measured over 300 seeds: found in all, and never another pair.
    found = [
        interactions(counts_of(lambda c: 0.5 * (c["a"] == c["b"] == "1"), 8, seed), None)
        for seed in range(30)
    ]
    hits = [one for one in found if one and [c.text for c in one[0].both] == ["a=1", "b=1"]]
    assert len(hits) >= 29
    assert hits[0][0].expected < hits[0][0].fails / hits[0][0].runs


def test_two_values_that_fail_each_on_their_own_do_not_interact():
    # Measured over 300 seeds: told in 8.
    def chance(case):
        return 1 - (1 - 0.4 * (case["a"] == "1")) * (1 - 0.4 * (case["b"] == "1"))

    found = [interactions(counts_of(chance, 10, seed), None) for seed in range(30)]
    assert sum(bool(one) for one in found) <= 2
