"""What a document is made of, as a tree of spans: to change it is to cut and replace bytes.

So all that is kept stays as it is written. Nodes are numbers; nothing here recurses, since a value
may be nested a hundred thousand deep.
"""

from __future__ import annotations

from functools import cached_property

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAP, LIST, TEXT, NUMBER, WORD = range(5)
"""Kinds: those with children, and leaves (a word is true, null, and whatever is not quoted)."""

Edit = tuple[int, int, bytes]
_NONE: list[int] = []


class Tree:
    """The nodes of a document; node 0 is the root."""

    def __init__(self, data: bytes) -> None:
        """Begin without nodes."""
        self.data = data
        self.kind: list[int] = []
        self.start: list[int] = []
        self.end: list[int] = []
        """The value itself."""
        self.item_start: list[int] = []
        self.item_end: list[int] = []
        """The value with its key: what goes when it is left out."""
        self.name_span: list[tuple[int, int] | None] = []
        self.parent: list[int] = []
        self.position: list[int] = []
        """Its number among the children of its parent."""
        self.children: list[list[int]] = []
        self.outer: set[int] = set()
        """Nodes that are lines, not values: tables, blocks."""

    def add(
        self,
        kind: int,
        parent: int,
        start: int,
        end: int,
        *,
        item_start: int | None = None,
        item_end: int | None = None,
        name: tuple[int, int] | None = None,
    ) -> int:
        """Add a node as the last child of its parent."""
        node = len(self.kind)
        self.kind.append(kind)
        self.start.append(start)
        self.end.append(end)
        self.item_start.append(start if item_start is None else item_start)
        self.item_end.append(end if item_end is None else item_end)
        self.name_span.append(name)
        self.parent.append(parent)
        self.children.append([] if kind <= LIST else _NONE)
        if parent < 0:
            self.position.append(0)
        else:
            siblings = self.children[parent]
            self.position.append(len(siblings))
            siblings.append(node)
        return node

    def close(self, node: int, end: int) -> None:
        """Say where a node ends, which was begun before its children."""
        self.end[node] = self.item_end[node] = end

    def raw(self, node: int) -> bytes:
        """Return the value as it is written."""
        return self.data[self.start[node] : self.end[node]]

    def name(self, node: int) -> bytes | None:
        """Return the key as it is written; None in a list."""
        span = self.name_span[node]
        return None if span is None else self.data[span[0] : span[1]]

    def is_leaf(self, node: int) -> bool:
        """Tell whether it is of a kind without children."""
        return self.kind[node] > LIST

    @cached_property
    def levels(self) -> list[list[int]]:
        """The nodes by depth, each level in the order of the document."""
        found = []
        level = [0] if self.kind else []
        while level:
            found.append(level)
            level = [child for node in level for child in self.children[node]]
        return found

    @cached_property
    def leaves(self) -> list[int]:
        """All leaves, in the order of the document."""
        found = [node for node in range(len(self.kind)) if self.is_leaf(node)]
        return sorted(found, key=self.start.__getitem__)

    @cached_property
    def depth(self) -> list[int]:
        """How deep each node is."""
        found = [0] * len(self.kind)
        for level, nodes in enumerate(self.levels):
            for node in nodes:
                found[node] = level
        return found

    @cached_property
    def patterns(self) -> list[int]:
        """For each node a number that is equal for those at the same key of alike records."""
        numbers: dict[tuple[int, bytes | None, bool], int] = {}
        found = [0] * len(self.kind)
        for level in self.levels[1:]:
            for node in level:
                name = self.name(node)
                mark = (found[self.parent[node]], name, self.is_leaf(node) and name is None)
                found[node] = numbers.setdefault(mark, len(numbers) + 1)
        return found

    def path(self, node: int) -> str:
        """Return the keys down to a node: `model.layers.*.size`."""
        names = []
        while node > 0:
            name = self.name(node)
            names.append("*" if name is None else _plain(name))
            node = self.parent[node]
        return ".".join(reversed(names))

    def place(self, node: int) -> str:
        """Return the path for people: of a very long one the ends."""
        path = self.path(node)
        return path if len(path) <= 60 else f"{path[:24]}...{path[-24:]}"

    def longest_chain(self) -> list[int]:
        """Return the nodes from the root down to a deepest one."""
        if not self.levels:
            return []
        node = self.levels[-1][0]
        found = [node]
        while self.parent[node] >= 0:
            node = self.parent[node]
            found.append(node)
        return found[::-1]

    def runs(self, nodes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
        """Group nodes of one level: (parent, first, last) of children that go together."""
        parent = first = last = -1
        for node in nodes:
            place = self.position[node]
            if self.parent[node] == parent and place == last + 1:
                last = place
                continue
            if parent >= 0:
                yield parent, first, last
            parent, first, last = self.parent[node], place, place
        if parent >= 0:
            yield parent, first, last


def without_separated(tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
    """Cut runs of children between which separators stand: each run takes one along."""
    children = tree.children[parent]
    found: list[Edit] = []
    for first, last in gone:
        if first:
            found.append((tree.item_end[children[first - 1]], tree.item_end[children[last]], b""))
        elif last + 1 < len(children):
            found.append((tree.item_start[children[0]], tree.item_start[children[last + 1]], b""))
        else:
            found.append((tree.item_start[children[0]], tree.item_end[children[last]], b""))
    return found


def _plain(name: bytes) -> str:
    """Return a key without its quotes."""
    text = name.decode(errors="replace")
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
