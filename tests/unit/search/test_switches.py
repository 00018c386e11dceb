"""Of many switches, the few that matter."""

from __future__ import annotations

import random

import pytest

from relaunch.search.schedules import ANYWHERE, BOTH, HERE, Size, order_of, places_of
from relaunch.search.switches import fewest


def shrunk(everything, fails, threads=()):
    """Shrink with an oracle; returns what is left, and how many runs that took."""
    search = fewest(everything, threads)
    runs = 0
    try:
        tries = next(search)
        while True:
            found = None
            for number, one in enumerate(tries):
                runs += 1
                if fails(one):
                    found = number
                    break
            tries = search.send(found)
    except StopIteration as end:
        return end.value, runs


@pytest.mark.parametrize("needed", [{7}, {3, 90}, {0, 50, 99}])
def test_what_matters_is_left_and_nothing_else(needed):
    left, runs = shrunk(range(100), lambda one: needed <= set(one))
    assert set(left) == needed
    assert runs < 150


def test_nothing_is_left_where_no_switch_is_needed():
    assert shrunk(range(50), lambda _: True) == ((), 1)


def test_a_switch_there_and_back_that_need_each_other_go_together():
    def fails(one):
        return 5 in one and (1 in one) == (2 in one) and (3 in one) == (4 in one)

    left, _ = shrunk(range(1, 6), fails)
    assert set(left) == {5}


def test_a_way_round_by_another_thread_is_left_out():
    first, last = ("p", "0.1", 4, "0"), ("b", "0", 1, "0.2")

    def fails(plan):
        return set(plan) == {first, last} or set(plan) == {("p", "0.1", 4, "0.2")}

    left, _ = shrunk([first, last], fails, ["0", "0.1", "0.2"])
    assert left == (("p", "0.1", 4, "0.2"),)


def test_any_law_is_kept_that_held_at_first():
    dice = random.Random(1)
    for _ in range(50):
        needed = set(dice.sample(range(40), dice.randint(0, 5)))
        left, _ = shrunk(range(40), lambda one, needed=needed: needed <= set(one))
        assert set(left) == needed


def test_a_seed_is_always_the_same_order_and_half_of_them_switch_only_here():
    size = Size(here=10, anywhere=40)
    assert order_of(37, size, BOTH) == order_of(37, size, BOTH)
    kinds = [places_of(seed, BOTH) for seed in range(100)]
    assert (kinds.count(HERE), kinds.count(ANYWHERE)) == (50, 50)
    assert {order_of(seed, size, BOTH)["way"] for seed in range(40)} == {
        "few", "priority", "random",
    }  # fmt: skip
    assert order_of(2, size, HERE)["points"] == 10
