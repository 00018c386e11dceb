"""What values become in formats that have only texts and numbers: tables, settings."""

from __future__ import annotations

from relaunch.search.shrink.tree import NUMBER, Tree
from relaunch.search.shrink.treegrammar import TreeGrammar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class PlainValues(TreeGrammar):
    """A format whose values may be anything: a number is one only by how it looks."""

    def simplest(self, tree: Tree, leaf: int) -> bytes | None:
        """Return 0 for a number, nothing for a text."""
        if not tree.is_leaf(leaf):
            return None
        return b"0" if tree.kind[leaf] == NUMBER else b""

    def others(self, tree: Tree, leaf: int) -> Sequence[bytes]:
        """Return what else is plain."""
        return (b"", b"0", b"1", b"a") if tree.is_leaf(leaf) else ()

    def number(self, raw: bytes) -> int | None:
        """Return the whole part of a number."""
        value = float(raw)
        return int(value) if abs(value) < 1e15 else None
