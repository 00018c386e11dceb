"""How soon to look again: a program must not pass its limit, nor be looked at too often."""

import pytest

from relaunch.trial.place.memory.pace import LONGEST_S, SHORTEST_S, Pace

MB, GB = 1 << 20, 1 << 30
LOOK_S = 0.0001
"""What a look itself takes."""


def looks(limit, rate, begin=0):
    """Let a program grow at `rate` from `begin`; return the looks, and by how much it passed."""
    pace, now, used, count = Pace(limit), 100.0, begin, 0
    while used < limit:
        wait = pace.wait_s(int(used), now)
        assert wait == 0 or SHORTEST_S <= wait <= LONGEST_S
        wait = max(wait, LOOK_S)
        now, used, count = now + wait, used + rate * wait, count + 1
    return count, used / limit - 1


@pytest.mark.parametrize("limit", [512 * MB, 5 * GB, 100 * GB])
@pytest.mark.parametrize("rate", [0.1 * GB, GB, 2 * GB])
def test_a_limit_is_passed_by_less_than_one_percent(limit, rate):
    assert looks(limit, rate)[1] < 0.01


def test_growth_in_huge_pages_passes_it_by_less_than_two_and_a_half_percent():
    assert looks(512 * MB, 6 * GB)[1] < 0.025


def test_sudden_growth_of_one_that_was_steady_is_seen_in_time():
    pace, now = Pace(GB), 100.0
    used = 700 * MB
    for _ in range(1000):
        now += pace.wait_s(used, now)
    waited = pace.wait_s(used, now)
    assert used + 2 * GB * waited < 1.01 * GB


@pytest.mark.parametrize(("share", "most_hz"), [(0.1, 20), (0.5, 25), (0.9, 50), (0.99, 120)])
def test_one_that_does_not_grow_is_looked_at_seldom(share, most_hz):
    pace, now = Pace(2 * GB), 100.0
    used = int(2 * GB * share)
    for _ in range(2000):
        now += pace.wait_s(used, now)
    assert 1 / pace.wait_s(used, now) <= most_hz


def test_the_last_moments_are_looked_at_without_a_pause():
    pace, now, used = Pace(GB), 100.0, 900 * MB
    while used < GB - MB:
        wait = max(pace.wait_s(used, now), LOOK_S)
        now, used = now + wait, used + int(GB * wait)
    assert pace.wait_s(used, now) == 0


def test_one_that_stops_right_before_the_limit_is_not_looked_at_without_a_pause_for_long():
    pace, now, used = Pace(GB), 100.0, 900 * MB
    while used < GB - MB:
        wait = max(pace.wait_s(used, now), LOOK_S)
        now, used = now + wait, used + int(GB * wait)
    stopped, looks = now, 0
    while now < stopped + 1:
        now += max(pace.wait_s(used, now), LOOK_S)
        looks += 1
    assert looks < 1200
