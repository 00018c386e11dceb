"""Passes over pieces of groups, and over places that can be written in simpler ways.

Groups and places are counted so that a smaller one never moves those before it: parents come
before their parts, and the front before the back. So a cursor holds in the next model too.
"""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.pieces import Pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.search.shrink.model import Smaller


class At(Record):
    """A place in the pieces of a group."""

    group: int
    pieces: Pieces


def cut_from(n: int, largest: int | None = None) -> Pieces | None:
    """Return the first place in `n` pieces; with `largest`, chunks begin that small, at the end."""
    if largest is None or n <= largest:
        return pieces.begin(n, pairs=largest is not None)
    return Pieces(n=n, stage=pieces.SCAN, at=n, size=largest, pairs=True)


def after_cut(now: Pieces, left: int) -> Pieces | None:
    """Return the next place after a cut, of which more or less may have gone than was asked for."""
    after = pieces.passed(now)
    if after is None or after.n == left:
        return after
    if left < 1:
        return None
    return after.but(n=left, at=min(after.at, left), size=min(after.size, left), bad=0, front=0)


class Cuts:
    """Drops pieces of each group, in chunks."""

    def __init__(
        self,
        name: str,
        sizes: Callable[[Any], Sequence[int]],
        without: Callable[[Any, int, int, int], Smaller | None],
        *,
        largest: int | None = None,
        phase: int = 0,
    ) -> None:
        """Take how many pieces each group of a model has, and what drops some of a group."""
        self.name = name
        self.phase = phase
        self._sizes = sizes
        self._without = without
        self._largest = largest

    def begin(self, model: Any) -> At | None:
        """Return the first chunk of the first group that has pieces."""
        return self._enter(self._sizes(model), 0)

    def attempt(self, model: Any, cursor: At) -> Smaller | None:
        """Return the model without the chunk."""
        ((low, high),) = cursor.pieces.drops
        return self._without(model, cursor.group, low, high)

    def failed(self, model: Any, cursor: At) -> At | None:
        """Go on with another chunk, or in the next group."""
        after = pieces.failed(cursor.pieces)
        if after is not None:
            return cursor.but(pieces=after)
        return self._enter(self._sizes(model), cursor.group + 1)

    def passed(self, model: Any, cursor: At) -> At | None:
        """Go on in what is left of the group."""
        sizes = self._sizes(model)
        left = sizes[cursor.group] if cursor.group < len(sizes) else 0
        after = after_cut(cursor.pieces, left)
        if after is not None:
            return cursor.but(pieces=after)
        return self._enter(sizes, cursor.group + 1)

    def _enter(self, sizes: Sequence[int], group: int) -> At | None:
        for at in range(group, len(sizes)):
            first = cut_from(sizes[at], self._largest)
            if first is not None:
                return At(group=at, pieces=first)
        return None


class Ways:
    """Tries, place after place, each simpler way to write what is there."""

    def __init__(
        self,
        name: str,
        ways: Callable[[Any], Sequence[int]],
        made: Callable[[Any, int, int], Smaller | None],
        *,
        phase: int = 0,
    ) -> None:
        """Take how many ways each place of a model has, and what makes a place so."""
        self.name = name
        self.phase = phase
        self._ways = ways
        self._made = made

    def begin(self, model: Any) -> tuple[int, int] | None:
        """Return the first way of the first place that has one."""
        return self._enter(model, 0, 0)

    def attempt(self, model: Any, cursor: tuple[int, int]) -> Smaller | None:
        """Return the model with the place written so."""
        return self._made(model, *cursor)

    def failed(self, model: Any, cursor: tuple[int, int]) -> tuple[int, int] | None:
        """Go on with the next way, or place."""
        return self._enter(model, cursor[0], cursor[1] + 1)

    def passed(self, model: Any, cursor: tuple[int, int]) -> tuple[int, int] | None:
        """Look at the same place again: what is there now may be simpler still."""
        return self._enter(model, cursor[0], 0)

    def _enter(self, model: Any, place: int, way: int) -> tuple[int, int] | None:
        ways = self._ways(model)
        while place < len(ways) and way >= ways[place]:
            place, way = place + 1, 0
        return (place, way) if place < len(ways) else None
