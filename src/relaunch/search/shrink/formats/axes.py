"""Passes over arrays: indices of axes that belong together, then plainer values, then fewer axes.

Axes of one length often mean the same: rows and columns of a covariance, the batch of inputs and
labels. They are cut together first, and then each alone.
"""

from __future__ import annotations

import math

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.formats.cuts import Cuts, Ways, after_cut
from relaunch.search.shrink.model import Smaller
from relaunch.search.shrink.pieces import Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Protocol

    from relaunch.search.shrink.formats.strided import Array
    from relaunch.search.shrink.model import Model, Pass

    class Arrayed(Model, Protocol):
        """A model that has arrays by name."""

        @property
        def arrays(self) -> Mapping[str, Array]:
            """The arrays."""

        def with_arrays(self, changes: Mapping[str, Array]) -> Arrayed:
            """Return the model with some of them changed."""


Axes = tuple[tuple[str, int], ...]
"""Axes that are cut together: the array, and which of its axes."""
_SINGLE = 256
"""Up to so many elements of an array are made plain one by one."""


class Tied(Record):
    """A place among the indices of axes that are cut together, and which axes come after."""

    groups: tuple[Axes, ...]
    pieces: Pieces


def ties(arrays: Mapping[str, Array]) -> list[Axes]:
    """Return what is cut together: of all arrays, of one array, then each axis alone."""
    lengths: dict[int, list[tuple[str, int]]] = {}
    for name, array in arrays.items():
        for axis, length in enumerate(array.shape):
            if length > 1:
                lengths.setdefault(length, []).append((name, axis))
    everywhere = [tuple(axes) for axes in lengths.values() if len({name for name, _ in axes}) > 1]
    alone: list[Axes] = []
    for name, array in sorted(arrays.items(), key=lambda item: -item[1].nbytes):
        mine = [tuple(one for one in axes if one[0] == name) for axes in lengths.values()]
        alone += (axes for axes in mine if len(axes) > 1)
        alone += (((name, axis),) for axis, length in enumerate(array.shape) if length > 1)
    everywhere.sort(key=lambda axes: -sum(arrays[name].nbytes for name in {n for n, _ in axes}))
    return list(dict.fromkeys([*everywhere, *alone]))


class AxisCuts:
    """Drops indices of axes, in chunks; at least one stays."""

    name = "axes"
    phase = 0

    def begin(self, model: Arrayed) -> Tied | None:
        """Return the first chunk of the first axes."""
        return self._enter(model, tuple(ties(model.arrays)))

    def attempt(self, model: Arrayed, cursor: Tied) -> Smaller | None:
        """Return the model without the indices."""
        ((low, high),) = cursor.pieces.drops
        axes = cursor.groups[0]
        length = _length(model, axes)
        if high > length or high - low >= length:
            return None
        changes: dict[str, Array] = {}
        for name, axis in axes:
            changes[name] = changes.get(name, model.arrays[name]).without(axis, low, high)
        smaller = model.with_arrays(changes)
        return Smaller(model=smaller, what=f"{_shapes(changes)} for {_shapes(model.arrays, axes)}")

    def failed(self, model: Arrayed, cursor: Tied) -> Tied | None:
        """Go on with another chunk, or with the next axes."""
        after = pieces.failed(cursor.pieces)
        if after is not None:
            return cursor.but(pieces=after)
        return self._enter(model, cursor.groups[1:])

    def passed(self, model: Arrayed, cursor: Tied) -> Tied | None:
        """Go on in what is left of the axes."""
        after = after_cut(cursor.pieces, _length(model, cursor.groups[0]))
        if after is not None:
            return cursor.but(pieces=after)
        return self._enter(model, cursor.groups[1:])

    def _enter(self, model: Arrayed, groups: tuple[Axes, ...]) -> Tied | None:
        while groups:
            length = _length(model, groups[0])
            first = pieces.begin(length, is_one_needed=True) if length > 1 else None
            if first is not None:
                return Tied(groups=groups, pieces=first)
            groups = groups[1:]
        return None


def _length(model: Arrayed, axes: Axes) -> int:
    """Return the length of axes that are cut together; 0 if they differ by now."""
    lengths = {_axis_length(model, name, axis) for name, axis in axes}
    return lengths.pop() if len(lengths) == 1 else 0


def _axis_length(model: Arrayed, name: str, axis: int) -> int:
    array = model.arrays.get(name)
    return array.shape[axis] if array is not None and axis < len(array.shape) else 0


def _shapes(arrays: Mapping[str, Array], axes: Axes = ()) -> str:
    names = dict.fromkeys(name for name, _ in axes) or arrays
    return ", ".join(f"{tuple(arrays[name].shape)}" for name in list(names)[:3])


# --- every other index


def _halved(model: Arrayed, place: int, way: int) -> Smaller | None:
    changes: dict[str, Array] = {}
    for name, axis in ties(model.arrays)[place]:
        array = changes.get(name, model.arrays[name])
        changes[name] = array.taking(axis, array.axes[axis][way::2])
    return Smaller(model=model.with_arrays(changes), what=f"every other index: {_shapes(changes)}")


def _halvings(model: Arrayed) -> list[int]:
    return [2 if _length(model, axes) > 3 else 0 for axes in ties(model.arrays)]


# --- values


def _plain(array: Array) -> Iterator[Array]:
    """Yield arrays of the same shape that are plainer, the plainest first."""
    zeros = array.holding(bytes(array.nbytes)) if array.nbytes <= 1 << 26 else None
    if zeros is not None:
        yield zeros
    if not array.has_values:
        return
    wanted: list[list[float]] = [[1] * array.size, [array.values[0]] * array.size]
    wanted += ([_rounded(one, digits) for one in array.values] for digits in (0, 1, 2, 4))
    for values in wanted:
        plainer = array.with_values(values)
        if plainer is not None:
            yield plainer


def _rounded(value: float, digits: int) -> float:
    if isinstance(value, int) or not math.isfinite(value):
        return value
    if digits == 0:
        return float(round(value))
    return float(f"{value:.{digits}g}")


def _all_ways(model: Arrayed) -> list[int]:
    return [7 if array.cost else 0 for array in model.arrays.values()]


def _all_plain(model: Arrayed, place: int, way: int) -> Smaller | None:
    name, array = list(model.arrays.items())[place]
    plainer = next((one for at, one in enumerate(_plain(array)) if at == way), None)
    if plainer is None or plainer.cost >= array.cost:
        return None
    return Smaller(model=model.with_arrays({name: plainer}), what=f"plainer values in {name}")


def _odd(array: Array, plain: tuple[float, ...]) -> list[int]:
    """Return the elements that are none of the plain ones."""
    if not array.has_values:
        return []
    return [at for at, value in enumerate(array.values) if value not in plain]


def _set_to(model: Arrayed, place: int, low: int, high: int, new: float) -> Smaller | None:
    name, array = list(model.arrays.items())[place]
    odd = _odd(array, (0,) if new == 0 else (0, 1))
    values = list(array.values)
    for at in odd[low:high]:
        values[at] = new
    plainer = array.with_values(values)
    if plainer is None:
        return None
    what = f"{high - low:,} values of {name} are {new}"
    return Smaller(model=model.with_arrays({name: plainer}), what=what)


def _single_ways(model: Arrayed) -> list[int]:
    return [
        4 if value not in (0, 1) else 0
        for array in model.arrays.values()
        if array.has_values and array.size <= _SINGLE
        for value in array.values
    ]


def _single(model: Arrayed, place: int, way: int) -> Smaller | None:
    for name, array in model.arrays.items():
        if not array.has_values or array.size > _SINGLE:
            continue
        if place < array.size:
            values = list(array.values)
            values[place] = _rounded(values[place], (0, 1, 2, 4)[way])
            plainer = array.with_values(values)
            if plainer is None or plainer.cost >= array.cost:
                return None
            return Smaller(
                model=model.with_arrays({name: plainer}), what=f"a value of {name} rounded"
            )
        place -= array.size
    return None


# --- shapes that change what an array is: late


def _ranks(model: Arrayed) -> list[int]:
    return [array.shape.count(1) for array in model.arrays.values()]


def _flatter(model: Arrayed, place: int, way: int) -> Smaller | None:
    name, array = list(model.arrays.items())[place]
    axis = [at for at, length in enumerate(array.shape) if length == 1][way]
    shape = (*array.shape[:axis], *array.shape[axis + 1 :])
    flatter = array.holding(array.data, shape)
    return Smaller(model=model.with_arrays({name: flatter}), what=f"{shape} for {array.shape}")


def _emptied(model: Arrayed, place: int, way: int) -> Smaller | None:
    changes: dict[str, Array] = {}
    for name, axis in ties(model.arrays)[place]:
        changes[name] = changes.get(name, model.arrays[name]).taking(axis, range(0))
    return Smaller(model=model.with_arrays(changes), what=f"empty: {_shapes(changes)}")


def _elements(plain: tuple[float, ...], new: float) -> Cuts:
    return Cuts(
        f"values to {new}",
        lambda model: [len(_odd(array, plain)) for array in model.arrays.values()],
        lambda model, place, low, high: _set_to(model, place, low, high, new),
        phase=1,
    )


AXES: list[Pass] = [AxisCuts(), Ways("every other", _halvings, _halved, phase=1)]
VALUES: list[Pass] = [
    Ways("plain arrays", _all_ways, _all_plain),
    _elements((0,), 0),
    _elements((0, 1), 1),
    Ways("single values", _single_ways, _single, phase=1),
]
SHAPES: list[Pass] = [
    Ways("fewer axes", _ranks, _flatter, phase=2),
    Ways("no indices", lambda model: [1] * len(ties(model.arrays)), _emptied, phase=2),
]
