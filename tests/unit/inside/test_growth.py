"""Does memory grow? Programs of every temper, simulated: leaks are found, steady ones let be."""

import math
import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.inside.sections.growth import growth

MB = 1 << 20
Series = Callable[[random.Random, int], list[float]]


def points(values: list[float], base: float = 500 * MB) -> list[tuple[int, int]]:
    """Iterations as a section keeps them: whole pages, at most 128 of them."""
    kept = list(enumerate(values))
    while len(kept) > 128:
        kept = kept[::2]
    return [(n, int(base + value) // 4096 * 4096) for n, value in kept]


def noise(seed: random.Random, count: int) -> list[float]:
    spread = seed.choice([0, 0.01, 0.1, 1, 10]) * MB
    return [seed.gauss(0, spread) for _ in range(count)]


def cache_that_fills(seed: random.Random, count: int) -> list[float]:
    size, speed = seed.choice([0.5, 5, 50, 500]) * MB, seed.uniform(0.3, max(1, count / 4))
    return [size * (1 - math.exp(-n / speed)) + seed.gauss(0, 4096) for n in range(count)]


def one_jump(seed: random.Random, count: int) -> list[float]:
    at, size = seed.randrange(count), seed.choice([0.5, 5, 50, 500]) * MB
    return [size * (n >= at) + seed.gauss(0, 10_000) for n in range(count)]


def sudden_peaks(seed: random.Random, count: int) -> list[float]:
    size = seed.choice([0.5, 5, 50, 500]) * MB
    return [size * (seed.random() < 0.1) + seed.gauss(0, 10_000) for _ in range(count)]


def wandering_back(seed: random.Random, count: int) -> list[float]:
    at, found = 0.0, []
    for _ in range(count):
        at = 0.8 * at + seed.gauss(0, MB)
        found.append(at)
    return found


def collected_now_and_then(seed: random.Random, count: int) -> list[float]:
    every, size = seed.choice([2, 3, count // 4 or 1]), seed.choice([5, 50]) * MB
    return [size * (n % every) / every for n in range(count)]


STEADY = (noise, cache_that_fills, one_jump, sudden_peaks, wandering_back, collected_now_and_then)


def test_steady_programs_are_let_be_whatever_their_temper():
    alarms = [
        (kind.__name__, count, seed)
        for kind in STEADY
        for count in (6, 8, 12, 20, 50, 300)
        for seed in range(60)
        if growth(points(kind(random.Random(seed), count)))
    ]
    assert len(alarms) <= 2, alarms  # of 2,160


def test_an_even_leak_is_found_from_six_iterations_on_and_its_size_is_right():
    for count in (6, 7, 10, 30, 128, 1000):
        for size in (0.5, 3, 40):
            found = growth(points([n * size * MB for n in range(count)]))
            assert abs(found - size * MB) <= 0.02 * size * MB, (count, size)


def test_a_leak_under_noise_peaks_and_a_filling_cache_is_found():
    def leak(seed: random.Random, count: int) -> list[float]:
        other = seed.choice([noise, sudden_peaks, cache_that_fills])
        grown = 60 * MB / count
        share = 4 * MB if other is noise else 20 * MB
        rest = other(seed, count)
        most = max(map(abs, rest)) or 1
        return [grown * n + one / most * share for n, one in enumerate(rest)]

    found = [
        bool(growth(points(leak(random.Random(seed), count))))
        for count in (20, 50, 300)
        for seed in range(40)
    ]
    assert sum(found) >= 0.9 * len(found)


def test_less_than_five_iterations_after_the_first_say_nothing():
    assert growth(points([n * 100 * MB for n in range(5)])) == 0


def test_a_slow_leak_below_what_allocators_play_with_is_not_told():
    assert growth(points([n * 1000 for n in range(300)])) == 0


@given(st.lists(st.integers(0, 1 << 34), max_size=60), st.integers(0, 1 << 40))
@examples(200)
def test_how_much_there_was_before_makes_no_difference(values, base):
    first = growth([(n, value) for n, value in enumerate(values)])
    moved = growth([(n, value + base) for n, value in enumerate(values)])
    assert first == moved


@given(st.lists(st.integers(0, 1 << 34), max_size=60))
@examples(200)
def test_what_shrinks_never_leaks(values):
    assert growth(list(enumerate(sorted(values, reverse=True)))) == 0
