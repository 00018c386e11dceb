from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.depth import examples

from relaunch.search.shrink import pieces


def left_after(n, fails, **options):
    """Leave out pieces until no more can go, as one turn does; count the attempts."""
    units = list(range(n))
    attempts, seen = 0, {}
    while True:
        before = len(units)
        cursor = pieces.begin(len(units), **options)
        while cursor is not None:
            assert cursor.n == len(units)
            gone = {index for low, high in cursor.drops for index in range(low, high)}
            assert gone
            rest = tuple(unit for index, unit in enumerate(units) if index not in gone)
            if rest not in seen:
                attempts += 1
                seen[rest] = fails(rest)
            if seen[rest]:
                units = list(rest)
                cursor = pieces.passed(cursor)
            else:
                cursor = pieces.failed(cursor)
        if len(units) == before:
            return units, attempts


@given(st.integers(1, 300), st.data())
def test_only_the_needed_pieces_are_left(n, data):
    needed = data.draw(st.sets(st.integers(0, n - 1), max_size=8))
    units, attempts = left_after(n, lambda rest: needed <= set(rest))
    assert units == sorted(needed)
    assert attempts <= 4 + (len(needed) + 1) * 2 * (n.bit_length() + 2)


@examples(50)
@given(st.integers(1, 60), st.integers(0, 60))
def test_as_many_are_left_as_a_failure_needs(n, needed):
    units, attempts = left_after(n, lambda rest: len(rest) >= min(n, needed))
    assert len(units) == min(n, needed)
    assert attempts <= 4 * n + 40


@examples(60)
@given(st.integers(2, 24), st.integers(0, 1 << 24), st.booleans())
def test_no_single_piece_can_go_at_the_end_whatever_the_failure(n, seed, pairs):
    import random

    answers: dict[tuple[int, ...], bool] = {tuple(range(n)): True}

    def fails(rest):
        if rest not in answers:
            answers[rest] = random.Random(f"{seed}{rest}").random() < 0.3
        return answers[rest]

    units, _ = left_after(n, fails, pairs=pairs)
    for index in range(len(units)):
        assert not fails(tuple(units[:index] + units[index + 1 :]))
    if pairs:
        for index in range(len(units) - 1):
            assert not fails(tuple(units[:index] + units[index + 2 :]))


def test_one_bad_record_among_many_costs_a_logarithm():
    units, attempts = left_after(100_000, lambda rest: 73_211 in rest)
    assert (units, attempts <= 36) == ([73_211], True)


def test_two_needed_records_among_many_cost_two_logarithms():
    units, attempts = left_after(100_000, lambda rest: 731 in rest and 93_212 in rest)
    assert (units, attempts <= 45) == ([731, 93_212], True)


def ddmin(n, fails):
    """The textbook's delta debugging, to compare with."""
    units, parts, attempts, seen = list(range(n)), 2, 0, {}

    def ask(rest):
        nonlocal attempts
        if tuple(rest) not in seen:
            attempts += 1
            seen[tuple(rest)] = fails(tuple(rest))
        return seen[tuple(rest)]

    while len(units) > 1:
        size = -(-len(units) // parts)
        chunks = [units[at : at + size] for at in range(0, len(units), size)]
        for index, chunk in enumerate(chunks):
            if ask(chunk):
                units, parts = chunk, 2
                break
            rest = [unit for other in chunks[:index] + chunks[index + 1 :] for unit in other]
            if ask(rest):
                units, parts = rest, max(parts - 1, 2)
                break
        else:
            if parts >= len(units):
                break
            parts = min(len(units), 2 * parts)
    return units, attempts


def test_fewer_attempts_than_the_textbook():
    import random

    dice = random.Random(3)
    ours = theirs = 0
    for count in (1, 2, 3, 5, 8, 13, 34):
        for _ in range(4):
            needed = set(dice.sample(range(600), count))
            found, attempts = left_after(600, lambda rest, needed=needed: needed <= set(rest))
            known, more = ddmin(600, lambda rest, needed=needed: needed <= set(rest))
            assert found == known == sorted(needed)
            ours, theirs = ours + attempts, theirs + more
    print(f"attempts: {ours}, ddmin: {theirs}")
    assert ours < 0.6 * theirs
