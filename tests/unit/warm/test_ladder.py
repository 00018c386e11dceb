"""The ladder keeps the snapshots that are worth their memory."""

from __future__ import annotations

from itertools import pairwise

from tests.unit.warm.made_up import SCRIPT, waiting

from relaunch.inside.warm import choice, compare, ladder


def dropped(*snapshots: choice.Snapshot, short: bool = False) -> str | None:
    found = ladder.to_drop(snapshots, short)
    return found.id if found else None


def test_the_closest_step_of_the_ladder_goes_first() -> None:
    steps = [waiting(number, at) for number, at in enumerate((1.0, 5.0, 5.1, 9.0, 10.0))]
    assert dropped(*steps) == "2"


def test_first_and_deepest_stay_unless_memory_is_short() -> None:
    early = waiting(1, 1.0)
    imported = waiting(2, 2.0, is_past_imports=True)
    deep = waiting(3, 9.0)
    assert dropped(early, imported, deep) == "1"
    assert dropped(imported, deep) is None
    assert dropped(imported, deep, short=True) == "2"
    assert dropped(deep, short=True) == "3"


def test_a_snapshot_from_which_a_run_came_stays() -> None:
    assert dropped(waiting(1, 1.0, resuming=1), short=True) is None
    stale = waiting(1, 5.0, is_stale=True, resuming=1)
    assert dropped(stale, waiting(2, 6.0), short=False) is None


def test_what_the_newest_sources_cannot_use_goes_first_and_of_old_runs_before_new() -> None:
    old, new = waiting(1, 5.0, run=1, is_stale=True), waiting(2, 5.0, run=2, is_stale=True)
    assert dropped(waiting(3, 4.9), new, old, waiting(4, 5.0)) == "1"
    assert dropped(waiting(1, 5.0, run=1), waiting(2, 5.0, run=2), waiting(3, 1.0)) == "1"


def test_a_place_that_somebody_asked_for_stays_longer_than_others() -> None:
    ends = waiting(1, 1.0), waiting(5, 9.0)
    asked, other = waiting(2, 5.0, is_wanted=True), waiting(3, 7.0)
    assert dropped(*ends, asked, other) == "3"
    assert dropped(*ends, asked) == "2"


def test_a_place_is_asked_for_by_file_and_line() -> None:
    source = compare.Source(SCRIPT, "/x/train.py")
    hello = {"at": "/x/train.py:13", "elapsed": 1, "seen": "", "files": {"/x/train.py": [7, "d"]}}
    top = source.blocks[0]
    snapshot = choice.Snapshot(1, 1, {**hello, "site": 7 + top.first + 4}, 1)
    assert ladder.is_wanted(snapshot, source, [("train.py", 13)])
    assert ladder.is_wanted(snapshot, source, [("/x/train.py", 13), ("train.py", 14)])
    assert not ladder.is_wanted(snapshot, source, [("train.py", 12), ("rain.py", 13)])


def test_what_is_too_large_alone_goes_first_however_many_share_it() -> None:
    early = waiting(1, 0.1, pss=5, alone=5)
    middle = waiting(2, 1.0, pss=25, alone=60)
    deepest = waiting(3, 2.0, pss=40, alone=110)
    assert ladder.too_large([early, middle, deepest], 50) is deepest
    assert ladder.too_large([early, middle], 50) is middle
    assert ladder.too_large([early], 50) is None
    deepest.resuming = 1
    assert ladder.too_large([early, deepest], 50) is None


def test_many_snapshots_leave_a_ladder_that_is_finer_below() -> None:
    left: list[choice.Snapshot] = []
    for number in range(500):
        left.append(waiting(number, float(number)))
        while len(left) > 12:
            victim = ladder.to_drop(left)
            assert victim is not None
            left.remove(victim)
    gaps = [one.elapsed - before.elapsed for before, one in pairwise(left)]
    assert left[0].elapsed == 0.0
    assert left[-1].elapsed == 499.0
    assert gaps[-1] < gaps[0]
