"""What fails otherwise: how likely others do so too, as far as those that were run tell."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.search.stretches import Guess, Stretches, _guesses

SEEN = st.dictionaries(st.integers(1, 7), st.booleans(), max_size=4)


def lines(guess: Guess, size: int):
    """Yield all that a guess may mean for the candidates, and how likely each is."""
    tie = 0.0 if not guess.reach else 2.718281828459045 ** (-1 / guess.reach)
    for others in product((False, True), repeat=size + 1):
        chance = 1.0 - guess.share if not others[0] else guess.share
        for was, now in pairwise(others):
            share = guess.share if now else 1.0 - guess.share
            chance *= share + (1.0 - share) * tie if was is now else share * (1.0 - tie)
        yield others, chance


@given(SEEN, st.integers(1, 7))
@examples(20)
def test_the_chance_is_what_counting_all_possible_lines_says(seen, place):
    size = 8
    if place in seen:
        return
    known = {0: False, size: False, **seen}
    good = every = 0.0
    for guess in _guesses(size):
        first = 1.0 - guess.share  # that the old end can be tested is given
        for others, chance in lines(guess, size):
            if all(others[at] is is_other for at, is_other in known.items()):
                every += guess.weight * chance / first
                good += guess.weight * chance / first * (not others[place])
    assert Stretches(size, seen).chance(place) == pytest.approx(good / every, abs=1e-3)


def test_the_longer_a_stretch_is_known_to_be_the_further_it_reaches():
    short = Stretches(1000, {500: True, 510: True, 400: False, 600: False})
    long = Stretches(1000, {400: True, 450: True, 500: True, 510: True, 300: False, 700: False})
    assert long.chance(530) < short.chance(530)


def test_scattered_failures_tell_little_of_their_neighbours():
    seen = {place: place % 20 == 0 for place in range(10, 500, 5)}
    assert Stretches(500, seen).chance(61) > 0.5


def test_between_two_of_a_long_stretch_hardly_any_can_be_tested():
    seen = {place: 200 <= place <= 400 for place in range(20, 600, 20)}
    assert Stretches(600, seen).chance(311) < 0.1
    assert Stretches(600, seen).chance(511) > 0.9
