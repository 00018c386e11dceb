"""Memory is taken until exactly so much is left, whatever others do meanwhile."""

import pytest

from relaunch.proc.settle import BLOCK, GRANULE, Held, near_enough

GB, MB = 1 << 30, 1 << 20


class Pretended:
    """Memory in which `largest` is the largest block, and `others` act with each block taken."""

    def __init__(self, free: int, *, largest: int = 900 * GB, others: tuple[int, ...] = ()) -> None:
        self._free = free
        self._largest = largest
        self._others = list(others)
        self._sizes: dict[int, int] = {}
        self.asked: list[int] = []

    def free(self) -> int:
        return self._free

    def take(self, size: int) -> int:
        self.asked.append(size)
        if self._others:
            self._free -= self._others.pop(0)
        if size > min(self._free, self._largest):
            return 0
        self._free -= size
        self._sizes[len(self.asked)] = size
        return len(self.asked)

    def give_back(self, where: int) -> None:
        self._free += self._sizes.pop(where)


@pytest.mark.parametrize("leave", [3 * GB, 100 * MB, 1, 79 * GB + 12345])
def test_what_is_left_is_what_was_asked_to_one_granule(leave):
    memory = Pretended(80 * GB)
    free = Held(memory).leave(leave)
    assert leave <= free < leave + GRANULE


def test_it_takes_blocks_of_a_gigabyte_and_one_for_the_rest():
    memory = Pretended(10 * GB)
    Held(memory).leave(3 * GB + 512 * MB)
    assert memory.asked == [BLOCK] * 6 + [512 * MB]


def test_memory_in_pieces_is_taken_in_pieces():
    memory = Pretended(8 * GB, largest=300 * MB)
    held = Held(memory)
    assert near_enough(held.leave(1 * GB), 1 * GB)
    assert memory.asked[:4] == [BLOCK, BLOCK // 2, BLOCK // 4, BLOCK // 4]


def test_without_even_the_smallest_block_it_ends_and_says_what_is_free():
    assert Held(Pretended(8 * GB, largest=MB)).leave(1 * GB) == 8 * GB


def test_what_somebody_else_takes_meanwhile_is_given_back_to_the_program():
    memory = Pretended(8 * GB, others=(0, 0, 0, 0, 0, 0, 2 * GB))
    assert 1 * GB <= Held(memory).leave(1 * GB) < 1 * GB + GRANULE


def test_what_somebody_else_frees_meanwhile_is_taken_in_large_blocks_too():
    memory = Pretended(2 * GB + 10 * MB, others=(0, -5 * GB))
    assert 1 * GB <= Held(memory).leave(1 * GB) < 1 * GB + GRANULE
    assert memory.asked.count(BLOCK) >= 5


def test_less_than_asked_is_no_reason_to_take_anything():
    memory = Pretended(2 * GB)
    assert Held(memory).leave(3 * GB) == 2 * GB
    assert memory.asked == []


def test_a_tenant_that_never_rests_ends_its_patience():
    ticks = iter(range(1000))
    memory = Pretended(8 * GB, others=(700 * MB, -700 * MB) * 500)
    Held(memory, clock=lambda: float(next(ticks))).leave(1 * GB)
    assert next(ticks) < 100


def test_so_much_is_held_and_no_more():
    memory = Pretended(8 * GB)
    held = Held(memory)
    assert held.hold(2 * GB + 1)
    assert held.bytes == 2 * GB + GRANULE


def test_more_than_there_is_cannot_be_held():
    assert not Held(Pretended(1 * GB)).hold(2 * GB)
