"""Snapshots are measured in turn, and the one goes whose memory is worth least."""

from __future__ import annotations

import os
import time

from tests.unit.warm.made_up import waiting

from relaunch.inside.warm import choice, ladder
from relaunch.inside.warm.scales import Scales

PLENTY = 1000, 900


def named(snapshot: choice.Snapshot | None) -> str:
    return snapshot.id if snapshot else ""


def test_a_quarter_of_the_memory_is_allowed_unless_somebody_says_how_much() -> None:
    scales = Scales(lambda: PLENTY)
    assert scales.allowed_bytes == 250
    scales.wish_bytes = 7.0
    assert scales.allowed_bytes == 7
    assert Scales(lambda: (0, 0)).allowed_bytes == float("inf")


def test_nothing_goes_while_all_fit() -> None:
    scales = Scales(lambda: PLENTY)
    fitting = [waiting(number, 1.0 + number, pss=80) for number in range(3)]
    assert named(scales.to_drop(fitting, is_one_going=False)) == ""
    assert named(scales.to_drop([], is_one_going=False)) == ""


def test_for_memory_one_goes_at_a_time_by_the_ladder() -> None:
    scales = Scales(lambda: PLENTY)
    steps = [waiting(number, at, pss=90) for number, at in enumerate((1.0, 5.0, 5.1, 9.0))]
    assert named(scales.to_drop(steps, is_one_going=False)) == "2"
    assert named(scales.to_drop(steps, is_one_going=True)) == ""


def test_what_would_not_fit_alone_goes_before_others() -> None:
    scales = Scales(lambda: PLENTY)
    steps = [waiting(number, 1.0 + number, pss=90, alone=90) for number in range(4)]
    steps[3].alone = 300
    assert named(scales.to_drop(steps, is_one_going=False)) == "3"


def test_while_a_run_holds_what_would_not_fit_alone_no_other_goes_for_it() -> None:
    memory = [PLENTY]
    scales = Scales(lambda: memory[0])
    small, large = waiting(1, 1.0, pss=90, alone=90), waiting(2, 2.0, pss=300, alone=300)
    large.resuming = 1
    assert scales.to_drop([small, large], is_one_going=False) is None
    memory[0] = (1000, 40)  # but where the machine is almost full
    assert named(scales.to_drop([small, large], is_one_going=False)) == "1"
    memory[0] = PLENTY
    large.resuming = 0
    assert named(scales.to_drop([small, large], is_one_going=False)) == "2"


def test_on_a_machine_that_is_almost_full_even_allowed_ones_go() -> None:
    scales = Scales(lambda: (1000, 40))
    scales.wish_bytes = 500.0
    assert named(scales.to_drop([waiting(1, 1.0, pss=80)], is_one_going=False)) == "1"


def test_too_many_go_even_while_one_is_going() -> None:
    scales = Scales(lambda: PLENTY)
    many = [waiting(number, float(number)) for number in range(ladder.MOST + 1)]
    victim = scales.to_drop(many, is_one_going=True)
    assert victim is not None
    many.remove(victim)
    assert named(scales.to_drop(many, is_one_going=True)) == ""


def test_a_new_one_is_measured_first_then_each_in_turn_and_none_that_is_gone() -> None:
    scales = Scales()
    snapshots = [waiting(number, 1.0 + number, pid=os.getpid()) for number in range(3)]
    gone = waiting(9, 9.0, pid=os.getpid())
    scales.put_all(snapshots)
    scales.put_first(gone)
    new = waiting(4, 4.0, pid=os.getpid())
    snapshots.append(new)
    scales.put_first(new)
    measured = []
    for _ in snapshots:
        scales.measure(snapshots, set())
        measured += [one.id for one in snapshots if one.pss and one.id not in measured]
    assert measured == ["4", "0", "1", "2"]
    assert gone.pss == 0


def test_measuring_is_due_soon_for_a_new_one_and_later_when_all_are_measured() -> None:
    scales = Scales()
    one = waiting(1, 1.0, pid=os.getpid())
    assert scales.due_at > time.monotonic() + 1
    scales.put_first(one)
    assert scales.due_at < time.monotonic() + 1
    scales.measure([one], set())
    assert scales.due_at > time.monotonic() + 1
