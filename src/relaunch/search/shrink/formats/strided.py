"""An array as kept indices of some memory: cut without a copy, gathered when it is written."""

from __future__ import annotations

import math
import struct
from functools import cached_property
from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    Memory = bytes | memoryview
    Indices = range | tuple[int, ...]

_CODES = {"f2": "e", "f4": "f", "f8": "d", "i1": "b", "i2": "h", "i4": "i", "i8": "q", "b1": "?"}
_CODES |= {"u1": "B", "u2": "H", "u4": "I", "u8": "Q"}
_CASTS: dict[int, Any] = {1: "B", 2: "H", 4: "I", 8: "Q"}
FEW = 4096
"""Arrays of at most so many elements are looked at one by one."""


class Array:
    """A block of elements, row by row in `base`, of which each axis keeps some indices.

    `dtype` is a letter and a size, as `f4`, or `bf` for bfloat16; anything else is only moved.
    """

    def __init__(
        self,
        dtype: str,
        itemsize: int,
        base: Memory,
        base_shape: tuple[int, ...],
        axes: tuple[Indices, ...] | None = None,
        *,
        order: str = "<",
    ) -> None:
        """Take all of a base, or the indices that stay of each axis."""
        self.dtype = dtype
        self.itemsize = itemsize
        self.base = base
        self.base_shape = base_shape
        self.axes = axes if axes is not None else tuple(range(size) for size in base_shape)
        self.order = order
        self.shape = tuple(len(axis) for axis in self.axes)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * itemsize

    def without(self, axis: int, low: int, high: int) -> Array:
        """Return it without some indices of an axis."""
        kept = self.axes[axis]
        if low == 0:
            return self.taking(axis, kept[high:])
        if high == len(kept):
            return self.taking(axis, kept[:low])
        return self.taking(axis, (*kept[:low], *kept[high:]))

    def taking(self, axis: int, kept: Indices) -> Array:
        """Return it with these indices of an axis."""
        axes = (*self.axes[:axis], kept, *self.axes[axis + 1 :])
        return Array(self.dtype, self.itemsize, self.base, self.base_shape, axes, order=self.order)

    def holding(self, data: bytes, shape: tuple[int, ...] | None = None) -> Array:
        """Return an array of the same kind with other bytes."""
        shape = self.shape if shape is None else shape
        return Array(self.dtype, self.itemsize, data, shape, order=self.order)

    # --- bytes

    def chunks(self) -> Iterator[Memory]:
        """Yield the bytes of what is kept, row by row."""
        if not self.size:
            return
        memory = memoryview(self.base)
        whole = len(self.axes)
        while whole and len(self.axes[whole - 1]) == self.base_shape[whole - 1]:
            whole -= 1
        block = math.prod(self.base_shape[whole:]) * self.itemsize
        if not whole:
            yield memory[:block]
            return
        yield from self._rows(memory, 0, 0, whole - 1, block)

    def _rows(
        self, memory: memoryview, axis: int, at: int, last: int, block: int
    ) -> Iterator[Memory]:
        """Yield what is kept from `axis` on; after the last axis that is cut all is in blocks."""
        at *= self.base_shape[axis]
        if axis < last:
            for index in self.axes[axis]:
                yield from self._rows(memory, axis + 1, at + index, last, block)
            return
        kept = self.axes[axis]
        if isinstance(kept, range) and kept.step != 1 and block in _CASTS:
            words = memory[: len(memory) // block * block].cast("B").cast(_CASTS[block])
            yield words[at + kept.start : at + kept.stop : kept.step].tobytes()
            return
        for low, high in _runs(kept):
            yield memory[(at + low) * block : (at + high) * block]

    @cached_property
    def data(self) -> bytes:
        """All bytes of what is kept."""
        return b"".join(self.chunks())

    @cached_property
    def digest(self) -> bytes:
        """A digest of kind, shape and bytes."""
        digest = blake2b(repr((self.dtype, self.order, self.shape)).encode(), digest_size=16)
        for chunk in self.chunks():
            digest.update(chunk)
        return digest.digest()

    # --- values

    @property
    def has_values(self) -> bool:
        """Say whether its elements are numbers that can be looked at, and few."""
        return self.size <= FEW and (self.dtype in _CODES or self.dtype == "bf")

    @cached_property
    def values(self) -> tuple[float, ...]:
        """Its elements as numbers."""
        if self.dtype == "bf":
            halves = struct.unpack(f"<{self.size}H", self.data)
            wide = struct.pack(f"<{self.size}I", *(half << 16 for half in halves))
            return struct.unpack(f"<{self.size}f", wide)
        return struct.unpack(f"{self.order}{self.size}{_CODES[self.dtype]}", self.data)

    def with_values(self, values: Sequence[float]) -> Array | None:
        """Return it with other numbers; None if they are none of its kind."""
        try:
            if self.dtype == "bf":
                wide = struct.unpack(f"<{self.size}I", struct.pack(f"<{self.size}f", *values))
                return self.holding(struct.pack(f"<{self.size}H", *(word >> 16 for word in wide)))
            if self.dtype[0] in "iub":
                values = [int(value) for value in values]
            code = f"{self.order}{self.size}{_CODES[self.dtype]}"
            return self.holding(struct.pack(code, *values))
        except (struct.error, OverflowError, ValueError):
            return None

    @cached_property
    def cost(self) -> int:
        """How far from plain its elements are: digits of those that are not 0."""
        if not self.has_values:
            return self.size if any(bytes(chunk).strip(b"\0") for chunk in self.chunks()) else 0
        return sum(len(repr(value)) for value in self.values if value)


def _runs(kept: Indices) -> Iterator[tuple[int, int]]:
    """Yield stretches of neighbours."""
    if isinstance(kept, range) and kept.step == 1:
        yield kept.start, kept.stop
        return
    start = stop = kept[0]
    for index in kept:
        if index != stop:
            yield start, stop
            start = index
        stop = index + 1
    yield start, stop
