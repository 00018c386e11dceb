"""What a format must say so that passes over trees can make its documents smaller."""

from __future__ import annotations

from fnmatch import fnmatchcase

from relaunch.search.shrink.document import Grammar, Unparsable, spliced
from relaunch.search.shrink.model import Smaller
from relaunch.search.shrink.tree import LIST, without_separated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.tree import Edit, Tree


DETAILS_UP_TO = 1 << 22
"""Of larger documents only the outer levels are read, and their values left alone."""
_DEEP = 4_000


class TreeGrammar(Grammar):
    """A format whose documents are trees."""

    is_checked = False
    """Whether what the passes make must be read again, to see that it is valid."""
    has_items = True
    """Whether the outermost parts are left out by a pass of their own, before all others."""

    def read_outer(self, data: bytes) -> Tree:
        """Return at least the root with its children, of data that are known to be valid."""
        tree: Tree = self.read(data)
        return tree

    def without(self, tree: Tree, parent: int, gone: Sequence[tuple[int, int]]) -> list[Edit]:
        """Return the cuts that leave out runs of the children of a node."""
        return without_separated(tree, parent, gone)

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return the simplest value of the same kind; None if it is that, or cannot be."""
        return None

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return the simplest values of other kinds."""
        return ()

    def letters(self, tree: Tree, leaf: int) -> list[tuple[int, int]]:
        """Return the spans of what a text is made of."""
        return []

    def number(self, raw: bytes) -> int | None:
        """Return a whole number of a leaf, rounded towards 0."""
        return None

    def written(self, number: int) -> bytes:
        """Return how a number is written."""
        return b"%d" % number

    def can_replace(self, tree: Tree, node: int, inner: int) -> bool:
        """Tell whether a node may be replaced by what is in it."""
        return True

    def replaced(self, tree: Tree, node: int, inner: int) -> list[Edit]:
        """Return the cuts that leave of a node only what is in it."""
        return [
            (tree.start[node], tree.start[inner], b""),
            (tree.end[inner], tree.end[node], b""),
        ]

    def names(self, tree: Tree, node: int) -> Sequence[bytes]:
        """Return shorter names for a node, as they are written."""
        return ()

    def held(self, data: bytes, keep: Sequence[str]) -> object:
        """Return the values at the key paths that match, as they are written."""
        tree: Tree = self.read(data)
        found = []
        todo = [0] if tree.kind else []
        while todo:
            node = todo.pop()
            path = tree.path(node)
            if node and any(fnmatchcase(path, pattern) for pattern in keep):
                found.append((path, tree.data[tree.item_start[node] : tree.item_end[node]].strip()))
            else:
                todo.extend(tree.children[node])
        return found

    def is_deep(self, document: Document) -> bool:
        """Tell whether it has thousands of levels."""
        if document.bytes > DETAILS_UP_TO or not document.is_readable:
            return False
        return len(document.tree.levels) >= _DEEP

    def is_valid(self, data: bytes) -> bool:
        """Tell whether it can be read."""
        try:
            self.read(data)
        except Unparsable:
            return False
        return True


def made(document: Document, edits: Sequence[Edit], what: str) -> Smaller | None:
    """Return the document with cuts, if it is less and allowed."""
    grammar = document.grammar
    assert isinstance(grammar, TreeGrammar)
    model = document.smaller(spliced(document.data, edits), is_checked=grammar.is_checked)
    return None if model is None else Smaller(model=model, what=what)


def grammar_of(document: Document) -> TreeGrammar:
    """Return the grammar of a document that is a tree."""
    assert isinstance(document.grammar, TreeGrammar)
    return document.grammar


def said(tree: Tree, nodes: Sequence[int], word: str = "parts") -> str:
    """Return which nodes: by their path if there is one, else how many."""
    if not nodes:
        return f"no {word}"
    if len(nodes) == 1 or len({tree.path(node) for node in nodes[:50]}) == 1:
        path = tree.place(nodes[0])
        place = (
            f" ({tree.position[nodes[0]] + 1:,})"
            if tree.kind[tree.parent[nodes[0]]] == LIST
            else ""
        )
        return f"`{path}`{place}" if len(nodes) == 1 else f"`{path}` ({len(nodes):,} times)"
    return f"{len(nodes):,} {word}"
