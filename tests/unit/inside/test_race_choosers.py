"""Who runs next is decided by the seed, and by nothing else."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from relaunch.inside.race.choosers import Plan, chooser
from relaunch.inside.race.dice import Dice


class Thread:
    def __init__(self, name):
        self.id, self.points, self.blocks = name, 0, 0


def decisions(order, count=300):
    threads = [Thread(name) for name in ("0", "0.1", "0.2")]
    who = chooser(order)
    for one in threads:
        who.began(one)
    now: Any = threads[0]
    seen = []
    for number in range(count):
        others = [one for one in threads if one is not now]
        now.points += 1
        if number % 50 == 49:
            now.blocks += 1
            now = who.blocked(now, others)
        else:
            now = who.point(now, others) or now
        seen.append(now.id)
    return seen


def orders(seed):
    for way, number in (("random", 0.2), ("priority", 2), ("few", 2)):
        yield {"way": way, "seed": seed, "share": number, "changes": int(number), "points": 200}


def test_the_same_seed_decides_the_same():
    for order in orders(4711):
        assert decisions(order) == decisions(dict(order))


def test_other_seeds_decide_otherwise():
    for way in range(3):
        seen = {tuple(decisions([*orders(seed)][way])) for seed in range(20)}
        assert len(seen) > 10


def test_few_switches_are_few():
    order = {"way": "few", "seed": 3, "share": 0.0, "changes": 2, "points": 40}
    seen = decisions(order, count=40)
    assert sum(a != b for a, b in pairwise(seen)) <= 2


def test_a_plan_switches_where_it_says_so_and_else_to_the_oldest():
    plan = Plan([["p", "0", 3, "0.2"], ["b", "0.2", 1, "0.1"]])
    first, second, third = Thread("0"), Thread("0.1"), Thread("0.2")
    first.points = 2
    assert plan.point(first, [second, third]) is None
    first.points = 3
    assert plan.point(first, [second, third]) is third
    assert plan.point(first, [second]) is None  # who cannot run is not waited for
    third.blocks = 1
    assert plan.blocked(third, [first, second]) is second
    third.blocks = 2
    assert plan.blocked(third, [first, second]) is first


def test_dice_are_even_and_their_seeds_have_nothing_in_common():
    counts = [0] * 6
    dice = Dice(1)
    for _ in range(6000):
        counts[dice.below(6)] += 1
    assert all(850 < count < 1150 for count in counts)
    firsts = {Dice(seed).word() for seed in range(1000)}
    assert len(firsts) == 1000
