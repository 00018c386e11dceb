"""The memory of arrays: whatever overlaps, each piece reads back, and shares what it shared."""

import ctypes

from hypothesis import given
from hypothesis import strategies as st

from relaunch.inside.capture.memory import ALWAYS, Memory, Piece, seen, span

SIZE = 4 * ALWAYS
ROOM = bytearray(i * 7 % 251 for i in range(SIZE))
BASE = ctypes.addressof(ctypes.c_char.from_buffer(ROOM))


def piece(low: int, high: int) -> Piece:
    return Piece(BASE + low, BASE + high, high - low, lambda: bytes(ROOM[low:high]), None)


def written(memory: Memory) -> bytes:
    blocks: list[bytes] = []
    memory.write(lambda data: blocks.append(bytes(data)))
    return b"".join(blocks)


spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(sorted)


@given(st.lists(spans, max_size=12), st.integers(0, SIZE))
def test_each_piece_reads_back_or_is_known_by_its_shape_alone(found, budget):
    memory = Memory(budget)
    for low, high in found:
        memory.add(piece(low, high))
    data = written(memory)
    for (low, high), (how, at, size, _) in zip(found, memory.table(), strict=True):
        assert size == high - low
        if how == "span":
            assert data[at : at + size] == ROOM[low:high]
        else:
            assert how == "shape"
    kept = [one for one, row in zip(found, memory.table(), strict=True) if row[0] == "span"]
    small = sum(high - low for low, high in kept if high - low <= ALWAYS)
    assert len(data) <= budget + small + 64 * len(found)


@given(st.lists(spans, min_size=2, max_size=8))
def test_pieces_that_overlap_lie_as_they_lay(found):
    memory = Memory(10 * SIZE)
    for low, high in found:
        memory.add(piece(low, high))
    written(memory)
    rows = memory.table()
    for (low, high), one in zip(found, rows, strict=True):
        for (other_low, other_high), other in zip(found, rows, strict=True):
            if max(low, other_low) < min(high, other_high):
                assert one[1] - other[1] == low - other_low


@given(st.integers(0, 63), st.integers(1, 500))
def test_memory_keeps_its_alignment(low, size):
    memory = Memory(SIZE)
    memory.add(piece(low, low + size))
    written(memory)
    assert memory.table()[0][1] % 64 == (BASE + low) % 64


def test_of_a_big_array_and_its_slice_the_slice_is_kept():
    memory = Memory(ALWAYS)
    memory.add(piece(0, SIZE))
    memory.add(piece(100, 200))
    data = written(memory)
    assert [row[0] for row in memory.table()] == ["shape", "span"]
    assert len(data) < 300
    assert memory.left_out == SIZE


def test_what_matters_most_is_kept_first():
    memory = Memory(ALWAYS + 100)
    memory.rank = 1
    memory.add(piece(0, ALWAYS + 10))
    memory.rank = 0
    memory.add(piece(2 * ALWAYS, 3 * ALWAYS + 10))
    written(memory)
    assert [row[0] for row in memory.table()] == ["shape", "span"]


shapes = st.lists(st.tuples(st.integers(0, 4), st.integers(-40, 40)), max_size=4)


@given(shapes, st.integers(1, 8))
def test_a_span_holds_every_element(dimensions, item):
    shape = [count for count, _ in dimensions]
    strides = [step for _, step in dimensions]
    low, high = span(1000, shape, strides, item)
    places = [1000]
    for count, step in dimensions:
        places = [place + n * step for place in places for n in range(count)]
    if not places:
        assert low == high
        return
    assert low == min(places)
    assert high == max(places) + item
    assert seen(shape, strides, item) <= len(places) * item
