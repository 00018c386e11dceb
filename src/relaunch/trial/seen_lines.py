"""Tells quickly that output has no secret: programs print the same lines again, but for digits.

A line that came twice is looked at without its digits, once. Where nothing is in it that a secret
has to begin with, no line that differs only in digits has a secret, or the beginning of one.
"""

from __future__ import annotations

from relaunch.inside.secret_shapes import has_anchor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_DIGITS = b"0123456789"
_LINES = bytes.maketrans(b"\r", b"\n")
"""What goes back to the beginning of a line ends it."""
_SMALL = 512
"""A block of this size is looked at in one."""
_PART = 1 << 17
_LEAST = 4
"""So much of a known secret must be left without its digits."""
_FEW = 16
"""Lines are few that are no more than this part of the data."""
_FIRST = 4096
"""So much is looked at the first time already: most programs print no more."""
_MOST_SKIPPED = 16
_MOST_BYTES = 1 << 20


class SeenLines:
    """What lines without their digits have: nothing, perhaps a secret, or not known yet."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        """Know no line yet; `secrets` are looked for too."""
        bare = [(max(_bare(one).split(b"\n"), key=len), one) for one in secrets]
        self._known = tuple({left for left, _ in bare if len(left) >= _LEAST})
        self._digits = tuple(one for left, one in bare if len(left) < _LEAST)
        self._harmless: set[bytes] = set()
        self._suspects: set[bytes] = set()
        self._once: set[bytes] = set()
        self._size = 0
        self._in_vain = self._to_skip = 0
        """Where lines seldom repeat, fewer and fewer large blocks are looked at."""

    def are_harmless(self, data: bytes) -> bool:
        """Tell whether no secret is in the data, and none begins there; False is not known."""
        if len(data) <= _SMALL:
            bare = _bare(data)
            known = bare in self._harmless or self._learn({bare}, len(data))
        elif self._to_skip:
            self._to_skip -= 1
            return False
        else:
            new = self._new_in(data)
            known = not new or self._learn(new, len(data))
            self._in_vain = 0 if known else min(2 * self._in_vain + 2, _MOST_SKIPPED)
            self._to_skip = max(0, self._in_vain - 2)
        return known and not any(one in data for one in self._digits)

    def _new_in(self, data: bytes) -> set[bytes]:
        """Return the lines that are not known to be harmless; in parts, which stay in the cache."""
        new: set[bytes] = set()
        at = 0
        while at < len(data):
            end = len(data)
            if end - at > _PART:
                end = data.rfind(b"\n", at, at + _PART) + 1 or end
            lines = _bare(data[at:end]).split(b"\n")
            if len(lines) > 1 and lines[-2].startswith(lines[-1]):
                del lines[-1]  # it is cut off by the end of the data, or empty
            new.update(lines)
            at = end
        new -= self._harmless
        return new

    def _learn(self, lines: set[bytes], size: int) -> bool:
        """Look at those that come again, and at all if they are few; tell whether all are harmless.

        Most of what comes but once is looked at by those who find secrets, who are quicker then.
        """
        new = lines - self._suspects
        known = new & self._once
        new -= known
        amount = sum(map(len, new))
        if self._size + amount < _FIRST or amount * _FEW < size:
            known |= new
        else:
            self._make_room(amount)
            self._once |= new
        if known:
            self._once -= known
            self._make_room(sum(map(len, known)))
            self._divide(tuple(known))
        return self._harmless.issuperset(lines)

    def _make_room(self, amount: int) -> None:
        self._size += amount
        if self._size > _MOST_BYTES:
            self._size = amount
            for known in (self._harmless, self._suspects, self._once):
                known.clear()

    def _divide(self, lines: Sequence[bytes]) -> None:
        """Find those that may have a secret."""
        text = b"\n".join(lines)
        if not has_anchor(text) and not any(one in text for one in self._known):
            self._harmless.update(lines)
        elif len(lines) == 1:
            self._suspects.update(lines)
        else:
            half = len(lines) // 2
            self._divide(lines[:half])
            self._divide(lines[half:])


def _bare(data: bytes) -> bytes:
    return data.translate(_LINES, _DIGITS)
