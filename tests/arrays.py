"""Arrays without numbers: they have a shape and do to it what those of torch and numpy do.

Also written into the projects of tests, so that these run where there is no torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any


class Array:
    """A shape, a type of elements, and the operations that a model needs."""

    dtype = "float32"

    def __init__(self, *shape: int) -> None:
        self.shape = tuple(shape)

    def size(self, side: int | None = None) -> Any:
        return self.shape if side is None else self.shape[side]

    def view(self, *sides: int) -> Array:
        known = -prod(sides) if -1 in sides else prod(sides)
        assert prod(self.shape) % known == 0
        return Array(*[prod(self.shape) // known if one == -1 else one for one in sides])

    def transpose(self, one: int, other: int) -> Array:
        sides = list(self.shape)
        sides[one], sides[other] = sides[other], sides[one]
        return Array(*sides)

    def contiguous(self) -> Array:
        return Array(*self.shape)

    def sum(self, side: int) -> Array:
        sides = list(self.shape)
        del sides[side]
        return Array(*sides)

    def split(self, size: int, dim: int) -> list[Array]:
        sides = list(self.shape)
        count = sides[dim] // size
        sides[dim] = size
        return [Array(*sides) for _ in range(count)]

    def __matmul__(self, other: Array) -> Array:
        assert self.shape[-1] == other.shape[-2]
        return Array(*self.shape[:-1], other.shape[-1])

    def __add__(self, other: object) -> Array:
        return Array(*self.shape)

    __mul__ = __sub__ = __truediv__ = __add__

    def __getitem__(self, index: int) -> Array:
        return Array(*self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (Array(*self.shape[1:]) for _ in range(self.shape[0]))


class Linear:
    """A layer that changes the last side."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self._outputs = outputs

    def __call__(self, x: Array) -> Array:
        return Array(*x.shape[:-1], self._outputs)


def ones(*shape: int) -> Array:
    return Array(*shape)


def stack(arrays: Sequence[Array]) -> Array:
    return Array(len(arrays), *arrays[0].shape)
