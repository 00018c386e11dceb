"""Passes that leave out parts of a tree: members and items level by level, keys everywhere."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.treedepth import is_within_chain
from relaunch.search.shrink.treegrammar import grammar_of, made, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.model import Smaller
    from relaunch.search.shrink.pieces import Pieces
    from relaunch.search.shrink.tree import Edit, Tree
    from relaunch.search.shrink.treegrammar import TreeGrammar


def without_nodes(grammar: TreeGrammar, tree: Tree, nodes: Sequence[int]) -> list[Edit]:
    """Return the cuts that leave out nodes of one level, given in the order of the document."""
    edits: list[Edit] = []
    parent = -1
    runs: list[tuple[int, int]] = []
    for owner, first, last in tree.runs(nodes):
        if owner != parent:
            if runs:
                edits += grammar.without(tree, parent, runs)
            parent, runs = owner, []
        runs.append((first, last))
    if runs:
        edits += grammar.without(tree, parent, runs)
    return edits


class InLevel(Record):
    """A place: a level, and where in it."""

    level: int
    pieces: Pieces


class _ByLevel:
    """A pass that leaves out units level by level, from the root down."""

    name = ""
    phase = 0

    def tree(self, document: Document) -> Tree:
        """Return the tree, as deep as it is needed."""
        tree: Tree = document.tree
        return tree

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the units of a level."""
        raise NotImplementedError

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return the nodes of some units, in the order of the document."""
        raise NotImplementedError

    def begin(self, document: Document) -> InLevel | None:
        """Return the first place."""
        return self._from(document, 1)

    def _from(self, document: Document, level: int) -> InLevel | None:
        tree = self.tree(document)
        while level < len(tree.levels):
            if not is_within_chain(tree, level):
                cursor = pieces.begin(len(self.units(document, level)), pairs=False)
                if cursor is not None:
                    return InLevel(level=level, pieces=cursor)
            level += 1
        return None

    def attempt(self, document: Document, cursor: InLevel) -> Smaller | None:
        """Return the document without some units of a level."""
        if cursor.pieces.n != len(self.units(document, cursor.level)):
            return None
        nodes = [
            node
            for low, high in cursor.pieces.drops
            for node in self.nodes(document, cursor.level, low, high)
        ]
        if not nodes:
            return None
        tree = self.tree(document)
        edits = without_nodes(grammar_of(document), tree, nodes)
        return made(document, edits, f"without {said(tree, nodes)}")

    def failed(self, document: Document, cursor: InLevel) -> InLevel | None:
        """Return the next place: in the level, or below."""
        return self._go_on(document, cursor, pieces.failed(cursor.pieces))

    def passed(self, document: Document, cursor: InLevel) -> InLevel | None:
        """Return the next place in what is left."""
        return self._go_on(document, cursor, pieces.passed(cursor.pieces))

    def _go_on(self, document: Document, cursor: InLevel, to: Pieces | None) -> InLevel | None:
        if to is None or cursor.level >= len(self.tree(document).levels):
            return self._from(document, cursor.level + 1)
        count = len(self.units(document, cursor.level))
        if to.n != count:
            again = pieces.begin(count)
            return (
                InLevel(level=cursor.level, pieces=again)
                if again is not None
                else self._from(document, cursor.level + 1)
            )
        return cursor.but(pieces=to)


class Levels(_ByLevel):
    """Leaves out members and items, whosesoever they are, level by level."""

    name = "parts"

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the nodes of a level."""
        levels = self.tree(document).levels
        return levels[level] if level < len(levels) else ()

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return the nodes themselves."""
        return self.tree(document).levels[level][low:high]


class Items(Levels):
    """Leaves out what is outermost."""

    name = "items"

    def tree(self, document: Document) -> Tree:
        """Return the root with its children."""
        if self.name not in document.spans:
            document.spans[self.name] = grammar_of(document).read_outer(document.data)
        tree: Tree = document.spans[self.name]
        return tree

    def _from(self, document: Document, level: int) -> InLevel | None:
        return super()._from(document, level) if level == 1 else None


class Everywhere(_ByLevel):
    """Leaves out the same key in all records at once, and the same place in all inner lists."""

    name = "keys"

    def units(self, document: Document, level: int) -> Sequence[object]:
        """Return the keys that several records have, each with its nodes."""
        known = document.spans.setdefault("keys", {})
        if level not in known:
            known[level] = self._groups(document.tree, level)
        found: Sequence[object] = known[level]
        return found

    def _groups(self, tree: Tree, level: int) -> list[list[int]]:
        if level < 2 or level >= len(tree.levels):
            return []
        groups: dict[tuple[int, bytes | int], list[int]] = {}
        for node in tree.levels[level]:
            name = tree.name(node)
            mark = tree.position[node] if name is None else name
            groups.setdefault((tree.patterns[tree.parent[node]], mark), []).append(node)
        return [nodes for nodes in groups.values() if len(nodes) > 1]

    def nodes(self, document: Document, level: int, low: int, high: int) -> Sequence[int]:
        """Return all nodes of some keys, in the order of the document."""
        groups = self.units(document, level)
        chosen = [node for nodes in groups[low:high] for node in nodes]  # type: ignore[attr-defined]
        return sorted(chosen, key=document.tree.start.__getitem__)
