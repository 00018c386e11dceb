"""What two runs of a program told alike, and whether a third told that too."""

from __future__ import annotations

from enum import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

_ALIGNED = 2000
"""How many lines are searched for like ones where two runs told not equally many."""


class Gap(Enum):
    """What stands for lines that two runs do not have in common."""

    LINE = "one line, whatever it is"
    LINES = "any number of lines"


def in_common(one: Sequence[bytes], other: Sequence[bytes]) -> list[bytes | Gap]:
    """Return the lines that both have, with gaps for the others."""
    if len(one) == len(other):
        return [a if a == b else Gap.LINE for a, b in zip(one, other, strict=True)]
    head = _same(one, other)
    tail = _same(one[head:][::-1], other[head:][::-1])
    middle = _aligned(one[head : len(one) - tail], other[head : len(other) - tail])
    return [*one[:head], *middle, *one[len(one) - tail :]]


def _same(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    """Count the lines at the beginning that are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _aligned(one: Sequence[bytes], other: Sequence[bytes]) -> list[bytes | Gap]:
    if max(len(one), len(other)) > _ALIGNED:
        return [Gap.LINES]
    from difflib import SequenceMatcher

    found: list[bytes | Gap] = []
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    for kind, begin, end, other_begin, other_end in matcher.get_opcodes():
        if kind == "equal":
            found += one[begin:end]
        elif end - begin == other_end - other_begin:
            found += [Gap.LINE] * (end - begin)
        else:
            found.append(Gap.LINES)
    return found


def first_difference(
    wanted: Sequence[bytes | Gap], lines: Sequence[bytes]
) -> tuple[int, bytes] | None:
    """Return the first line that is not as wanted, by index, and what belongs there."""
    places = {0}
    for one in wanted:
        furthest = max(places)
        if one is Gap.LINES:
            places = {*range(min(places), len(lines) + 1)}
        else:
            fits = (n for n in places if n < len(lines) and one in (Gap.LINE, lines[n]))
            places = {n + 1 for n in fits}
        if not places:
            return furthest, one if isinstance(one, bytes) else "…".encode()
    return None if len(lines) in places else (max(places), b"")


def common_first(lines: Sequence[bytes], common: Counter[bytes]) -> list[bytes]:
    """Sort lines that have no order: those in common before all others."""
    left = common.copy()
    rest = []
    for line in sorted(lines):
        if left[line]:
            left[line] -= 1
        else:
            rest.append(line)
    return sorted((common - left).elements()) + rest
