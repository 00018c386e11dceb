"""Which of many switches matter: the fewest that still make it fail, by delta debugging.

Who asks runs what is proposed, several at once if it likes, and answers which one failed first.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    Switches = tuple[Any, ...]
    Search = Generator[Sequence[Switches], int | None, Switches]
    """Yields switches to try, hears which of them fails first; returns the fewest in the end."""

_MOST_PAIRS = 24
_MOST_LED, _MOST_TRIES = 4, 60


def fewest(all_of_them: Sequence[Any], threads: Sequence[str] = ()) -> Search:
    """Find a part of the switches that fails, of which none can be left out.

    A thread that was interrupted for one of `threads`, which only led to another one, may as well
    be interrupted for that: then fewer are enough.
    """
    now = yield from _smallest_part(all_of_them)
    for count in range(1, min(len(now), _MOST_LED) if threads else 0):
        tries = _led_elsewhere(now, threads, count)[:_MOST_TRIES]
        found = (yield tries) if tries else None
        if found is not None:
            return tries[found]
    return now


def _led_elsewhere(now: Switches, threads: Sequence[str], count: int) -> list[Switches]:
    """Return `count` of the switches, to all threads they could go to."""
    found = []
    for part in combinations(now, count):
        choices = [
            [(kind, who, at, to) for to in threads if to != who] if kind == "p" else [one]
            for one in part
            for kind, who, at, _ in [one]
        ]
        found += [tuple(one) for one in product(*choices)]
    return found


def _smallest_part(all_of_them: Sequence[Any]) -> Search:
    now: Switches = tuple(all_of_them)
    if now and (yield [()]) is not None:
        return ()
    parts = 2
    while len(now) > 1:
        chunks = _split(now, parts)
        tries = [*chunks, *(_without(now, one) for one in chunks)] if parts == 2 else []
        tries = tries or [_without(now, one) for one in chunks]
        found = yield tries
        if found is not None:
            now = tries[found]
            parts = max(2, min(len(now), parts - 1))
        elif parts >= len(now):
            break
        else:
            parts = min(len(now), 2 * parts)
    if 2 < len(now) <= _MOST_PAIRS:
        now = yield from _without_pairs(now)
    return now


def _without_pairs(now: Switches) -> Search:
    """Leave two out at once: a switch there and the one back often need each other."""
    again = True
    while again and len(now) > 2:
        pairs = [(a, b) for a in range(len(now)) for b in range(a + 1, len(now))]
        tries = [tuple(x for n, x in enumerate(now) if n not in pair) for pair in pairs]
        found = yield tries
        again = found is not None
        if found is not None:
            now = tries[found]
    return now


def _split(items: Switches, parts: int) -> list[Switches]:
    size = len(items)
    ends = [size * number // parts for number in range(parts + 1)]
    return [items[a:b] for a, b in pairwise(ends) if a < b]


def _without(items: Switches, chunk: Switches) -> Switches:
    return tuple(one for one in items if one not in chunk)
