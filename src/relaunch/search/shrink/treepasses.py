"""Which passes go over a document that is a tree: structure, then values, then names."""

from __future__ import annotations

from relaunch.search.shrink.treedepth import Depth, Inner
from relaunch.search.shrink.treegrammar import DETAILS_UP_TO, grammar_of
from relaunch.search.shrink.treenames import Names
from relaunch.search.shrink.treeparts import Everywhere, Items, Levels
from relaunch.search.shrink.treevalues import EachValue, Tied, Values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.model import Pass

_TREE_UP_TO = 1 << 25


def tree_passes(document: Document) -> list[Pass]:
    """Return the passes over the tree, as far as a document of its size allows."""
    if document.bytes > _TREE_UP_TO:
        return []
    has_items = grammar_of(document).has_items
    structure: list[Pass] = [Depth(), Everywhere(), Levels(), Inner()]
    if has_items:
        structure.insert(0, Items())
    if document.bytes > DETAILS_UP_TO:
        return structure[:1]
    structure.insert(has_items, Names(deep=True))
    return [*structure, Values(alike=True), Values(alike=False), EachValue(), Tied(), Names()]
