"""A JSON document too large to read: elements go by where they lie, and what stays is JSON.

Between two places where it can be cut everything goes but the containers around them, and those
lose what lies between. So whatever is left out, each container has its brackets, its key, and a
comma between what stays in it; a place is never asked for before it is needed.
"""

from __future__ import annotations

from functools import cached_property

from relaunch.search.shrink import pieces
from relaunch.search.shrink.formats.jsonoutline import Outline
from relaunch.search.shrink.large import Large, joined
from relaunch.search.shrink.model import Smaller
from relaunch.search.shrink.treegrammar import DETAILS_UP_TO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from relaunch.search.shrink.formats.jsonoutline import Run
    from relaunch.search.shrink.large import Held, Source
    from relaunch.search.shrink.model import Model, Pass
    from relaunch.search.shrink.pieces import Pieces

SMALL = DETAILS_UP_TO
"""Up to so many bytes a document is read as a whole, and looked at in detail."""


class LargeJson(Large):
    """A document without some runs of its blocks."""

    def __init__(
        self,
        source: Source,
        outline: Outline,
        small: Callable[[bytes], Model],
        *,
        gone: Sequence[Run] = (),
        held: Held | None = None,
    ) -> None:
        """`gone`: the runs, in order and apart."""
        self.outline = outline
        self.gone = tuple(gone)
        self.cuts = cuts(outline, gone)
        super().__init__(source, _between(self.cuts, source.size), small, mark=b"", held=held)

    @cached_property
    def units(self) -> Sequence[int]:
        """The blocks that could go."""
        stay = bytearray(b"\1") * len(self.outline)
        for first, last in self.gone:
            stay[first:last] = bytes(last - first)
        if self.held is not None:
            number = self.outline.number
            for start, end in self.held.spans:
                first, last = max(0, number(start) - 1), number(end) + 1
                stay[first:last] = bytes(len(stay[first:last]))
        return [number for number, stays in enumerate(stay) if stays]

    def passes(self) -> Sequence[Pass]:
        """Return the one there is."""
        return [Elements()]

    def without(self, units: Iterable[int]) -> Model | None:
        """Leave out blocks; None if that is nothing, or would take what is held."""
        less = LargeJson(
            self.source,
            self.outline,
            self.small,
            gone=joined([*self.gone, *((unit, unit + 1) for unit in units)]),
            held=self.held,
        )
        if less.cuts == self.cuts or (self.held and any(map(self.held.is_in, less.cuts))):
            return None
        return less if less.bytes > SMALL else self.small(less.content())


class Elements:
    """Leaves out elements, wherever they are: halves, then runs of blocks."""

    name = "elements"
    phase = 0

    def begin(self, model: Model) -> Pieces | None:
        """Return the first place."""
        return pieces.begin(len(model.units)) if isinstance(model, LargeJson) else None

    def attempt(self, model: LargeJson, cursor: Pieces) -> Smaller | None:
        """Return the document without some of its blocks."""
        units = [unit for low, high in cursor.drops for unit in model.units[low:high]]
        less = model.without(units)
        if less is None:
            return None
        gone = model.bytes - less.bytes
        return Smaller(model=less, what=f"without elements of {gone:,} of {model.bytes:,} bytes")

    def failed(self, model: LargeJson, cursor: Pieces) -> Pieces | None:
        """Return the next place."""
        return pieces.failed(cursor)

    def passed(self, model: Model, cursor: Pieces) -> Pieces | None:
        """Return the next place in what is left."""
        return pieces.passed(cursor) if isinstance(model, LargeJson) else None


def cuts(outline: Outline, gone: Sequence[Run]) -> list[Run]:
    """Return the bytes that go with runs of blocks: what is left is JSON."""
    runs = [(_place(outline, first), _place(outline, last)) for first, last in gone]
    found: list[Run] = []
    for run in joined(runs):
        if run not in outline.known:
            outline.known[run] = _cuts(outline, *run)
        found += outline.known[run]
    return found


def _place(outline: Outline, number: int) -> int:
    """Return the next block in which it can be cut, or the end; 0 is the start."""
    while 0 < number < len(outline) and outline.cut(number) < 0:
        number += 1
    return number


def _cuts(outline: Outline, first: int, last: int) -> list[Run]:
    """Return what goes between the places where two blocks are cut."""
    is_from_start, is_to_end = first == 0, last == len(outline)
    deep = 1 if is_from_start else outline.lowest[first]
    inner = 1 if is_to_end else outline.lowest[last]
    common = 1 if is_from_start or is_to_end else min(outline.lowest[first : last + 1])
    after: list[Run] = []
    at = outline.start if is_from_start else outline.cut(first)
    for depth in range(deep, common, -1):
        end = outline.closing(at, depth)
        after.append((at, end))
        at = end + 1
    if is_to_end:
        return [cut for cut in (*after, (at, outline.end)) if cut[0] < cut[1]]
    before: list[Run] = []
    to, behind, is_first = outline.cut(last), outline.after_cut(last), False
    for depth in range(inner, common, -1):
        opened = to if is_first else outline.opening(to, depth)
        before.append((opened + 1, behind))
        to, is_first = outline.item(opened, depth - 1)
        behind = to + 1
    if is_from_start:
        to = behind
    found = [*after, (at, to), *reversed(before)]
    return [cut for cut in found if cut[0] < cut[1]]


def _between(gone: Sequence[Run], size: int) -> list[Run]:
    """Return what is left of so many bytes."""
    starts = [0, *(end for _, end in gone)]
    ends = [*(start for start, _ in gone), size]
    return [run for run in zip(starts, ends, strict=True) if run[0] < run[1]]
