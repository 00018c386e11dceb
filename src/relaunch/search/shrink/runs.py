"""Passes over what lies in a row: lines, words, blanks, bytes."""

from __future__ import annotations

from relaunch.search.shrink import pieces
from relaunch.search.shrink.document import spliced
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.search.shrink.document import Document
    from relaunch.search.shrink.pieces import Pieces


class InRow:
    """Leaves out spans of a document.

    `find` gives the spans of the units, in order and apart, as starts and ends.
    """

    def __init__(
        self,
        name: str,
        find: Callable[[bytes], tuple[Sequence[int], Sequence[int]]],
        *,
        phase: int = 0,
        pairs: bool = True,
        is_checked: bool = False,
        above: int = 0,
        up_to: int = 1 << 30,
        leaves: bytes = b"",
    ) -> None:
        """Of documents not `above` so many bytes, and not `up_to` so many, nothing is tried.

        `leaves`: what stays of a unit.
        """
        self.name = name
        self._key = f"{name} by {getattr(find, '__name__', name)}"
        self.phase = phase
        self._find = find
        self._pairs = pairs
        self._is_checked = is_checked
        self._above = above
        self._up_to = up_to
        self._leaves = leaves

    def _spans(self, document: Document) -> tuple[Sequence[int], Sequence[int]]:
        spans: tuple[Sequence[int], Sequence[int]] | None = document.spans.get(self._key)
        if spans is None:
            spans = document.spans[self._key] = self._find(document.data)
        return spans

    def begin(self, document: Document) -> Pieces | None:
        """Return the first place."""
        if not self._above < document.bytes <= self._up_to:
            return None
        return pieces.begin(len(self._spans(document)[0]), pairs=self._pairs)

    def attempt(self, document: Document, cursor: Pieces) -> Smaller | None:
        """Return the document without some units."""
        starts, ends = self._spans(document)
        if cursor.n != len(starts):  # what went took units along, or joined some
            return None
        if self._leaves:
            edits = [
                (starts[unit], ends[unit], self._leaves)
                for low, high in cursor.drops
                for unit in range(low, high)
            ]
        else:
            edits = [
                edit
                for low, high in cursor.drops
                for edit in self._without(starts, ends, low, high)
            ]
        smaller = self._smaller(document, spliced(document.data, edits))
        if smaller is None:
            return None
        return Smaller(model=smaller, what=f"without {said(self.name, cursor)}")

    def _smaller(self, document: Document, data: bytes) -> Document | None:
        return document.smaller(data, is_checked=self._is_checked)

    @staticmethod
    def _without(
        starts: Sequence[int], ends: Sequence[int], low: int, high: int
    ) -> list[tuple[int, int, bytes]]:
        """Return one cut where units touch, else one for each."""
        found: list[tuple[int, int, bytes]] = []
        start = starts[low]
        for unit in range(low, high):
            if unit + 1 == high or starts[unit + 1] != ends[unit]:
                found.append((start, ends[unit], b""))
                start = starts[unit + 1] if unit + 1 < high else 0
        return found

    def failed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place; from the start if the units are others than thought."""
        count = len(self._spans(document)[0])
        if cursor.n != count:
            return pieces.begin(count, pairs=self._pairs)
        return pieces.failed(cursor)

    def passed(self, document: Document, cursor: Pieces) -> Pieces | None:
        """Return the next place in what is left."""
        return pieces.passed(cursor)


def said(name: str, cursor: Pieces) -> str:
    """Return which units go: `records 12-400 of 8,192`, `line 3 of 9`."""
    words = []
    for low, high in cursor.drops:
        words.append(f"{low + 1:,}" if high == low + 1 else f"{low + 1:,}-{high:,}")
    if cursor.dropped == cursor.n:
        return f"any {name}"
    if cursor.dropped == 1:
        name = name.removesuffix("s")
    return f"{name} {' and '.join(words)} of {cursor.n:,}"
