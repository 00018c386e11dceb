"""A pickle as a graph of what it would build, read from its opcodes and written back as opcodes.

Nothing is ever unpickled: globals and what is called with them stay words. Reading follows the
stack, the marks and the memo as an unpickler does, and refuses what that would refuse.
"""

from __future__ import annotations

import pickletools
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    Memory = bytes | memoryview
    After = tuple[str, tuple[int, ...]]

_MARK = object()
_ATOMS = {
    "NONE": "none",
    "NEWTRUE": "bool",
    "NEWFALSE": "bool",
    "GLOBAL": "global",
    "PERSID": "other",
    "NEXT_BUFFER": "other",
    "BYTEARRAY8": "bytearray",
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), "int"),
    **dict.fromkeys(("FLOAT", "BINFLOAT"), "float"),
    **dict.fromkeys(("STRING", "BINSTRING", "SHORT_BINSTRING"), "oldstr"),
    **dict.fromkeys(("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8"), "str"),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), "bytes"),
    **dict.fromkeys(("EXT1", "EXT2", "EXT4"), "global"),
}
_PUTS, _GETS = ("PUT", "BINPUT", "LONG_BINPUT"), ("GET", "BINGET", "LONG_BINGET")
_EMPTY = {"EMPTY_LIST": "list", "EMPTY_TUPLE": "tuple", "EMPTY_DICT": "dict", "EMPTY_SET": "set"}
_MARKED = {"LIST": "list", "TUPLE": "tuple", "DICT": "dict", "FROZENSET": "frozenset"}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_CALLS = {
    "REDUCE": ("reduce", 2),
    "NEWOBJ": ("newobj", 2),
    "NEWOBJ_EX": ("newobj_ex", 3),
    "STACK_GLOBAL": ("stack_global", 2),
    "BINPERSID": ("persid", 1),
    "READONLY_BUFFER": ("readonly", 1),
}
_CODES = {"reduce": b"R", "newobj": b"\x81", "newobj_ex": b"\x92", "stack_global": b"\x93"}
_CODES |= {"persid": b"Q", "readonly": b"\x98"}
_GROWS = {
    "APPEND": ("append", 1),
    "SETITEM": ("set", 2),
    "APPENDS": ("append", 0),
    "SETITEMS": ("set", 0),
    "ADDITEMS": ("add", 0),
    "BUILD": ("build", 1),
}
_OWN = {"list": "append", "dict": "set", "set": "add"}
_IGNORED = ("PROTO", "FRAME")


class BrokenPickle(ValueError):
    """The opcodes are none, or an unpickler would stumble over them."""


class Node:
    """One object: an atom as its opcode, or what it is made of and what is done to it then."""

    __slots__ = ("after", "kids", "kind", "raw", "value")

    def __init__(
        self,
        kind: str,
        raw: Memory = b"",
        kids: tuple[int, ...] = (),
        after: tuple[After, ...] = (),
        value: object = None,
    ) -> None:
        """Take the children by number."""
        self.kind = kind
        self.raw = raw
        self.kids = kids
        self.after = after
        self.value = value

    def but(
        self, kids: tuple[int, ...] | None = None, after: tuple[After, ...] | None = None
    ) -> Node:
        """Return the node with other children."""
        return Node(
            self.kind,
            self.raw,
            self.kids if kids is None else kids,
            self.after if after is None else after,
            self.value,
        )

    def under(self) -> Iterator[int]:
        """Yield the children in the order in which they are written."""
        yield from self.kids
        for _, numbers in self.after:
            yield from numbers


class Graph:
    """All objects of a pickle by number; immutable."""

    def __init__(
        self,
        nodes: Mapping[int, Node],
        root: int,
        *,
        protocol: int,
        header: bool,
        tail: Memory,
        has_numpy: bool,
    ) -> None:
        """Take what follows the pickle in its file too, and whether to look for arrays."""
        self.nodes = nodes
        self.root = root
        self.protocol = protocol
        self.header = header
        self.tail = tail
        self.has_numpy = has_numpy

    def but(self, changes: Mapping[int, Node], root: int | None = None) -> Graph:
        """Return the graph with some nodes changed."""
        return Graph(
            {**self.nodes, **changes},
            self.root if root is None else root,
            protocol=self.protocol,
            header=self.header,
            tail=self.tail,
            has_numpy=self.has_numpy,
        )

    @property
    def spare(self) -> int:
        """A number that no node has."""
        return max(self.nodes) + 1

    # --- atoms

    def none(self) -> Node:
        """Return None."""
        return Node("none", b"N")

    def int(self, value: int) -> Node:
        """Return a whole number."""
        if self.protocol == 0:
            return Node("int", b"I%d\n" % value, value=value)
        if 0 <= value < 256:
            return Node("int", b"K" + bytes([value]), value=value)
        if -(2**31) <= value < 2**31:
            return Node("int", b"J" + struct.pack("<i", value), value=value)
        data = value.to_bytes((value.bit_length() + 8) // 8, "little", signed=True)
        return Node("int", b"\x8a" + bytes([len(data)]) + data, value=value)

    def float(self) -> Node:
        """Return 0.0."""
        raw = b"F0\n" if self.protocol == 0 else b"G" + bytes(8)
        return Node("float", raw, value=0.0)

    def text(self, kind: str, value: str | bytes) -> Node:
        """Return a string or bytes, written as this protocol does."""
        if isinstance(value, str) and kind == "oldstr":
            return Node(kind, _sized(b"U", b"T", value.encode("latin-1")), value=value)
        if isinstance(value, str):
            return Node(kind, self._str(value), value=value)
        if kind == "bytearray":
            return Node(kind, b"\x96" + struct.pack("<Q", len(value)) + value, value=value)
        return Node(kind, _sized(b"C", b"B", value), value=value)

    def _str(self, value: str) -> bytes:
        if self.protocol == 0:
            for char in "\\\0\n\r\x1a":
                value = value.replace(char, f"\\u{ord(char):04x}")
            return b"V" + value.encode("raw-unicode-escape") + b"\n"
        data = value.encode("utf-8", "surrogatepass")
        if self.protocol >= 4:
            return _sized(b"\x8c", b"X", data)
        return b"X" + struct.pack("<I", len(data)) + data


def _sized(short: bytes, long: bytes, data: bytes) -> bytes:
    if len(data) < 256:
        return short + bytes([len(data)]) + data
    return long + struct.pack("<I", len(data)) + data


# --- reading


class _Reader:
    """An unpickler's stack and memo, with numbers of nodes in place of objects."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self.stack: list[object] = []
        self.memo: dict[int, int] = {}

    def push(self, node: Node) -> None:
        number = len(self.nodes)
        self.nodes[number] = node
        self.stack.append(number)

    def pop(self) -> int:
        if not self.stack or self.stack[-1] is _MARK:
            raise BrokenPickle("an object is missing")
        return int(self.stack.pop())  # type: ignore[call-overload, no-any-return]  # a number

    def pops(self, count: int) -> tuple[int, ...]:
        return tuple(reversed([self.pop() for _ in range(count)]))

    def to_mark(self) -> tuple[int, ...]:
        found: list[int] = []
        while self.stack and self.stack[-1] is not _MARK:
            found.append(self.pop())
        if not self.stack:
            raise BrokenPickle("a mark is missing")
        self.stack.pop()
        return tuple(reversed(found))

    def top(self) -> int:
        number = self.pop()
        self.stack.append(number)
        return number

    def grow(self, how: str, numbers: tuple[int, ...]) -> None:
        at = self.top()
        node = self.nodes[at]
        if how == "set" and len(numbers) % 2:
            raise BrokenPickle("a key is without a value")
        if _OWN.get(node.kind) == how and not node.after:
            node.kids += numbers
        elif node.after and node.after[-1][0] == how != "build":
            node.after = (*node.after[:-1], (how, node.after[-1][1] + numbers))
        else:
            node.after = (*node.after, (how, numbers))

    def effect(self, popped: object) -> None:
        """Note what was called only for what it does to the object below: a setter of its state."""
        node = self.nodes[popped] if isinstance(popped, int) else None
        if node is None or node.kind != "reduce" or not self.stack or popped in self.memo.values():
            return
        args, below = self.nodes[node.kids[1]], self.stack[-1]
        if args.kind == "tuple" and len(args.kids) == 2 and args.kids[0] == below:
            owner = self.nodes[args.kids[0]]
            owner.after = (*owner.after, ("effect", (node.kids[0], args.kids[1])))

    def step(self, name: str, arg: object, raw: Memory) -> None:
        if name in _ATOMS:
            self.push(Node(_ATOMS[name], raw, value=arg))
            if name == "INT" and bytes(raw) in (b"I00\n", b"I01\n"):
                self.nodes[self.top()].kind = "bool"
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name in _EMPTY:
            self.push(Node(_EMPTY[name]))
        elif name in _MARKED:
            self.push(Node(_MARKED[name], kids=self.to_mark()))
        elif name in _TUPLES:
            self.push(Node("tuple", kids=self.pops(_TUPLES[name])))
        elif name in _CALLS:
            kind, count = _CALLS[name]
            self.push(Node(kind, kids=self.pops(count)))
        elif name in _GROWS:
            how, count = _GROWS[name]
            self.grow(how, self.pops(count) if count else self.to_mark())
        elif name in ("OBJ", "INST"):
            self.push(Node(name.lower(), raw if name == "INST" else b"", kids=self.to_mark()))
        elif name in _PUTS or name == "MEMOIZE":
            self.memo[len(self.memo) if name == "MEMOIZE" else int(str(arg))] = self.top()
        elif name in _GETS:
            if int(str(arg)) not in self.memo:
                raise BrokenPickle(f"nothing is kept as {arg}")
            self.stack.append(self.memo[int(str(arg))])
        elif name == "DUP":
            self.stack.append(self.top())
        elif name == "POP" and self.stack:
            self.effect(self.stack.pop())
        elif name == "POP_MARK":
            self.to_mark()
        elif name not in _IGNORED:
            raise BrokenPickle(f"the opcode {name} is not expected here")


def parse(data: Memory) -> Graph:
    """Read the first pickle of some bytes; BrokenPickle if there is none."""
    view = memoryview(data)
    reader = _Reader()
    protocol, header, binary = 0, False, False
    stream: Any = _Stream(view)
    waiting: tuple[str, object, int] | None = None
    try:
        for opcode, arg, at in pickletools.genops(stream):
            where = int(at or 0)
            if waiting is not None:
                reader.step(waiting[0], waiting[1], view[waiting[2] : where])
            waiting = (opcode.name, arg, where)
            binary = binary or opcode.proto > 0
            if opcode.name == "PROTO":
                protocol, header = int(str(arg)), True
    except (ValueError, UnicodeError, IndexError, struct.error) as error:
        if isinstance(error, BrokenPickle):
            raise
        raise BrokenPickle(str(error)) from None
    if waiting is None or waiting[0] != "STOP":
        raise BrokenPickle("it has no end")
    root = reader.pop()
    return Graph(
        reader.nodes,
        root,
        protocol=protocol if header else int(binary),
        header=header,
        tail=view[waiting[2] + 1 :],
        has_numpy=any(_is_of_numpy(node) for node in reader.nodes.values()),
    )


def _is_of_numpy(node: Node) -> bool:
    return node.kind in ("global", "str") and str(node.value).startswith("numpy.")


class _Stream:
    """Bytes as the file that pickletools reads, without a copy of them all."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def tell(self) -> int:
        return self._at

    def read(self, count: int) -> bytes:
        found = bytes(self._view[self._at : self._at + count])
        self._at += len(found)
        return found

    def readline(self) -> bytes:
        step = 256
        while True:
            found = bytes(self._view[self._at : self._at + step])
            end = found.find(b"\n") + 1
            if end or len(found) < step:
                found = found[: end or len(found)]
                self._at += len(found)
                return found
            step *= 4


# --- writing


def reached(graph: Graph) -> dict[int, int]:
    """Return how often each object that is reached is referred to, in the order of writing.

    What is in itself is begun twice by a writer, and so all that is in it: then all count as twice.
    """
    counts: dict[int, int] = {}
    inside: set[int] = set()
    is_in_itself = False
    stack = [(graph.root, False)]
    while stack:
        number, is_done = stack.pop()
        if is_done:
            inside.discard(number)
            continue
        counts[number] = counts.get(number, 0) + 1
        is_in_itself = is_in_itself or number in inside
        if counts[number] == 1:  # of what is done to it by a call, it is an argument once more
            node = graph.nodes[number]
            under = list(node.under())
            counts[number] += any(how == "effect" for how, _ in node.after)
            if under:
                inside.add(number)
                stack.append((number, True))
                stack += ((kid, False) for kid in reversed(under))
    return {number: count + is_in_itself for number, count in counts.items()}


def dump(graph: Graph) -> bytes:
    """Write the pickle, and what followed it."""
    return _Writer(graph).written()


class _Writer:
    """Writes nodes depth first, by a list of what is to be done: data may be deeper than Python."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._counts = reached(graph)
        self._memo: dict[int, int] = {}
        self._todo: list[tuple[str, object]] = []
        self._out: list[Memory] = []
        if graph.header:
            self._out.append(b"\x80" + bytes([graph.protocol]))

    def written(self) -> bytes:
        self._todo.append(("node", self._graph.root))
        while self._todo:
            what, value = self._todo.pop()
            if what == "raw":
                self._out.append(value)  # type: ignore[arg-type]  # bytes
            elif what == "node":
                self._node(int(value))  # type: ignore[call-overload]  # a number
            else:
                self._close(int(value))  # type: ignore[call-overload]  # a number
        return b"".join([*self._out, b".", self._graph.tail])

    def _node(self, number: int) -> None:
        if number in self._memo:
            self._out.append(self._get(number))
            return
        node = self._graph.nodes[number]
        if node.kind in _OWN:
            self._out.append(self._opened(node.kind))
            self._put(number)
            self._then([*self._grown(_OWN[node.kind], node.kids), *self._later(number)])
        elif not node.kids and node.kind not in ("tuple", "frozenset", "obj", "inst"):
            self._out.append(node.raw)
            self._put(number)
            self._then(self._later(number))
        else:
            marked = node.kind in ("frozenset", "obj", "inst") or self._has_mark(node)
            steps: list[tuple[str, object]] = [("raw", b"(")] if marked else []
            self._then([*steps, *(("node", kid) for kid in node.kids), ("close", number)])

    def _close(self, number: int) -> None:
        """What was made of its parts is there; if it was already written inside them, take that."""
        node = self._graph.nodes[number]
        if number in self._memo:
            marked = node.kind in ("frozenset", "obj", "inst") or self._has_mark(node)
            self._out.append((b"1" if marked else b"0" * len(node.kids)) + self._get(number))
            return
        self._out.append(self._closing(node))
        self._put(number)
        self._then(self._later(number))

    def _closing(self, node: Node) -> Memory:
        if node.kind == "tuple":
            if self._has_mark(node):
                return b"t"
            return (b")", b"\x85", b"\x86", b"\x87")[len(node.kids)]
        if node.kind == "inst":
            return node.raw
        return {"frozenset": b"\x91", "obj": b"o", **_CODES}[node.kind]

    def _has_mark(self, node: Node) -> bool:
        if node.kind != "tuple":
            return False
        if self._graph.protocol == 0 or len(node.kids) > 3:
            return True
        return self._graph.protocol == 1 and len(node.kids) > 0

    def _opened(self, kind: str) -> bytes:
        if self._graph.protocol == 0:
            return {"list": b"(l", "dict": b"(d"}.get(kind, b"\x8f")
        return {"list": b"]", "dict": b"}", "set": b"\x8f"}[kind]

    def _later(self, number: int) -> list[tuple[str, object]]:
        steps: list[tuple[str, object]] = []
        for how, numbers in self._graph.nodes[number].after:
            if how == "build":
                steps += [("node", numbers[0]), ("raw", b"b")]
            elif how == "effect":
                setter, state = numbers
                pair: list[tuple[str, object]] = [("node", number), ("node", state)]
                opened, closed = (b"", b"\x86") if self._graph.protocol > 1 else (b"(", b"t")
                steps += [("node", setter), ("raw", opened), *pair, ("raw", closed + b"R0")]
            else:
                steps += self._grown(how, numbers)
        return steps

    def _grown(self, how: str, numbers: tuple[int, ...]) -> list[tuple[str, object]]:
        if not numbers:
            return []
        width = 2 if how == "set" else 1
        one, many = {"append": (b"a", b"e"), "set": (b"s", b"u"), "add": (b"", b"\x90")}[how]
        if one and (self._graph.protocol == 0 or len(numbers) == width):
            return [
                step
                for at in range(0, len(numbers), width)
                for step in (*(("node", n) for n in numbers[at : at + width]), ("raw", one))
            ]
        return [("raw", b"("), *(("node", number) for number in numbers), ("raw", many)]

    def _then(self, steps: list[tuple[str, object]]) -> None:
        self._todo += reversed(steps)

    def _put(self, number: int) -> None:
        if self._counts[number] < 2:
            return
        at = self._memo[number] = len(self._memo)
        if self._graph.protocol == 0:
            self._out.append(b"p%d\n" % at)
        elif self._graph.protocol >= 4:
            self._out.append(b"\x94")
        else:
            self._out.append(b"q" + bytes([at]) if at < 256 else b"r" + struct.pack("<I", at))

    def _get(self, number: int) -> bytes:
        at = self._memo[number]
        if self._graph.protocol == 0:
            return b"g%d\n" % at
        return b"h" + bytes([at]) if at < 256 else b"j" + struct.pack("<I", at)
