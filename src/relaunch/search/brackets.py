"""Where on a ladder the verdict changes, as far as was seen, and how to divide what is open."""

from __future__ import annotations

from itertools import pairwise

from relaunch.search.seen import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Span = tuple[int, int]
    """Two places that were looked at; what is open lies strictly between."""


class Known:
    """What was seen at the places of a ladder, and which are being tried."""

    def __init__(self, size: int) -> None:
        """Nothing was seen yet."""
        self.size = size
        self.seen: dict[int, Seen] = {}
        self.pending: set[int] = set()

    @property
    def taken(self) -> set[int]:
        """Places that need not be asked for."""
        return self.pending | set(self.seen)

    @property
    def clear(self) -> list[int]:
        """Places that passed, or failed as hunted, in order."""
        return sorted(place for place, seen in self.seen.items() if seen.is_clear)

    def is_unclear(self, place: int) -> bool:
        """The place was tried and said nothing of the hunted failure."""
        return place in self.seen and not self.seen[place].is_clear

    def changes(self) -> list[Span]:
        """Return the neighbours among the clear places that differ."""
        return [(a, b) for a, b in pairwise(self.clear) if self.seen[a] is not self.seen[b]]

    def unclear_borders(self) -> list[Span]:
        """Return the neighbours among all places of which one is clear and one is not."""
        return [
            (a, b)
            for a, b in pairwise(sorted(self.seen))
            if self.seen[a].is_clear is not self.seen[b].is_clear
        ]

    def unclear_inside(self, span: Span) -> list[int]:
        """Return the unclear places within a span."""
        return [
            place for place in self.seen if span[0] < place < span[1] and self.is_unclear(place)
        ]

    def is_busy(self, span: Span) -> bool:
        """Tell whether something within the span is being tried."""
        return any(span[0] < place < span[1] for place in self.pending)

    def gaps(self, span: Span) -> list[Span]:
        """Return the open parts of a span, between places that are known or being tried."""
        marks = sorted(place for place in self.taken if span[0] < place < span[1])
        return [(a, b) for a, b in pairwise([span[0], *marks, span[1]]) if b - a > 1]


def divide(known: Known, span: Span, count: int, patience: int) -> list[int]:
    """Return up to `count` places that divide a span in which the verdict changes.

    What lies between two unclear places is most likely unclear too: it is looked into last, and
    only until `patience` unclear ones are known within the span.
    """
    gaps = known.gaps(span)
    near = [gap for gap in gaps if not (known.is_unclear(gap[0]) and known.is_unclear(gap[1]))]
    if near or known.is_busy(span):
        return spread(near, count)
    left = patience - len(known.unclear_inside(span))
    return spread(gaps, min(count, left))


def spread(gaps: Sequence[Span], count: int) -> list[int]:
    """Put up to `count` places into gaps so that the widest part left is as narrow as can be."""
    shares = [0] * len(gaps)
    for _ in range(min(count, sum(b - a - 1 for a, b in gaps))):
        roomy = (n for n, (a, b) in enumerate(gaps) if shares[n] < b - a - 1)
        widest = max(roomy, key=lambda n: (gaps[n][1] - gaps[n][0]) / (shares[n] + 1))
        shares[widest] += 1
    return [
        a + (b - a) * part // (share + 1)
        for (a, b), share in zip(gaps, shares, strict=True)
        for part in range(1, share + 1)
    ]
