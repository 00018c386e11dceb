"""A kept call of a failed trial: its arrays lose rows, its lists items, and it can be replayed.

The variables of one frame are a pickle, the memory of arrays lies beside. Nothing of it is loaded
here. What is written has that frame alone, and only the memory that is still seen.
"""

from __future__ import annotations

import glob
import json
import math
import os
import shutil
from _blake2 import blake2b
from functools import cached_property

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.search.shrink.formats.arrays import mapped
from relaunch.search.shrink.formats.pickle_graph import BrokenPickle, Node, dump, parse, reached
from relaunch.search.shrink.formats.pickled import PASSES, Pickled
from relaunch.search.shrink.formats.pickled_arrays import REBUILD, Fresh, called, whole
from relaunch.search.shrink.formats.strided import Array
from relaunch.search.shrink.formats.whole import digest

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.search.shrink.formats.pickle_graph import Graph
    from relaunch.search.shrink.model import Pass

_ALIGNED = 64
_TORCH = {
    "float64": "f8",
    "float32": "f4",
    "float16": "f2",
    "bfloat16": "bf",
    "bool": "b1",
    "uint8": "u1",
    **{f"int{8 * size}": f"i{size}" for size in (1, 2, 4, 8)},
}


def read(
    path: str,
    *,
    keep: Sequence[str] = (),
    frame: int | None = None,
    digests: Mapping[str, str] = {},
) -> Captured:
    """Read a capture; `frame` is the call that is replayed, if not the innermost kept one.

    Only files with these digests are read; any where there are none.
    """
    try:
        facts: dict[str, Any] = json.loads(_bytes(path, "facts.json", digests))
        kept = [at for at, one in enumerate(facts["frames"]) if one["kept"]]
        chosen = kept[-1] if frame is None else frame
        graphs = {at: parse(_bytes(path, values_file(path, str(at)), digests)) for at in kept}
        graph = graphs[chosen]
    except (OSError, ValueError, KeyError, IndexError) as error:
        why = str(error) if isinstance(error, BrokenPickle) else type(error).__name__
        raise UsageError(f"`{path}` is no kept call: {why}", hint="rl replay --list") from None
    told = facts["frames"][chosen]
    names = [*told["positional"], *told["keywords"], told["star"], told["stars"]]
    whole_call = [glob.escape(name) for name in names if name]
    call = Call(
        path=path,
        digests=digests,
        facts=facts,
        frame=chosen,
        memory=mapped(os.path.join(path, "memory")),
        of_frames=frozenset(piece for one in graphs.values() for piece in _pieces(one)),
    )
    return Captured(graph, call, {}, keep=(*keep, *whole_call))


def values_file(path: str, name: str) -> str:
    """Return the file of a frame or of the globals: of plain data, or a pickle."""
    plain = f"{name}.plain"
    return plain if os.path.exists(os.path.join(path, plain)) else f"{name}.pickle"


def _bytes(path: str, name: str, digests: Mapping[str, str]) -> bytes:
    with open(os.path.join(path, name), "rb") as file:
        data = file.read()
    if digests and f"{len(data)}-{blake2b(data, digest_size=32).hexdigest()}" != digests.get(name):
        raise ValueError(f"{name} was changed while it was read")
    return data


class Call(Record):
    """A capture as it was read."""

    path: str
    digests: Mapping[str, str]
    facts: Mapping[str, Any]
    frame: int
    memory: memoryview
    of_frames: frozenset[int]
    """The pieces of memory that variables of frames see; globals see the others."""


class Captured(Pickled):
    """The variables of a call; `new` is the memory of arrays that were cut."""

    def __init__(
        self,
        graph: Graph,
        call: Call,
        new: Mapping[int, bytes],
        *,
        keep: tuple[str, ...] = (),
    ) -> None:
        """Take new pieces of memory by number, after those of the capture."""
        super().__init__(graph, keep=keep)
        self.call = call
        self.new = new

    @cached_property
    def data(self) -> builtins.bytes:
        """The pickle of the variables."""
        return dump(self.graph)

    @cached_property
    def bytes(self) -> int:
        """The pickle, and the memory that it sees."""
        table = self.call.facts["memory"]
        seen = (
            len(self.new[piece]) if piece in self.new else _kept_bytes(table[piece])
            for piece in _pieces(self.graph)
        )
        return len(self.data) + sum(seen)

    @property
    def key(self) -> builtins.bytes:
        """A digest of the pickle and of new memory."""
        used = sorted(_pieces(self.graph) & set(self.new))
        return digest(self.data + b"".join(digest(self.new[piece]) for piece in used))

    def made(self, graph: Graph) -> Captured:
        """Return the same call with other variables."""
        return Captured(graph, self.call, self.new, keep=self.keep)

    def passes(self) -> Sequence[Pass]:
        """Return the passes of pickles; how many axes an array has is part of the call."""
        return [one for one in PASSES if one.name != "fewer axes"]

    # --- arrays

    @cached_property
    def arrays(self) -> dict[str, Array]:
        """The arrays and tensors that lie in one piece, by the number of their node."""
        found = {}
        for number in reached(self.graph):
            array = self._array(number)
            if array is not None:
                found[str(number)] = array
        return found

    def _array(self, number: int) -> Array | None:
        told = _told(self.graph, number)
        if told is None:
            return None
        piece, dtype, item, shape, strides, order = told
        steps = [math.prod(shape[at + 1 :]) * item for at in range(len(shape))]
        if piece in self.new:
            return Array(dtype, item, self.new[piece], shape, order=order)
        how, at, _, _ = self.call.facts["memory"][piece]
        if how == "shape" or (how == "span" and list(strides) != steps) or not math.prod(shape):
            return None
        data = self.call.memory[at : at + math.prod(shape) * item]
        return Array(dtype, item, data, shape, order=order)

    def with_arrays(self, changes: Mapping[str, Array]) -> Captured:
        """Return the call with some arrays changed, each with memory of its own."""
        used = _pieces(self.graph)
        graph, new = self.graph, {at: data for at, data in self.new.items() if at in used}
        for name, array in changes.items():
            piece = max([len(self.call.facts["memory"]) - 1, *new]) + 1
            new[piece] = array.data
            graph = _with_array(graph, int(name), array, piece)
        return Captured(graph, self.call, new, keep=self.keep)

    # --- writing

    def write(self, path: str) -> None:
        """Write a capture that can be replayed."""
        os.makedirs(path, mode=0o700)
        source, facts = self.call.path, dict(self.call.facts)
        names = (values_file(source, "globals"), values_file(source, "random"), "sources")
        for name in names:
            if os.path.exists(os.path.join(source, name)):
                with open(os.path.join(path, name), "wb") as file:
                    file.write(_bytes(source, name, self.call.digests))
        if os.path.exists(os.path.join(source, "replay.json")):
            shutil.copyfile(os.path.join(source, "replay.json"), os.path.join(path, "replay.json"))
        with open(os.path.join(path, values_file(source, str(self.call.frame))), "wb") as file:
            file.write(self.data)
        table, memory = self._memory()
        with open(os.path.join(path, "memory"), "wb") as file:
            file.write(memory)
        frames = [
            {**one, "kept": True, "bytes": len(self.data)}
            if at == self.call.frame
            else {**one, "kept": False, "bytes": 0}
            for at, one in enumerate(facts["frames"])
        ]
        facts.update(frames=frames, memory=table, memory_bytes=len(memory), bytes=self.bytes)
        with open(os.path.join(path, "facts.json"), "w", encoding="ascii") as text:
            json.dump(facts, text)
        for name in os.listdir(path):  # it holds the user's data
            os.chmod(os.path.join(path, name), 0o600)

    def _memory(self) -> tuple[list[list[Any]], builtins.bytes]:
        """Return the table of pieces and the memory of those that are still seen."""
        seen = _pieces(self.graph)
        table = [list(one) for one in self.call.facts["memory"]]
        out = bytearray()
        kept = [at for at in range(len(table)) if at in seen or at not in self.call.of_frames]
        end = shift = 0
        for at in sorted(kept, key=lambda one: int(table[one][1])):
            how, start, _, _ = table[at]
            size = _kept_bytes(table[at])
            if how == "shape":
                continue
            if start >= end:  # what overlaps with the one before is there already, and shared
                out += bytes((start - len(out)) % _ALIGNED)
                shift, end = len(out) - start, start
            out += self.call.memory[end : max(end, start + size)]
            end = max(end, start + size)
            table[at][1] = start + shift
        for at in range(len(table)):
            if at not in kept:
                table[at] = ["shape", 0, *table[at][2:]]
        for at in range(len(table), max([len(table) - 1, *self.new]) + 1):
            data = self.new.get(at, b"") if at in seen else b""
            out += bytes(-len(out) % _ALIGNED)
            table.append(["span" if data else "shape", len(out), len(data), len(data)])
            out += data
        return table, bytes(out)


def _kept_bytes(piece: Sequence[Any]) -> int:
    how, _, span, seen = piece
    return {"span": int(span), "dense": int(seen)}.get(how, 0)


def _pieces(graph: Graph) -> set[int]:
    """Return the pieces of memory that are seen."""
    found = set()
    for number in reached(graph):
        name, args = called(graph, graph.nodes[number])
        if name in (f"{REBUILD}array", f"{REBUILD}tensor"):
            found.add(int(str(graph.nodes[args[0]].value)))
    return found


def _told(
    graph: Graph, number: int
) -> tuple[int, str, int, tuple[int, ...], tuple[int, ...], str] | None:
    """Return what is said of an array: piece, kind, size of elements, shape, strides in bytes."""
    name, args = called(graph, graph.nodes[number])
    if name == f"{REBUILD}array" and len(args) == 5:
        kind = _dtype(graph, args[1])
        shape, where = whole(graph, args[2]), graph.nodes[args[3]].kids
        strides = whole(graph, where[0]) if len(where) == 2 else None
        if kind is None or shape is None or strides is None or graph.nodes[where[1]].value != 0:
            return None
        piece = int(str(graph.nodes[args[0]].value))
        return piece, kind[0], int(kind[0][1:]), shape, strides, kind[1]
    if name == f"{REBUILD}tensor" and len(args) == 2:
        facts = _facts(graph, args[1])
        dtype = _TORCH.get(str(graph.nodes[facts["dtype"]].value))
        shape, steps = whole(graph, facts["shape"]), whole(graph, facts["strides"])
        if dtype is None or shape is None or steps is None:
            return None
        item = 2 if dtype == "bf" else int(dtype[1:])
        piece = int(str(graph.nodes[args[0]].value))
        return piece, dtype, item, shape, tuple(step * item for step in steps), "<"
    return None


def _dtype(graph: Graph, number: int) -> tuple[str, str] | None:
    """Return a kind of numpy and its byte order, if its elements are plain numbers."""
    node = graph.nodes[number]
    name, args = called(graph, node)
    words = graph.nodes[args[0]].value if name == f"{REBUILD}dtype" else None
    if not isinstance(words, str) or words[1:2] not in "fiub" or not words[2:].isdigit():
        return None
    return words[1:], ">" if words[0] == ">" else "<"


def _facts(graph: Graph, number: int) -> dict[str, int]:
    kids = graph.nodes[number].kids
    return {str(graph.nodes[a].value): b for a, b in zip(kids[::2], kids[1::2], strict=True)}


def _with_array(graph: Graph, number: int, array: Array, piece: int) -> Graph:
    node = graph.nodes[number]
    name, args = called(graph, node)
    fresh = Fresh(graph)
    at, shape = fresh.add(graph.int(piece)), fresh.ints(array.shape)
    counts = [math.prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]
    if name == f"{REBUILD}array":
        strides = fresh.ints(tuple(count * array.itemsize for count in counts))
        zero = fresh.add(graph.int(0))
        where = fresh.add(Node("tuple", kids=(strides, zero)))
        told = Node("tuple", kids=(at, args[1], shape, where, args[4]))
    else:
        facts = {**_facts(graph, args[1]), "shape": shape, "strides": fresh.ints(tuple(counts))}
        keys = graph.nodes[args[1]].kids[::2]
        pairs = [
            one for key, value in zip(keys, facts.values(), strict=True) for one in (key, value)
        ]
        told = Node("tuple", kids=(at, fresh.add(Node("dict", kids=tuple(pairs)))))
    changed = node.but(kids=(node.kids[0], fresh.add(told)))
    return graph.but({**fresh.made, number: changed})
