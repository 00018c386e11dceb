"""Numbers that a seed decides: the same on every Python, and without a module of the program's."""

from __future__ import annotations

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class Dice:
    """Splitmix64."""

    def __init__(self, seed: int) -> None:
        """Begin; neighbouring seeds have nothing in common."""
        self._state = (seed * 0xD1342543DE82EF95 + _STEP) & _MASK

    def word(self) -> int:
        """Return 64 bits."""
        self._state = (self._state + _STEP) & _MASK
        word = self._state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
        return word ^ (word >> 31)

    def share(self) -> float:
        """Return a number from 0 on, below 1."""
        return (self.word() >> 11) / (1 << 53)

    def below(self, count: int) -> int:
        """Return a whole number from 0 on, below `count`."""
        return self.word() * count >> 64
