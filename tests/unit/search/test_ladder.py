"""The values between two ends: in order, each at its place, the ends among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.search.ladder import Digits, Even, Scale, fitting_scale, ladder_of, place_of


@given(st.integers(-100, 100), st.integers(0, 10**6), st.integers(1, 50), st.data())
def test_every_whole_value_has_its_place(low, width, step, data):
    ladder = Even(low, low + width, step)
    place = data.draw(st.integers(0, ladder.size - 1))
    assert place_of(ladder, ladder.value(place)) == place
    assert (ladder.value(0), ladder.value(ladder.size - 1)) == (low, low + width)
    if place:
        assert 0 < ladder.value(place) - ladder.value(place - 1) <= step


@given(
    st.floats(1e-12, 1e6),
    st.floats(1, 1e9),
    st.integers(1, 3),
    st.data(),
)
def test_every_value_of_so_many_digits_has_its_place(low, ratio, digits, data):
    ladder = Digits(low, low * ratio, digits)
    place = data.draw(st.integers(0, ladder.size - 1))
    assert place_of(ladder, ladder.value(place)) == place
    assert (ladder.value(0), ladder.value(ladder.size - 1)) == (low, low * ratio)
    if place:
        before, value = ladder.value(place - 1), ladder.value(place)
        assert before < value <= before * (1 + 2 * 10 ** (1 - digits))


def test_a_learning_rate_takes_round_values():
    ladder = ladder_of(1e-5, 1.0, Scale.LOG)
    values = [ladder.value(place) for place in range(ladder.size)]
    assert values[:3] == [1e-05, 1.1e-05, 1.2e-05]
    assert values[89:92] == [9.9e-05, 0.0001, 0.00011]
    assert len(values) == 5 * 90 + 1


def test_a_share_takes_hundredths():
    ladder = ladder_of(0.0, 1.0, Scale.LINEAR)
    assert ladder.size == 101
    assert [ladder.value(place) for place in (0, 7, 30, 100)] == [0.0, 0.07, 0.3, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [
        (1, 4096, Scale.LOG),
        (0, 64, Scale.LOG),
        (1000, 1500, Scale.LINEAR),
        (-5, 5000, Scale.LINEAR),
        (1e-5, 1.0, Scale.LOG),
        (0.0, 1.0, Scale.LINEAR),
        (0.1, 0.9, Scale.LINEAR),
    ],
)
def test_the_scale_follows_from_the_range(low, high, scale):
    assert fitting_scale(low, high) is scale


@pytest.mark.parametrize(
    ("low", "high", "scale", "step"),
    [(5, 4, Scale.LINEAR, None), (0.0, 1.0, Scale.LOG, None), (1, 9, Scale.LINEAR, 0)],
)
def test_a_range_that_makes_no_sense_is_refused(low, high, scale, step):
    with pytest.raises(ValueError, match=r"not|runs backwards"):
        ladder_of(low, high, scale, step)


def test_a_value_between_the_steps_is_refused():
    with pytest.raises(ValueError, match="nearest is 8"):
        place_of(Even(0, 64, 8), 13)
