"""Takes blocks of memory until exactly so much is left, also when others take and free some."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Memory(Protocol):
        """Something with memory: a GPU, or the machine."""

        def free(self) -> int: ...
        def take(self, size: int) -> int: ...
        def give_back(self, where: int) -> None: ...


GRANULE = 2 << 20
"""What the driver hands out at least: less is not possible, nor seen."""
BLOCK = 1 << 30
"""What is taken at once at most."""
PATIENCE_S = 3.0
"""So long others may take and free memory before we give up."""
_REST_S = 0.005


def near_enough(free: int, leave: int) -> bool:
    """Tell whether what is free is what was asked for: to one percent, or one granule."""
    return abs(free - leave) <= max(leave // 100, GRANULE)


class Held:
    """The blocks of one memory."""

    def __init__(
        self, memory: Memory, *, block: int = BLOCK, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Hold nothing yet; take `block` bytes at once at most."""
        self.memory = memory
        self._block = block
        self._clock = clock
        self._blocks: list[tuple[int, int]] = []
        """Size and place, in the order in which they were taken."""

    @property
    def bytes(self) -> int:
        """Say how much is held."""
        return sum(size for size, _ in self._blocks)

    def leave(self, leave: int, progress: Callable[[int], object] = lambda _: None) -> int:
        """Hold so much that `leave` bytes are free, and return what is free then.

        Free is never less than asked unless somebody else takes it. Without success it ends when
        patience does, or when not even the smallest block can be had.
        """
        deadline = None
        largest = self._block
        while True:
            free = self.memory.free()
            progress(free)
            over = free - leave
            again = self.memory.free()
            if 0 <= over < GRANULE and near_enough(again, leave):
                return again  # seen twice: somebody who never rests is not taken for quiet
            if over < 0 and not self._blocks:
                return free
            if over < self._block:
                deadline = deadline or self._clock() + PATIENCE_S
                if self._clock() > deadline:
                    # Of two looks the worse: what was right by chance is not right.
                    return max(free, again, key=lambda one: abs(one - leave))
            if over < 0:
                self._give_back(-over)
                largest = self._block
                time.sleep(_REST_S)
                continue
            wanted = min(over, largest)
            taken = self._take(wanted)
            if not taken and (free := self.memory.free()) - leave >= GRANULE:
                return free  # not even the smallest block, and nobody took what was there
            if 0 < taken <= wanted // 2:
                largest = taken

    def hold(self, size: int, progress: Callable[[int], object] = lambda _: None) -> bool:
        """Hold `size` bytes, rounded up to whole granules; False when there is not so much."""
        left = -(-size // GRANULE) * GRANULE
        largest = self._block
        while left > 0:
            taken = self._take(min(left, largest))
            if not taken:
                return False
            largest = taken
            left -= taken
            progress(self.memory.free())
        return True

    def _take(self, size: int) -> int:
        """Take a block of this size, or the half, or the half of that; 0 when nothing is to be had.

        Memory in pieces has no large blocks, and nobody promises what was free a moment ago.
        """
        while (size := size // GRANULE * GRANULE) > 0:
            where = self.memory.take(size)
            if where:
                self._blocks.append((size, where))
                return size
            size //= 2
        return 0

    def _give_back(self, size: int) -> None:
        """Free the smallest block that is enough, else the largest; the rest is taken again."""
        enough = [block for block in self._blocks if block[0] >= size]
        block = min(enough) if enough else max(self._blocks)
        self._blocks.remove(block)
        self.memory.give_back(block[1])
