"""The pass over the names of a tree: shorter keys, the same one everywhere."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.shrink.treegrammar import grammar_of, made

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.model import Smaller
    from relaunch.search.shrink.tree import Tree

MANY_LEVELS = 64


class InNames(Record):
    """A place: a name, and the how manieth shorter one."""

    index: int
    choice: int


class Names:
    """Shortens keys: the same one everywhere, with values that are equal to it.

    Where it is `deep`, those that come often go first: at the depth that just fails, nothing else
    may change.
    """

    def __init__(self, *, deep: bool = False) -> None:
        """`deep`: before levels are cut, and only where there are many."""
        self.name = "names of levels" if deep else "names"
        self.phase = 0 if deep else 2
        self._deep = deep

    def _groups(self, document: Document) -> list[list[int]]:
        if self.name not in document.spans:
            tree: Tree = document.tree
            groups: dict[bytes, list[int]] = {}
            for node in range(len(tree.kind)):
                name = tree.name(node)
                if name is not None:
                    groups.setdefault(name, []).append(node)
            least = MANY_LEVELS if self._deep else 1
            document.spans[self.name] = [one for one in groups.values() if len(one) >= least]
        found: list[list[int]] = document.spans[self.name]
        return found

    def begin(self, document: Document) -> InNames | None:
        """Return the first place."""
        if self._deep and len(document.tree.levels) < MANY_LEVELS:
            return None
        return InNames(index=0, choice=0) if self._groups(document) else None

    def attempt(self, document: Document, cursor: InNames) -> Smaller | None:
        """Return the document with a key shortened everywhere."""
        nodes = self._groups(document)[cursor.index]
        tree: Tree = document.tree
        choices = grammar_of(document).names(tree, nodes[0])
        if cursor.choice >= 2 * len(choices):
            return None
        with_values, choice = divmod(cursor.choice, len(choices))
        name, old = choices[choice], tree.name(nodes[0])
        spans = [tree.name_span[node] for node in nodes]
        if any(_has_name(tree, tree.parent[node], name) for node in nodes):
            return None
        if with_values:
            same = [(tree.start[one], tree.end[one]) for one in tree.leaves if tree.raw(one) == old]
            if not same:
                return None
            spans += same
        edits = sorted((span[0], span[1], name) for span in spans if span)
        shown = name.decode(errors="replace")
        return made(document, edits, f"`{tree.place(nodes[0])}` named {shown}")

    def failed(self, document: Document, cursor: InNames) -> InNames | None:
        """Return the next shorter name, or the next name."""
        groups = self._groups(document)
        if cursor.index >= len(groups):
            return None
        choices = grammar_of(document).names(document.tree, groups[cursor.index][0])
        if cursor.choice + 1 < 2 * len(choices):
            return cursor.but(choice=cursor.choice + 1)
        return InNames(index=cursor.index + 1, choice=0) if cursor.index + 1 < len(groups) else None

    def passed(self, document: Document, cursor: InNames) -> InNames | None:
        """Return the same name, which is another now."""
        return cursor.but(choice=0) if cursor.index < len(self._groups(document)) else None


def _has_name(tree: Tree, parent: int, name: bytes) -> bool:
    return any(tree.name(child) == name for child in tree.children[parent])
