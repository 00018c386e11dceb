"""The variables of a kept call as a person reads them: nearly as Python writes them.

Read from the words of the pickle; nothing is built. Words stop where the text is long enough.
"""

from __future__ import annotations

from relaunch.search.shrink.formats.pickled_arrays import REBUILD, called, global_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from relaunch.search.shrink.formats.captured import Captured
    from relaunch.search.shrink.formats.pickle_graph import Node
    from relaunch.search.shrink.formats.strided import Array

_ATOMS = ("bool", "int", "float", "str", "bytes", "bytearray", "oldstr")
_BRACKETS = {"list": ("[", "]"), "tuple": ("(", ")"), "set": ("{", "}"), "frozenset": ("{", "}")}
_KINDS = {"f": "float", "i": "int", "u": "uint"}
_DEEPEST, _MOST_ITEMS, _MOST_VALUES = 6, 12, 16
_MORE = "..."


def variables(model: Captured) -> list[tuple[str, str]]:
    """Return the name and the text of each variable."""
    graph = model.graph
    kids = graph.nodes[graph.root].kids
    words = _Words(model)
    return [
        (str(graph.nodes[name].value), words.of(value, 0))
        for name, value in zip(kids[::2], kids[1::2], strict=True)
    ]


class _Words:
    def __init__(self, model: Captured) -> None:
        self._graph = model.graph
        self._arrays = model.arrays

    def of(self, number: int, depth: int) -> str:
        """Write one object."""
        if str(number) in self._arrays:
            return _array(self._arrays[str(number)])
        node = self._graph.nodes[number]
        if node.kind == "none":
            return "None"
        if node.kind in _ATOMS:
            return repr(node.value)
        if depth >= _DEEPEST:
            return _MORE
        if node.kind == "dict":
            return f"{{{', '.join(self._pairs(node.kids, depth, ': '))}}}"
        if node.kind in _BRACKETS:
            first, last = _BRACKETS[node.kind]
            comma = "," if node.kind == "tuple" and len(node.kids) == 1 else ""
            return f"{first}{self._items(node.kids, depth)}{comma}{last}"
        return global_name(self._graph, number).rpartition(".")[2] or self._object(node, depth)

    def _items(self, numbers: Sequence[int], depth: int) -> str:
        return ", ".join(_first(self.of(one, depth + 1) for one in numbers))

    def _pairs(self, kids: Sequence[int], depth: int, colon: str) -> list[str]:
        """Write keys and values; the keys of an object without quotes."""
        pairs = zip(kids[::2], kids[1::2], strict=False)
        return _first(
            f"{self.of(key, depth + 1) if colon == ': ' else self._graph.nodes[key].value}"
            f"{colon}{self.of(value, depth + 1)}"
            for key, value in pairs
        )

    def _object(self, node: Node, depth: int) -> str:
        """Write what is called, with what, and which attributes it is given then."""
        graph = self._graph
        name, args = called(graph, node)
        if name == f"{REBUILD}missing":
            return f"<not kept: {graph.nodes[args[0]].value}>"
        if name == f"{REBUILD}built" and len(args) == 2:
            name, args = global_name(graph, args[0]), graph.nodes[args[1]].kids
        if name.endswith("__newobj__") and args:
            name, args = global_name(graph, args[0]), args[1:]
        given = [self._items(args, depth)] if args and not name.startswith(REBUILD) else []
        for _, numbers in node.after:
            state = graph.nodes[numbers[-1]]
            inner = graph.nodes[state.kids[0]] if state.kind == "tuple" and state.kids else state
            if inner.kind == "dict":
                given += self._pairs(inner.kids, depth, "=")
        return f"{name.rpartition('.')[2] or 'object'}({', '.join(given)})"


def _first(texts: Iterable[str]) -> list[str]:
    found: list[str] = []
    for text in texts:
        if len(found) == _MOST_ITEMS:
            return [*found, _MORE]
        found.append(text)
    return found


def _array(array: Array) -> str:
    """Write `float32 (1, 2): nan 0.0`."""
    kind = "bfloat16" if array.dtype == "bf" else _KINDS.get(array.dtype[0], "bool")
    bits = str(8 * array.itemsize) if array.dtype[0] in _KINDS else ""
    head = f"{kind}{bits} {array.shape}"
    if not array.size or not array.has_values:
        return head
    values = [f"{value:g}" for value in array.values[:_MOST_VALUES]]
    more = [_MORE] if array.size > _MOST_VALUES else []
    return f"{head}: {' '.join([*values, *more])}"
