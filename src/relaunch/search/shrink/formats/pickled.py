"""Pickles that become smaller without ever being unpickled here.

Items of lists, dicts, sets and tuples go, attributes of objects too; then values become plain and
strings short. What a class is called with keeps its number of arguments, and the insides of
numpy, pandas and torch objects are left alone: their bytes belong to their shapes.
"""

from __future__ import annotations

import fnmatch
from functools import cached_property
from pathlib import Path

from relaunch.errors import UsageError
from relaunch.search.shrink.formats.axes import AXES, SHAPES, VALUES
from relaunch.search.shrink.formats.cuts import Cuts, Ways
from relaunch.search.shrink.formats.pickle_graph import BrokenPickle, Node, dump, parse, reached
from relaunch.search.shrink.formats.pickled_arrays import (
    REBUILD,
    global_name,
    numpy_arrays,
    with_numpy_array,
)
from relaunch.search.shrink.formats.whole import AS_BYTES, Whole
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from relaunch.search.shrink.formats.pickle_graph import Graph
    from relaunch.search.shrink.formats.strided import Array
    from relaunch.search.shrink.model import Pass

_TEXTS = ("str", "bytes", "bytearray", "oldstr")
_OPAQUE = (
    "numpy.",
    "pandas.",
    "torch._",
    "pyarrow.",
    "scipy.",
    "datetime.",
    "_codecs.",
    "decimal.",
)
_UNWRAPPED = 4
"""An object is replaced by one of its so many largest parts."""
_FREE, _FIXED, _ARGS = range(3)
"""A value; a tuple whose length is fixed, as a state; what something is called with."""
_GROWN = ("append", "set", "add")


def read(path: str, *, keep: Sequence[str] = ()) -> Pickled:
    """Read a pickle; `keep` are patterns of keys that stay."""
    data = Path(path).read_bytes()
    try:
        graph = parse(data)
    except BrokenPickle as error:
        raise UsageError(f"`{path}` is no pickle: {error}", hint=AS_BYTES) from None
    return Pickled(graph, keep=tuple(keep), original=data)


class Group:
    """Items that can go from an object: from its own, or from those that it is given later."""

    __slots__ = ("after", "number", "width")

    def __init__(self, number: int, after: int, width: int) -> None:
        """Take which list of a node it is: -1 are its own."""
        self.number = number
        self.after = after
        self.width = width


class Pickled(Whole):
    """A pickle as a graph."""

    def __init__(
        self, graph: Graph, *, keep: tuple[str, ...] = (), original: bytes | None = None
    ) -> None:
        """Take the graph, and the bytes it was read from."""
        self.graph = graph
        self.keep = keep
        self._original = original

    @cached_property
    def data(self) -> bytes:
        """The pickle."""
        return dump(self.graph) if self._original is None else self._original

    @cached_property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, then fewer values that are not plain, plainer arrays, fewer axes."""
        plain = sum(1 for one in self.values if _is_plain(self.graph.nodes[one]))
        cost = sum(array.cost for array in self.arrays.values())
        axes = sum(len(array.shape) for array in self.arrays.values())
        return (self.bytes, len(self.values) - plain, cost, axes)

    def passes(self) -> Sequence[Pass]:
        """Return the passes: items, whole values, parts in their place, strings."""
        return PASSES

    def but(self, changes: dict[int, Node], what: str, root: int | None = None) -> Smaller:
        """Return the pickle with some objects changed."""
        return Smaller(model=self.made(self.graph.but(changes, root)), what=what)

    def made(self, graph: Graph) -> Pickled:
        """Return the same file with another graph."""
        return Pickled(graph, keep=self.keep)

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The numpy arrays in it."""
        return numpy_arrays(self.graph)

    def with_arrays(self, changes: Mapping[str, Array]) -> Pickled:
        """Return the pickle with some arrays changed."""
        graph = self.graph
        for name, array in changes.items():
            graph = with_numpy_array(graph, int(name), array)
        return self.made(graph)

    @cached_property
    def _seen(self) -> tuple[list[Group], list[int]]:
        return _places(self.graph)

    @property
    def groups(self) -> list[Group]:
        """Lists of items, outer ones first."""
        return self._seen[0]

    @property
    def values(self) -> list[int]:
        """Objects that another value may stand for: all but keys, classes and their arguments."""
        return self._seen[1]

    @cached_property
    def texts(self) -> list[int]:
        """Strings among the values."""
        nodes = self.graph.nodes
        return [one for one in self.values if nodes[one].kind in _TEXTS and nodes[one].value]

    @cached_property
    def held(self) -> set[int]:
        """Objects that have a key in them that is to be kept."""
        if not self.keep:
            return set()
        held = {
            group.number
            for group in self.groups
            if group.width == 2 and any(_is_kept(self, key) for key in self.items(group)[::2])
        }
        above: dict[int, list[int]] = {}
        for number in reached(self.graph):
            for kid in self.graph.nodes[number].under():
                above.setdefault(kid, []).append(number)
        todo = list(held)
        while todo:
            new = [one for one in above.get(todo.pop(), ()) if one not in held]
            held.update(new)
            todo += new
        return held

    def items(self, group: Group) -> tuple[int, ...]:
        """Return the items of a group; of a dict keys and values in turn."""
        node = self.graph.nodes[group.number]
        return node.kids if group.after < 0 else node.after[group.after][1]


def _places(graph: Graph) -> tuple[list[Group], list[int]]:
    """Return the groups and the values, each object once, in the order of writing."""
    groups: list[Group] = []
    values: list[int] = []
    seen: set[int] = set()
    stack = [(graph.root, _FREE)]
    while stack:
        number, role = stack.pop()
        if number in seen:
            continue
        seen.add(number)
        node = graph.nodes[number]
        if role != _ARGS:
            values.append(number)
        is_loose = node.kind == "tuple" and role == _FREE
        if node.kind in ("list", "dict", "set", "frozenset") or is_loose:
            groups.append(Group(number, -1, 2 if node.kind == "dict" else 1))
        if is_opaque(graph, node):
            continue
        under: list[tuple[int, int]] = list(_under(node))
        for at, (how, numbers) in enumerate(node.after):
            if how in ("build", "effect"):
                under.append((numbers[-1], _FIXED))
            else:
                groups.append(Group(number, at, 2 if how == "set" else 1))
                under += ((one, _FREE) for one in (numbers[1::2] if how == "set" else numbers))
        stack += reversed(under)
    return groups, values


def _under(node: Node) -> Iterable[tuple[int, int]]:
    """Yield the children that may be changed, and what they are there."""
    if node.kind == "dict":
        return ((kid, _FREE) for kid in node.kids[1::2])
    if node.kind in ("reduce", "newobj", "newobj_ex"):
        return ((kid, _ARGS) for kid in node.kids[1:])
    if node.kind in ("stack_global", "obj", "inst", "persid", "readonly"):
        return ()
    return ((kid, _FREE) for kid in node.kids)


def is_opaque(graph: Graph, node: Node) -> bool:
    """Say whether an object is left as it is or goes as a whole."""
    if node.kind not in ("reduce", "newobj", "newobj_ex", "obj"):
        return False
    name = global_name(graph, node.kids[0])
    args = graph.nodes[node.kids[1]].kids if len(node.kids) > 1 else ()
    if args and name.startswith("copyreg"):
        name = global_name(graph, args[0])
    elif args and name == f"{REBUILD}built":
        return _is_built_opaque(graph, args)
    if name in (f"{REBUILD}container", f"{REBUILD}objects"):
        return False
    return name.startswith((*_OPAQUE, REBUILD))


def _is_built_opaque(graph: Graph, args: tuple[int, ...]) -> bool:
    """Look through what a kept call says of an object: what makes it, and of which class."""
    inner = graph.nodes[args[1]].kids if len(args) > 1 else ()
    return any(global_name(graph, one).startswith(_OPAQUE) for one in (args[0], *inner[:1]))


# --- items


def _sizes(model: Pickled) -> list[int]:
    return [len(model.items(group)) // group.width for group in model.groups]


def _without(model: Pickled, at: int, low: int, high: int) -> Smaller | None:
    group = model.groups[at]
    items = model.items(group)
    low, high = low * group.width, high * group.width
    kept = items[:low] + _held(model, group, items[low:high]) + items[high:]
    if len(kept) == len(items):
        return None
    node = model.graph.nodes[group.number]
    if group.after < 0:
        smaller = node.but(kids=kept)
    else:
        after = list(node.after)
        after[group.after] = (after[group.after][0], kept)
        smaller = node.but(after=tuple(after))
    gone, of = (len(items) - len(kept)) // group.width, len(items) // group.width
    return model.but({group.number: smaller}, f"without {gone:,} of {of:,} items")


def _held(model: Pickled, group: Group, items: tuple[int, ...]) -> tuple[int, ...]:
    """Return the items that have a key that is to be kept, or something in them has."""
    if not model.keep:
        return ()
    if group.width == 1:
        return tuple(item for item in items if item in model.held)
    return tuple(
        number
        for key, value in zip(items[::2], items[1::2], strict=True)
        if value in model.held or _is_kept(model, key)
        for number in (key, value)
    )


def _is_kept(model: Pickled, key: int) -> bool:
    name = str(model.graph.nodes[key].value)
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in model.keep)


# --- values


def _is_plain(node: Node) -> bool:
    if node.kind in ("none", "bool", "global", "stack_global"):
        return True
    if node.kind in _TEXTS or node.kind in ("int", "float"):
        return not node.value
    return not any(node.under())


def _plainer(model: Pickled, number: int) -> list[Node]:
    """Return what is simpler than an object: nothing of its kind, then None."""
    graph, node = model.graph, model.graph.nodes[number]
    if number in model.held or node.kind in ("none", "bool", "global", "stack_global", "other"):
        return []
    if node.kind in _TEXTS:
        empty = "" if isinstance(node.value, str) else b""
        return [graph.text(node.kind, empty)] if node.value else []
    if node.kind == "int":
        return [graph.int(0)] if node.value else []
    if node.kind == "float":
        return [graph.float()] if node.value else []
    return [graph.none()]


def _ways(model: Pickled) -> list[int]:
    return [len(_plainer(model, number)) for number in model.values]


def _plain(model: Pickled, place: int, way: int) -> Smaller | None:
    number = model.values[place]
    plain = _plainer(model, number)[way]
    shown = "None" if plain.kind == "none" else repr(plain.value)
    return model.but({number: plain}, f"{shown} for a value")


# --- parts in the place of the whole


def _largest_parts(model: Pickled, number: int) -> list[int]:
    node = model.graph.nodes[number]
    if number in model.held or is_opaque(model.graph, node):
        return []
    parts = [kid for kid, role in _under(node) if role == _FREE]
    parts += (one for how, numbers in node.after if how in _GROWN for one in numbers)
    parts = [one for one in dict.fromkeys(parts) if one != number]
    return sorted(parts, key=lambda one: -len(list(model.graph.nodes[one].under())))[:_UNWRAPPED]


def _unwraps(model: Pickled) -> list[int]:
    return [len(_largest_parts(model, number)) for number in model.values]


def _unwrapped(model: Pickled, place: int, way: int) -> Smaller | None:
    number = model.values[place]
    part = _largest_parts(model, number)[way]
    if number == model.graph.root:
        return model.but({}, "a part for the whole", root=part)
    if number in reached(model.graph.but({}, root=part)):
        return None
    return model.but({number: model.graph.nodes[part]}, "a part for the whole")


# --- strings


def _shorter(model: Pickled, at: int, low: int, high: int) -> Smaller | None:
    number = model.texts[at]
    node = model.graph.nodes[number]
    value: Any = node.value
    text = value[:low] + value[high:]
    if isinstance(text, bytearray):
        text = bytes(text)
    what = f"a string shorter by {high - low:,}"
    return model.but({number: model.graph.text(node.kind, text)}, what)


PASSES: list[Pass] = [
    Cuts("items", _sizes, _without),
    *AXES,
    Ways("values", _ways, _plain),
    Ways("parts", _unwraps, _unwrapped),
    Cuts(
        "strings",
        lambda model: [len(model.graph.nodes[one].value) for one in model.texts],
        _shorter,
    ),
    *VALUES,
    *SHAPES,
]
