"""Passes that make a tree less deep: levels of a long chain, a node by what is in it."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.shrink.treegrammar import grammar_of, made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.model import Smaller
    from relaunch.search.shrink.tree import Tree

_CHAIN = 4
"""In a longer chain of single children only the ends are taken one by one."""
_FEW_BESIDE = 1
_DEEP = 8
"""Where fewer levels are, to replace a node by its child is all there is to try."""


class Cut(Record):
    """A place in a chain: so many levels, beginning so far from the root."""

    size: int
    place: int
    """0 near the root, 1 in the middle, 2 at the end."""


class Depth:
    """Cuts levels out of the deepest chain: many at once, halving; at the root, middle and end."""

    name = "depth"
    phase = 0

    def begin(self, document: Document) -> Cut | None:
        """Return the first place."""
        most = len(document.tree.levels) - 2
        return Cut(size=most, place=0) if most >= _DEEP else None

    def attempt(self, document: Document, cursor: Cut) -> Smaller | None:
        """Return the document with a node replaced by what is some levels below it."""
        chain = self._chain(document)
        top = (0, (len(chain) - 1 - cursor.size) // 2, len(chain) - 1 - cursor.size)[cursor.place]
        if cursor.size < 1 or top < 0:
            return None
        node, inner = chain[top], chain[top + cursor.size]
        if not grammar_of(document).can_replace(document.tree, node, inner):
            return None
        edits = grammar_of(document).replaced(document.tree, node, inner)
        return made(document, edits, f"{cursor.size:,} levels of {len(chain) - 1:,} fewer")

    @staticmethod
    def _chain(document: Document) -> list[int]:
        if "depth" not in document.spans:
            document.spans["depth"] = document.tree.longest_chain()
        found: list[int] = document.spans["depth"]
        return found

    def failed(self, document: Document, cursor: Cut) -> Cut | None:
        """Return another place for as many levels, then half as many."""
        if cursor.place < 2:
            return cursor.but(place=cursor.place + 1)
        return Cut(size=cursor.size // 2, place=0) if cursor.size > 1 else None

    def passed(self, document: Document, cursor: Cut) -> Cut | None:
        """Return the same again, as far as there are levels."""
        size = min(cursor.size, len(document.tree.levels) - 2)
        return cursor.but(size=size) if size > 0 else None


class At(Record):
    """A place: the how manieth node of a level."""

    level: int
    index: int


class Inner:
    """Replaces a node by one of its children, and the document by what is in it."""

    name = "nesting"
    phase = 0

    def begin(self, document: Document) -> At | None:
        """Return the first place."""
        return At(level=1, index=0) if len(document.tree.levels) > 1 else None

    def attempt(self, document: Document, cursor: At) -> Smaller | None:
        """Return the document with the parent of a node replaced by the node."""
        tree: Tree = document.tree
        inner = tree.levels[cursor.level][cursor.index]
        node = tree.parent[inner]
        if not grammar_of(document).can_replace(tree, node, inner):
            return None
        what = f"`{tree.place(inner)}` in the place of what it is in"
        return made(document, grammar_of(document).replaced(tree, node, inner), what)

    def failed(self, document: Document, cursor: At) -> At | None:
        """Return the next node."""
        levels: list[list[int]] = document.tree.levels
        if cursor.index + 1 < len(levels[cursor.level]):
            return cursor.but(index=cursor.index + 1)
        level = cursor.level + 1
        while level < len(levels) and is_within_chain(document.tree, level):
            level += 1
        return At(level=level, index=0) if level < len(levels) else None

    def passed(self, document: Document, cursor: At) -> At | None:
        """Return the first node of the level above."""
        level = max(1, cursor.level - 1)
        return At(level=level, index=0) if level < len(document.tree.levels) else None


def is_within_chain(tree: Tree, level: int) -> bool:
    """Tell whether a level is in the midst of a long chain of single nodes: depth is cut there."""
    levels = tree.levels
    low, high = level - _CHAIN, level + _CHAIN
    if low < 0 or high >= len(levels):
        return False
    return all(len(levels[near]) <= _FEW_BESIDE for near in (low, level, high))
