"""The values a setting can take between two ends, in order and by number; never listed in full."""

from __future__ import annotations

from enum import Enum
from math import ceil, floor, log10

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Ladder(Protocol):
        """Values in rising order, numbered from 0."""

        size: int

        def value(self, place: int) -> float:
            """Return the value at a place."""

        def nearest(self, value: float) -> int:
            """Return the place of the value that is nearest."""


class Scale(Enum):
    """How the values between two ends are spread."""

    LOG = "log"
    LINEAR = "linear"


_WIDE = 10
"""Ends this many times apart are taken on a log scale."""


def fitting_scale(low: float, high: float) -> Scale:
    """Choose the scale that a person would: log where the ends are far apart."""
    if low < 0 or (isinstance(low, float) and low == 0):
        return Scale.LINEAR
    return Scale.LOG if high >= _WIDE * (low or 1) else Scale.LINEAR


def fitting_step(low: float, high: float, digits: int) -> float:
    """Return a round step that divides a range into parts of that many digits."""
    if isinstance(low, int) and isinstance(high, int):
        return 1
    return 10.0 ** (ceil(log10(high - low)) - digits) if high > low else 1.0


class Even:
    """Values that lie a step apart; the upper end belongs to them even if it is off the step."""

    def __init__(self, low: float, high: float, step: float) -> None:
        """Whole ends and a whole step give whole values."""
        if step <= 0:
            raise ValueError(f"a step must be above 0, not {step}")
        self.low, self.high, self.step = low, high, step
        self._is_whole = all(isinstance(one, int) for one in (low, high, step))
        steps = (high - low) // step if self._is_whole else floor((high - low) / step + 1e-9)
        self.size = int(steps) + 1
        if self._at(self.size - 1) < high:
            self.size += 1

    def value(self, place: int) -> float:
        """Return the value at a place."""
        return self.high if place == self.size - 1 else self._at(place)

    def nearest(self, value: float) -> int:
        """Return the place of the value that is nearest, or of the one below it."""
        if value >= self.high:
            return self.size - 1
        steps = (value - self.low) / self.step
        return max(0, int(value - self.low) // int(self.step) if self._is_whole else round(steps))

    def _at(self, place: int) -> float:
        value = self.low + place * self.step
        return value if self._is_whole else float(f"{value:.12g}")


class Digits:
    """Values with so many digits that count: 0.010, 0.011, ... 0.099, 0.10, ...; and the ends."""

    def __init__(self, low: float, high: float, digits: int) -> None:
        """Both ends must be above 0."""
        if low <= 0:
            raise ValueError(f"a log scale needs values above 0, not {low}")
        self.low, self.high, self.digits = float(low), float(high), digits
        self._most: int = 10**digits
        self._first = self._number(self.low)
        while self._rounded(self._first) <= self.low:
            self._first += 1  # the first one above the lower end
        last = self._number(self.high)
        while self._rounded(last) >= self.high:
            last -= 1
        inner = max(0, last - self._first + 1)
        self.size = inner + (2 if self.high > self.low else 1)

    def value(self, place: int) -> float:
        """Return the value at a place."""
        if place == 0:
            return self.low
        return self.high if place == self.size - 1 else self._rounded(self._first + place - 1)

    def nearest(self, value: float) -> int:
        """Return the place of the value that is nearest."""
        if value <= self.low or value >= self.high:
            return 0 if value <= self.low else self.size - 1
        return min(max(0, self._number(value) - self._first + 1), self.size - 1)

    def _number(self, value: float) -> int:
        mantissa, _, exponent = f"{value:.{self.digits - 1}e}".partition("e")
        least = self._most // 10
        return int(exponent) * (self._most - least) + int(mantissa.replace(".", "")) - least

    def _rounded(self, number: int) -> float:
        least = self._most // 10
        exponent, rest = divmod(number, self._most - least)
        return float(f"{least + rest}e{exponent - self.digits + 1}")


def place_of(ladder: Ladder, value: float) -> int:
    """Return the place of a value that is on the ladder."""
    place = ladder.nearest(value)
    if ladder.value(place) != value:
        raise ValueError(f"{value} is not one of the values; the nearest is {ladder.value(place)}")
    return place


def ladder_of(
    low: float, high: float, scale: Scale, step: float | None = None, digits: int = 2
) -> Ladder:
    """Return the values between two ends: whole ones by a step, others to so many digits."""
    if high < low:
        raise ValueError(f"the range {low}..{high} runs backwards")
    is_whole = isinstance(low, int) and isinstance(high, int)
    if scale is Scale.LOG and not is_whole and step is None:
        return Digits(low, high, digits)
    return Even(low, high, fitting_step(low, high, digits) if step is None else step)
