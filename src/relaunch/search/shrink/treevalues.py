"""Passes over the values of a tree: the simplest of their kind, others, smaller, shorter."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.document import spliced
from relaunch.search.shrink.tree import NUMBER, TEXT
from relaunch.search.shrink.treegrammar import grammar_of, made, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.model import Smaller
    from relaunch.search.shrink.pieces import Pieces
    from relaunch.search.shrink.tree import Tree


class Values:
    """Sets values to the simplest of their kind, many at once; those of a key in all records."""

    phase = 1

    def __init__(self, *, alike: bool) -> None:
        """`alike`: a unit is the values of one key everywhere, else one value."""
        self.name = "values alike" if alike else "values"
        self._alike = alike

    def _units(self, document: Document) -> list[list[int]]:
        known = document.spans.get(self.name)
        if known is None:
            known = document.spans[self.name] = self._found(document)
        found: list[list[int]] = known
        return found

    def _found(self, document: Document) -> list[list[int]]:
        tree: Tree = document.tree
        simplest = grammar_of(document).simplest
        leaves = [leaf for leaf in tree.leaves if _changes(tree, leaf, simplest(tree, leaf))]
        if not self._alike:
            return [[leaf] for leaf in leaves]
        groups: dict[int, list[int]] = {}
        for leaf in leaves:
            groups.setdefault(tree.patterns[leaf], []).append(leaf)
        return [group for group in groups.values() if len(group) > 1] if len(groups) > 1 else []

    def begin(self, document: Document) -> Pieces | None:
        """Return the first place."""
        return pieces.begin(len(self._units(document)))

    def attempt(self, document: Document, cursor: Pieces) -> Smaller | None:
        """Return the document with some values at their simplest."""
        units = self._units(document)
        if cursor.n != len(units):
            return None
        tree: Tree = document.tree
        leaves = sorted(
            (leaf for low, high in cursor.drops for unit in units[low:high] for leaf in unit),
            key=tree.start.__getitem__,
        )
        simplest = grammar_of(document).simplest
        edits = [(tree.start[one], tree.end[one], simplest(tree, one) or b"") for one in leaves]
        return made(document, edits, f"with {said(tree, leaves, 'values')} at the simplest")

    def failed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place."""
        count = len(self._units(document))
        return pieces.failed(cursor) if cursor.n == count else pieces.begin(count)

    def passed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place in what is left."""
        return pieces.passed(cursor)


class InValue(Record):
    """A place in the work on one value: a plain one, a number between two, or letters."""

    index: int
    stage: int
    low: int = 0
    high: int = 0
    letters: Pieces | None = None


_OTHERS, _BETWEEN, _LETTERS = range(3)


class _Each:
    """Makes one value after the other plain: by kind, by size, by letters."""

    name = ""
    phase = 1

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return what is changed together: leaves."""
        raise NotImplementedError

    def begin(self, document: Document) -> InValue | None:
        """Return the first place."""
        return self._enter(document, 0)

    def _enter(self, document: Document, index: int) -> InValue | None:
        return InValue(index=index, stage=_OTHERS) if index < len(self.targets(document)) else None

    def attempt(self, document: Document, cursor: InValue) -> Smaller | None:
        """Return the document with one value made plainer."""
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        text = self._text(document, targets[cursor.index][0], cursor)
        if text is None:
            return None
        tree: Tree = document.tree
        edits = [(tree.start[leaf], tree.end[leaf], text) for leaf in targets[cursor.index]]
        shown = text.decode(errors="replace")
        shown = shown if len(shown) <= 24 else f"{shown[:20]}... ({len(text):,} bytes)"
        return made(document, edits, f"`{tree.place(targets[cursor.index][0])}` as {shown}")

    def _text(self, document: Document, leaf: int, cursor: InValue) -> bytes | None:
        tree: Tree = document.tree
        grammar = grammar_of(document)
        if cursor.stage == _OTHERS:
            plain = self._plain(document, leaf)
            return plain[cursor.low] if cursor.low < len(plain) else None
        if cursor.stage == _BETWEEN:
            middle = (cursor.low + cursor.high) // 2
            return None if cursor.high - cursor.low < 2 else grammar.written(middle)
        letters = grammar.letters(tree, leaf)
        if cursor.letters is None or cursor.letters.n != len(letters):
            return None
        edits = [
            (letters[low][0] - tree.start[leaf], letters[high - 1][1] - tree.start[leaf], b"")
            for low, high in cursor.letters.drops
        ]
        return spliced(tree.raw(leaf), edits)

    @staticmethod
    def _plain(document: Document, leaf: int) -> list[bytes]:
        tree: Tree = document.tree
        grammar = grammar_of(document)
        simplest = grammar.simplest(tree, leaf)
        found = [*grammar.others(tree, leaf)]
        if tree.kind[leaf] == NUMBER:
            found += _fractions(tree.raw(leaf))
        return [*([simplest] if simplest is not None else []), *found]

    def failed(self, document: Document, cursor: InValue) -> InValue | None:
        """Return the next thing to do with a value, or the next value."""
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        leaf = targets[cursor.index][0]
        if cursor.stage == _OTHERS:
            if cursor.low + 1 < len(self._plain(document, leaf)):
                return cursor.but(low=cursor.low + 1)
            return self._sizes(document, leaf, cursor)
        if cursor.stage == _BETWEEN:
            return self._narrow(document, leaf, cursor.but(low=(cursor.low + cursor.high) // 2))
        return self._letters(document, cursor, cursor.letters and pieces.failed(cursor.letters))

    def passed(self, document: Document, cursor: InValue) -> InValue | None:
        """Return the next thing to do with what the value is now."""
        if cursor.stage == _OTHERS:
            return self._enter(document, cursor.index)
        targets = self.targets(document)
        if cursor.index >= len(targets):
            return None
        leaf = targets[cursor.index][0]
        if cursor.stage == _BETWEEN:
            return self._narrow(document, leaf, cursor.but(high=(cursor.low + cursor.high) // 2))
        return self._letters(document, cursor, cursor.letters and pieces.passed(cursor.letters))

    def _sizes(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        tree: Tree = document.tree
        if tree.kind[leaf] == NUMBER:
            number = grammar_of(document).number(tree.raw(leaf))
            if number is not None and abs(number) > 1:
                between = InValue(index=cursor.index, stage=_BETWEEN, high=number + (number > 0))
                if number < 0:
                    between = between.but(low=number - 1, high=0)
                return self._narrow(document, leaf, between)
        return self._into_letters(document, leaf, cursor)

    def _narrow(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        if cursor.high - cursor.low > 1 and cursor.low >= 0:
            return cursor
        return self._into_letters(document, leaf, cursor)

    def _into_letters(self, document: Document, leaf: int, cursor: InValue) -> InValue | None:
        count = len(grammar_of(document).letters(document.tree, leaf))
        first = pieces.begin(count, is_one_needed=document.tree.kind[leaf] == TEXT)
        return self._letters(document, cursor, first)

    def _letters(
        self, document: Document, cursor: InValue, letters: Pieces | None
    ) -> InValue | None:
        if letters is None:
            return self._enter(document, cursor.index + 1)
        return InValue(index=cursor.index, stage=_LETTERS, letters=letters)


def _fractions(raw: bytes) -> list[bytes]:
    """Return plainer numbers that have a fraction too: a program may want one."""
    whole, point, rest = raw.partition(b".")
    if not point or not rest[:1].isdigit():
        return []
    return [b"0.0", b"1.0", whole + b".0", whole + b"." + rest[:1]]


class EachValue(_Each):
    """Makes one value after the other plain."""

    name = "each value"

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return every leaf alone, empty lists and maps too."""
        if self.name not in document.spans:
            tree: Tree = document.tree
            plain = [node for node in range(len(tree.kind)) if not tree.children[node]]
            document.spans[self.name] = [
                (one,) for one in sorted(plain, key=tree.start.__getitem__)
            ]
        found: Sequence[Sequence[int]] = document.spans[self.name]
        return found


class Tied(_Each):
    """Makes values plain that are equal in several places: all at once."""

    name = "equal values"

    def targets(self, document: Document) -> Sequence[Sequence[int]]:
        """Return the leaves that are equal, as groups."""
        if self.name not in document.spans:
            tree: Tree = document.tree
            groups: dict[bytes, list[int]] = {}
            for leaf in tree.leaves:
                if tree.end[leaf] - tree.start[leaf] > 1:
                    groups.setdefault(tree.raw(leaf), []).append(leaf)
            document.spans[self.name] = [one for one in groups.values() if len(one) > 1]
        found: Sequence[Sequence[int]] = document.spans[self.name]
        return found


def _changes(tree: Tree, leaf: int, text: bytes | None) -> bool:
    """Tell whether a value would be smaller or plainer as this."""
    if text is None:
        return False
    raw = tree.raw(leaf)
    return (len(text), sum(text)) < (len(raw), sum(raw))
