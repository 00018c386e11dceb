"""Which of many pieces to leave out next: delta debugging as a cursor, without the pieces.

Nothing at all; one half or the other, again and again (a single bad record among a hundred thousand
is found so, and what is read halves each time); then from the end to the start, in chunks that
double while they can go and halve while they cannot, so that each piece that is needed costs about
the logarithm of the gap before it; at last every piece alone, and every two neighbours.
"""

from __future__ import annotations

from relaunch.record import Record

ALL, FIRST, SECOND, SCAN, ONES, PAIRS = range(6)
_FEW = 3
_PAIRS_UP_TO = 200
_QUICKLY = 4


class Pieces(Record):
    """A place in the work on `n` pieces."""

    n: int
    stage: int = ALL
    at: int = 0
    """The scan is done with the pieces from here on; of ones and pairs, where to cut."""
    size: int = 0
    bad: int = 0
    """So many pieces before `at` cannot all go; 0: not known."""
    front: int = 0
    """So many at the start cannot all go; 0: not known."""
    hint: int = 0
    """How large a chunk the scan begins with after a piece that is needed."""
    here: int = 0
    """How many went since the last piece that is needed."""
    kept: int = 0
    pairs: bool = False

    @property
    def drops(self) -> tuple[tuple[int, int], ...]:
        """What to leave out, as ranges in order."""
        half = self.n // 2
        if self.stage == ALL:
            return ((0, self.n),)
        if self.stage == FIRST:
            return ((half, self.n),)
        if self.stage == SECOND:
            return ((0, half),)
        return ((self.at - self.size, self.at),)

    @property
    def dropped(self) -> int:
        """How many pieces go at this place."""
        return sum(high - low for low, high in self.drops)


def begin(n: int, *, is_one_needed: bool = False, pairs: bool = False) -> Pieces | None:
    """Return the first place for `n` pieces; some formats cannot do without any."""
    if n < 1:
        return None
    first = Pieces(n=n, pairs=pairs)
    return failed(first) if is_one_needed else first


def failed(now: Pieces) -> Pieces | None:
    """Return the next place, after what was left out is needed."""
    if now.stage == ALL:
        return _halves_or_ones(now)
    if now.stage == FIRST:
        return now.but(stage=SECOND)
    if now.stage == SECOND:
        return _scan_from_the_end(now)
    if now.stage == SCAN:
        if now.size > 1:
            return now.but(bad=now.size, size=now.size // 2)
        return _needed(now)
    return _step(now)


def passed(now: Pieces) -> Pieces | None:
    """Return the next place, after what was left out is gone."""
    left = now.n - now.dropped
    if left < 1:
        return None
    if now.stage in (FIRST, SECOND):
        return _halves_or_ones(now.but(n=left))
    if now.stage == SCAN:
        return _went(now, left)
    return _step(now.but(n=left, at=now.at - now.size + 1))


def _halves_or_ones(now: Pieces) -> Pieces | None:
    """With few pieces one at a time is as good; a single one was tried as all."""
    if now.n == 1:
        return None
    return _ones(now) if now.n <= _FEW else now.but(stage=FIRST)


def _scan_from_the_end(now: Pieces) -> Pieces | None:
    """Both halves are needed: so a chunk of the latter, and none of the whole former."""
    half = now.n - now.n // 2
    return now.but(stage=SCAN, at=now.n, bad=half, size=max(1, half // 2), front=now.n // 2)


def _went(now: Pieces, left: int) -> Pieces | None:
    now = now.but(n=left, at=now.at - now.size, here=now.here + now.size)
    if not now.at:
        return _ones(now)
    if not now.bad:
        return now.but(size=min(now.at, 2 * now.size))
    bad = now.bad - now.size
    if bad > 1:
        return now.but(bad=bad, size=bad // 2)
    return _needed(now.but(at=now.at))


def _needed(now: Pieces) -> Pieces | None:
    """Go on before a piece that is needed: with as much as went before it, or far less if none."""
    at, kept = now.at - 1, now.kept + 1
    if not at:
        return _ones(now)
    hint = now.here or max(1, now.hint // _QUICKLY if now.hint else at // _QUICKLY)
    front = now.front if at >= now.front else 0
    size, bad = min(at, hint), 0
    if kept <= 2 and now.here:
        size = at
    if front and size == at:
        size, bad = max(1, at // 2), at
    return now.but(at=at, kept=kept, hint=hint, here=0, front=front, size=size, bad=bad)


def _ones(now: Pieces) -> Pieces | None:
    """Try every piece alone, from the end."""
    if now.n == 1:
        return None
    return now.but(stage=ONES, at=now.n, size=1)


def _step(now: Pieces) -> Pieces | None:
    at = now.at - 1
    if at >= now.size:
        return now.but(at=at) if now.n > now.size else None
    if now.stage == ONES and now.pairs and 2 < now.n <= _PAIRS_UP_TO:
        return now.but(stage=PAIRS, at=now.n, size=2)
    return None
