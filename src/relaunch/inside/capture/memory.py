"""The memory behind arrays and tensors: only what is seen of it, once, and within a budget.

Arrays that share memory share it after the replay too; a slice of a big array takes what it spans,
a tensor that was expanded takes what it was expanded from. Over the budget only shapes stay.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

ALWAYS = 1 << 16
"""What is smaller than this is kept over the budget too."""
_ALIGNED = 64
_BLOCK = 1 << 24


class Piece:
    """The memory that one array sees."""

    def __init__(
        self, low: int, high: int, seen: int, dense: Callable[[], bytes], owner: Any
    ) -> None:
        """Span from `low` to `high`; of that, the array sees `seen` bytes."""
        self.low, self.high, self.seen = low, high, seen
        self.dense = dense
        """Returns the elements alone, one after the other."""
        self.owner = owner
        self.rank = 0
        """Those with a lower one are kept first."""
        self.far = 0
        """Bytes of it that cannot be read from here."""
        self.place: tuple[str, int] = ("shape", 0)
        """How it is kept, and where: `span`, `dense`, or its `shape` alone."""


class Memory:
    """All pieces of a capture."""

    def __init__(self, budget: int) -> None:
        """Keep at most so many bytes, small pieces aside."""
        self.budget = budget
        self.rank = 0
        """That of the pieces to come."""
        self.pieces: list[Piece] = []
        self.size = 0
        self.left_out = 0
        """Bytes of which only shapes were kept."""

    def add(self, piece: Piece) -> int:
        """Note a piece; returns its number."""
        piece.rank = self.rank
        self.pieces.append(piece)
        return len(self.pieces) - 1

    def forget(self, count: int) -> None:
        """Keep only the first pieces: what came after them is kept in another way."""
        del self.pieces[count:]

    def write(self, write: Callable[[Any], object]) -> None:
        """Write what is kept, region by region, each aligned as it was."""
        self.left_out = sum(piece.far for piece in self.pieces)
        todo = self._regions(range(len(self.pieces)))
        while todo:
            region = todo.pop(0)
            low, high, is_sparse, size = self._measured(region)
            if size > ALWAYS and self.size + size > self.budget:
                todo = self._without_widest(region) + todo
            elif is_sparse:
                self._pad(write, 0)
                self._place(region, "dense", self.size, low)
                self._put(write, self.pieces[region[0]].dense())
            else:
                self._pad(write, low % _ALIGNED)
                self._place(region, "span", self.size, low)
                for at in range(low, high, _BLOCK):
                    self._put(write, _at(at, min(_BLOCK, high - at)))

    def _measured(self, region: list[int]) -> tuple[int, int, bool, int]:
        """Return where a region begins and ends, and how many bytes of it are worth keeping."""
        low = min(self.pieces[n].low for n in region)
        high = max(self.pieces[n].high for n in region)
        seen = self.pieces[region[0]].seen
        is_sparse = len(region) == 1 and seen * 2 < high - low
        return low, high, is_sparse, seen if is_sparse else high - low

    def _without_widest(self, region: list[int]) -> list[list[int]]:
        """Keep of a region that is too big its smaller pieces: the slice, not the whole."""
        widest = max(self.pieces[n].high - self.pieces[n].low for n in region)
        left = [n for n in region if self.pieces[n].high - self.pieces[n].low < widest]
        self.left_out += widest
        return self._regions(left)

    def _regions(self, numbers: Iterable[int]) -> list[list[int]]:
        """Part pieces into groups that overlap, those that matter most first; no empty ones."""
        some = [n for n in numbers if self.pieces[n].high > self.pieces[n].low]
        order = sorted(some, key=lambda n: self.pieces[n].low)
        regions: list[list[int]] = []
        end = -1
        for number in order:
            piece = self.pieces[number]
            if piece.low < end:
                regions[-1].append(number)
            else:
                regions.append([number])
            end = max(end, piece.high)
        return sorted(regions, key=lambda one: min((self.pieces[n].rank, n) for n in one))

    def _place(self, region: list[int], how: str, at: int, low: int) -> None:
        for number in region:
            piece = self.pieces[number]
            piece.place = (how, at + (piece.low - low if how == "span" else 0))

    def _pad(self, write: Callable[[Any], object], remainder: int) -> None:
        blank = (remainder - self.size) % _ALIGNED
        self._put(write, bytes(blank))

    def _put(self, write: Callable[[Any], object], data: Any) -> None:
        write(data)
        self.size += len(data)

    def table(self) -> list[list[Any]]:
        """Return for each piece how and where it is kept, its span and what is seen of it."""
        return [[*one.place, one.high - one.low, one.seen] for one in self.pieces]


def _at(address: int, size: int) -> Any:
    """Return the bytes at an address, without a copy."""
    import _ctypes

    class Char(_ctypes._SimpleCData):  # type: ignore[type-arg]  # not subscriptable at run time
        _type_ = "c"

    class Bytes(_ctypes.Array):  # type: ignore[type-arg]  # not subscriptable at run time
        _type_ = Char
        _length_ = size

    return memoryview(Bytes.from_address(address)).cast("B")


def span(address: int, shape: Any, strides: Any, item: int) -> tuple[int, int]:
    """Return the first address that an array sees, and the one after the last."""
    low = high = address
    for count, step in zip(shape, strides, strict=True):
        if not count:
            return address, address
        if step < 0:
            low += (count - 1) * step
        else:
            high += (count - 1) * step
    return low, high + item


def seen(shape: Any, strides: Any, item: int) -> int:
    """Count the bytes that an array sees; what it sees many times, once."""
    total = item
    for count, step in zip(shape, strides, strict=True):
        total *= count if step or not count else 1
    return total


# --- numpy


def array(memory: Memory, made: Any) -> tuple[int, Any, Any, Any, bool]:
    """Note an array of numpy; returns what is needed to make it again."""
    address = made.__array_interface__["data"][0]
    item, shape, strides = made.itemsize, made.shape, made.strides
    low, high = span(address, shape, strides, item)
    size = made.nbytes if made.size else 0
    piece = Piece(low, high, min(size, seen(shape, strides, item)), made.tobytes, made)
    if high > low and 0 in strides:  # its own elements many times: only the span tells them apart
        piece.seen = high - low
    number = memory.add(piece)
    return number, made.dtype, shape, (strides, address - low), bool(made.flags.writeable)


# --- torch


def tensor(memory: Memory, made: Any, facts: dict[str, Any]) -> int:
    """Note a tensor that lies in the memory of this process; its facts are filled in."""
    item = made.element_size()
    shape = tuple(made.shape)
    strides = tuple(step * item for step in made.stride())
    address = made.data_ptr()
    low, high = span(address, shape, strides, item) if made.numel() else (0, 0)
    facts.update(shape=shape, strides=tuple(made.stride()))

    def dense() -> bytes:
        torch = sys.modules["torch"]
        torch.set_num_threads(1)  # the threads that the program had are not in its copy
        flat = made.detach().contiguous()
        return bytes(_at(flat.data_ptr(), flat.numel() * item))

    count = seen(shape, strides, item) if made.numel() else 0
    piece = Piece(low, high, count, dense, made)
    if high > low and 0 in strides:
        piece.seen = high - low
    return memory.add(piece)


def shape_only(memory: Memory, size: int, owner: Any) -> int:
    """Note memory that cannot be read from here: only its shape is kept."""
    piece = Piece(0, 0, 0, bytes, owner)
    piece.far = size
    return memory.add(piece)
