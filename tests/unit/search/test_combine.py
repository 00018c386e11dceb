"""The cases of a sweep: all of them, those that cover all pairs, and the telling ones first."""

from __future__ import annotations

from itertools import combinations as subsets
from itertools import product
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.search.combine import combinations, order_for_learning, pairwise

FACTORS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.integers(1, 4).map(lambda count: [str(number) for number in range(count)]),
    min_size=1,
    max_size=5,
)


def pairs(cases):
    return {pair for case in cases for pair in subsets(case.items(), 2)}


@given(FACTORS)
def test_all_combinations_come_once_in_a_fixed_order(factors):
    found = combinations(factors)
    assert [tuple(case.values()) for case in found] == list(product(*factors.values()))
    assert all(list(case) == list(factors) for case in found)


def test_paired_factors_go_in_step():
    found = combinations(
        {"model": ["s", "l"], "dtype": ["fp32"], "batch": ["64", "8"]}, paired=[["model", "batch"]]
    )
    assert found == [
        {"model": "s", "dtype": "fp32", "batch": "64"},
        {"model": "l", "dtype": "fp32", "batch": "8"},
    ]


@pytest.mark.parametrize(
    ("paired", "said"),
    [
        ([["a", "b"]], "a has 2, b has 3"),
        ([["a", "z"]], "`z` is paired but has no values"),
        ([["a", "c"], ["a", "c"]], "paired twice"),
    ],
)
def test_a_pairing_that_cannot_be_is_refused(paired, said):
    with pytest.raises(ValueError, match=said):
        combinations({"a": ["1", "2"], "b": ["1", "2", "3"], "c": ["1", "2"]}, paired=paired)


@given(FACTORS, st.integers(0, 60))
def test_a_limit_takes_some_of_all_in_the_same_order(factors, limit):
    everything = combinations(factors)
    some = combinations(factors, limit=limit)
    assert len(some) == min(limit, len(everything))
    places = [everything.index(case) for case in some]
    assert places == sorted(set(places))


def test_a_limit_on_more_than_can_be_listed_still_shows_every_value():
    factors = {name: [str(number) for number in range(10)] for name in "abcdefghijkl"}
    found = combinations(factors, limit=200)
    assert found == combinations(factors, limit=200)
    assert all({case[name] for case in found} == set(factors[name]) for name in factors)


@given(FACTORS)
def test_every_pair_of_values_is_covered(factors):
    found = pairwise(factors)
    assert pairs(found) == pairs(combinations(factors))
    assert {item for case in found for item in case.items()} == {
        (name, value) for name, values in factors.items() for value in values
    }
    assert len(found) <= len(combinations(factors))
    assert found == pairwise(factors)


def test_few_cases_cover_all_pairs():
    sizes = {(4, 3): 81, (6, 2): 64, (12, 10): 10**12}
    counts = {
        (factors, values): len(
            pairwise({f"f{n}": [str(v) for v in range(values)] for n in range(factors)})
        )
        for factors, values in sizes
    }
    assert counts[4, 3] <= 12  # 9 is the least there can be
    assert counts[6, 2] <= 9
    assert counts[12, 10] <= 220  # of a billion times a thousand


def test_nothing_to_combine():
    assert combinations({}) == [{}]
    assert pairwise({}) == []
    assert pairwise({"a": []}) == []
    assert order_for_learning([]) == []


@given(FACTORS, st.randoms(use_true_random=False))
def test_the_order_for_learning_loses_and_adds_nothing(factors, dice):
    cases = combinations(factors)
    dice.shuffle(cases)
    found = order_for_learning(cases)
    assert sorted(map(str, found)) == sorted(map(str, cases))


@given(FACTORS)
def test_an_interrupted_sweep_has_seen_all_pairs_early(factors):
    cases = combinations(factors)
    found = order_for_learning(cases)
    widest = sorted((len(values) for values in factors.values()), reverse=True)
    early = min(len(cases), 3 * prod(widest[:2]) + len(factors))
    assert pairs(found[:early]) == pairs(cases)


def test_the_first_cases_differ_in_everything():
    found = order_for_learning(combinations({name: list("123") for name in "abcd"}))
    assert all(a != b for a, b in zip(found[0].values(), found[1].values(), strict=True))
    assert pairs(found[:12]) == pairs(found)
