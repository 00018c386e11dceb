"""Arrays of numpy and tensors of torch in a pickle: found by the words that would build them."""

from __future__ import annotations

import math

from relaunch.search.shrink.formats.pickle_graph import Node, reached
from relaunch.search.shrink.formats.strided import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.search.shrink.formats.pickle_graph import Graph

REBUILD = "_relaunch_rebuild."
"""What kept calls call to make things again: `inside/capture/rebuild.py`."""
_STORAGES = {
    "Double": "f8",
    "Float": "f4",
    "Half": "f2",
    "BFloat16": "bf",
    "Long": "i8",
    "Int": "i4",
    "Short": "i2",
    "Char": "i1",
    "Byte": "u1",
    "Bool": "b1",
}


def global_name(graph: Graph, number: int) -> str:
    """Return the dotted name of a class or function; empty for what is none."""
    node = graph.nodes[number]
    if node.kind == "global":
        return str(node.value).replace(" ", ".")
    if node.kind == "stack_global":
        return ".".join(str(graph.nodes[kid].value) for kid in node.kids)
    if node.kind == "reduce" and global_name(graph, node.kids[0]) == f"{REBUILD}named":
        return ".".join(str(graph.nodes[kid].value) for kid in graph.nodes[node.kids[1]].kids)
    return ""


def called(graph: Graph, node: Node) -> tuple[str, tuple[int, ...]]:
    """Return what is called to build an object, and the arguments."""
    if node.kind != "reduce" or graph.nodes[node.kids[1]].kind != "tuple":
        return "", ()
    return global_name(graph, node.kids[0]), graph.nodes[node.kids[1]].kids


def whole(graph: Graph, number: int) -> tuple[int, ...] | None:
    """Return a tuple of whole numbers."""
    kids = [graph.nodes[kid] for kid in graph.nodes[number].kids]
    if graph.nodes[number].kind != "tuple" or any(kid.kind != "int" for kid in kids):
        return None
    return tuple(int(str(kid.value)) for kid in kids)


class Fresh:
    """New nodes of a graph."""

    def __init__(self, graph: Graph) -> None:
        """Number them after those that there are."""
        self.graph = graph
        self.made: dict[int, Node] = {}
        self._next = graph.spare

    def add(self, node: Node) -> int:
        """Add a node; returns its number."""
        self.made[self._next] = node
        self._next += 1
        return self._next - 1

    def ints(self, values: tuple[int, ...]) -> int:
        """Add a tuple of whole numbers."""
        kids = tuple(self.add(self.graph.int(value)) for value in values)
        return self.add(Node("tuple", kids=kids))


# --- numpy


def numpy_arrays(graph: Graph) -> dict[str, Array]:
    """Return the arrays by the number of their node."""
    found: dict[str, Array] = {}
    for number in reached(graph) if graph.has_numpy else ():
        if graph.nodes[number].kind == "reduce":
            parts = _numpy_parts(graph, number)
            array = _numpy_array(graph, *parts) if parts else None
            if array is not None:
                found[str(number)] = array
    return found


def _numpy_parts(graph: Graph, number: int) -> tuple[int, int, int, bool] | None:
    """Return the nodes of shape, kind and data, and whether columns come first."""
    node = graph.nodes[number]
    name, args = called(graph, node)
    if name.startswith("numpy.") and name.endswith("multiarray._reconstruct"):
        if len(node.after) != 1 or node.after[0][0] != "build":
            return None
        state = graph.nodes[node.after[0][1][0]].kids
        if len(state) != 5:
            return None
        return state[1], state[2], state[4], _is_true(graph.nodes[state[3]])
    if name.startswith("numpy.") and name.endswith("numeric._frombuffer") and len(args) == 4:
        return args[2], args[1], args[0], graph.nodes[args[3]].value == "F"
    return None


def _is_true(node: Node) -> bool:
    return bytes(node.raw) in (b"\x88", b"I01\n")


def _numpy_array(graph: Graph, shape: int, kind: int, data: int, fortran: bool) -> Array | None:
    sizes, dtype, held = whole(graph, shape), graph.nodes[kind], _bytes_of(graph, data)
    name, args = called(graph, dtype)
    if sizes is None or held is None or name != "numpy.dtype" or not args:
        return None
    count = math.prod(sizes)
    if not count or len(held) % count:
        return None
    state = graph.nodes[dtype.after[0][1][0]].kids if dtype.after else ()
    order = graph.nodes[state[1]].value if len(state) > 1 else "<"
    return Array(
        str(graph.nodes[args[0]].value),
        len(held) // count,
        held,
        sizes[::-1] if fortran else sizes,
        order=">" if order == ">" else "<",
    )


def _bytes_of(graph: Graph, number: int) -> bytes | None:
    node = graph.nodes[number]
    if node.kind in ("bytes", "bytearray"):
        value: Any = node.value
        return bytes(value)
    name, args = called(graph, node)
    if name == "_codecs.encode" and args and graph.nodes[args[0]].kind == "str":
        return str(graph.nodes[args[0]].value).encode("latin-1")
    return None


def with_numpy_array(graph: Graph, number: int, array: Array) -> Graph:
    """Return the graph with another array at a node."""
    parts = _numpy_parts(graph, number)
    assert parts is not None
    shape, _, data, fortran = parts
    fresh = Fresh(graph)
    new_shape = fresh.ints(array.shape[::-1] if fortran else array.shape)
    new_data = _new_bytes(fresh, data, array.data)
    node = graph.nodes[number]
    swap = {shape: new_shape, data: new_data}
    if node.after:
        state = graph.nodes[node.after[0][1][0]]
        told = fresh.add(state.but(kids=_swapped(state.kids, swap)))
        changed = node.but(after=(("build", (told,)),))
    else:
        args = graph.nodes[node.kids[1]]
        changed = node.but(kids=(node.kids[0], fresh.add(args.but(kids=_swapped(args.kids, swap)))))
    return graph.but({**fresh.made, number: changed})


def _swapped(numbers: tuple[int, ...], swap: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(swap.get(one, one) for one in numbers)


def _new_bytes(fresh: Fresh, number: int, data: bytes) -> int:
    graph, node = fresh.graph, fresh.graph.nodes[number]
    if node.kind != "reduce":
        return fresh.add(graph.text(node.kind, data))
    args = graph.nodes[node.kids[1]].kids
    text = fresh.add(graph.text("str", data.decode("latin-1")))
    return fresh.add(
        node.but(kids=(node.kids[0], fresh.add(Node("tuple", kids=(text, *args[1:])))))
    )


# --- torch


class Tensor:
    """A tensor: where its storage is, and how its axes lie in it."""

    __slots__ = ("array", "order", "storage")

    def __init__(self, storage: str, order: tuple[int, ...], array: Array) -> None:
        """Take the axes from the widest stride to the narrowest."""
        self.storage = storage
        self.order = order
        self.array = array


def tensors(graph: Graph, storages: Mapping[str, memoryview]) -> dict[str, Tensor]:
    """Return the tensors by the number of their node, but for those that cannot be cut."""
    found = {str(number): _tensor(graph, number, storages) for number in reached(graph)}
    return {name: tensor for name, tensor in found.items() if tensor is not None}


def storage_of(graph: Graph, number: int) -> tuple[str, str] | None:
    """Return kind and name of the storage that a persistent id refers to."""
    node = graph.nodes[number]
    told = graph.nodes[node.kids[0]].kids if node.kind == "persid" else ()
    if len(told) != 5 or graph.nodes[told[0]].value != "storage":
        return None
    kind = global_name(graph, told[1]).removeprefix("torch.").removesuffix("Storage")
    return kind, str(graph.nodes[told[2]].value)


def _tensor(graph: Graph, number: int, storages: Mapping[str, memoryview]) -> Tensor | None:
    name, args = called(graph, graph.nodes[number])
    if name != "torch._utils._rebuild_tensor_v2" or len(args) < 4:
        return None
    storage, offset = storage_of(graph, args[0]), graph.nodes[args[1]].value
    shape, strides = whole(graph, args[2]), whole(graph, args[3])
    if storage is None or shape is None or strides is None or not isinstance(offset, int):
        return None
    kind, key = storage
    if kind not in _STORAGES or key not in storages or not math.prod(shape):
        return None
    itemsize = int(_STORAGES[kind][1:]) if kind != "BFloat16" else 2
    order = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
    base = _base_shape([shape[axis] for axis in order], [strides[axis] for axis in order])
    if base is None:
        return None
    memory = storages[key][offset * itemsize :]
    axes = tuple(range(shape[axis]) for axis in order)
    return Tensor(key, order, Array(_STORAGES[kind], itemsize, memory, base, axes))


def _base_shape(shape: list[int], strides: list[int]) -> tuple[int, ...] | None:
    """Return the block of which a tensor sees the first of each axis; None if there is none."""
    if not shape:
        return ()
    strides = [stride if size > 1 else 0 for size, stride in zip(shape, strides, strict=True)]
    after = 1
    for at in range(len(shape) - 1, -1, -1):
        if shape[at] == 1:
            strides[at] = after
        after = strides[at] * max(1, shape[at])
    if strides[-1] != 1 or any(stride < 1 for stride in strides):
        return None
    base = [shape[0]]
    for wide, narrow, size in zip(strides, strides[1:], shape[1:], strict=False):
        if wide % narrow or wide // narrow < size:
            return None
        base.append(wide // narrow)
    return tuple(base)


def with_tensor(graph: Graph, number: int, tensor: Tensor, array: Array, storage: str) -> Graph:
    """Return the graph with a tensor that has a storage of its own."""
    node = graph.nodes[number]
    args = graph.nodes[node.kids[1]]
    holder = graph.nodes[args.kids[0]]
    told = graph.nodes[holder.kids[0]]
    fresh = Fresh(graph)
    key, count = fresh.add(graph.text("str", storage)), fresh.add(graph.int(array.size))
    persistent = fresh.add(told.but(kids=(*told.kids[:2], key, told.kids[3], count)))
    held = fresh.add(holder.but(kids=(persistent,)))
    shape, strides = [0] * len(tensor.order), [0] * len(tensor.order)
    step = 1
    for axis, size in reversed(list(zip(tensor.order, array.shape, strict=True))):
        shape[axis], strides[axis] = size, step
        step *= max(1, size)
    zero = fresh.add(graph.int(0))
    sizes, steps = fresh.ints(tuple(shape)), fresh.ints(tuple(strides))
    called = fresh.add(args.but(kids=(held, zero, sizes, steps, *args.kids[4:])))
    return graph.but({**fresh.made, number: node.but(kids=(node.kids[0], called))})
