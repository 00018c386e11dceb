"""Which snapshots are worth their memory, and which goes first."""

from __future__ import annotations

from . import sites
from .choice import deepest_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from . import compare
    from .choice import Snapshot

MOST = 24
"""How many snapshots a program has at the most."""


def is_past_imports(snapshot: Snapshot, script: compare.Source, first: int) -> bool:
    """Tell whether the imports at the top of the script were done."""
    last = sites.past_imports(script.tree.body)
    seen = snapshot.seen_of(first, script)
    return snapshot.site == first + last or any(seen[last : len(script.tree.body) + 1])


def is_wanted(
    snapshot: Snapshot, source: compare.Source, wishes: Iterable[tuple[str, int]]
) -> bool:
    """Tell whether a snapshot stands where somebody asked for one, by file and line."""
    first = snapshot.files[snapshot.file][0]
    for name, line in wishes:
        if snapshot.file == name or snapshot.file.endswith(f"/{name}"):
            following = [
                (statement.lineno, -block.first, first + block.first + index)
                for block in source.blocks
                for index, statement in enumerate(block.body)
                if statement.lineno >= line and not sites.is_prelude(index, statement)
            ]
            if following and min(following)[2] == snapshot.site:
                return True
    return False


def to_drop(snapshots: Sequence[Snapshot], memory_is_short: bool = False) -> Snapshot | None:
    """Return the snapshot whose loss costs least; None if all have to stay.

    Those that the newest sources cannot use go first, those of old runs before others. Of the rest
    a ladder is kept, close below the deepest and wider further up: what counts is by which part
    the next run gets longer. After them go those that somebody asked for. The first after the
    imports and the deepest go last, and only if `memory_is_short`; one from which a run came that
    has not ended never goes.
    """
    free = [one for one in snapshots if not one.resuming]
    stale = [one for one in free if one.is_stale]
    if stale:
        return min(stale, key=lambda one: (one.run, -one.elapsed))
    useful = sorted((one for one in snapshots if not one.is_stale), key=_depth)
    if not useful:
        return None
    deepest = deepest_first(useful)[0]
    early = next((one for one in useful if one.is_past_imports), useful[0])
    losses = {
        one.id: _loss(below, one, deepest)
        for below, one in zip([None, *useful], useful, strict=False)
    }
    middle = [one for one in useful if not one.resuming and one not in (deepest, early)]
    inner = [one for one in middle if not one.is_wanted]
    if inner:
        closest = min(inner, key=lambda one: (losses[one.id], one.run))
        twin = useful[useful.index(closest) - 1]
        return twin if twin in inner and twin.run < closest.run else closest
    if middle:
        return min(middle, key=lambda one: (one.run, one.elapsed))
    ends = [one for one in (early, deepest) if not one.resuming]
    return ends[0] if memory_is_short and ends else None


def too_large(snapshots: Sequence[Snapshot], allowed: float) -> Snapshot | None:
    """Return a snapshot that would be too large even alone: others need not go for it."""
    found = [one for one in snapshots if one.alone > allowed and not one.resuming]
    return max(found, key=lambda one: one.alone, default=None)


def _depth(snapshot: Snapshot) -> tuple[float, int, int]:
    return snapshot.elapsed, -snapshot.run, -int(snapshot.id)


def _loss(below: Snapshot | None, one: Snapshot, deepest: Snapshot) -> float:
    """Return by which part a run gets longer that cannot begin at `one` any more."""
    start = below.elapsed if below else 0.0
    left = deepest.elapsed - start
    return (one.elapsed - start) / left if left > 0 else 0.0
