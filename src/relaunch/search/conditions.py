"""Conditions on settings, rules made of them, and which of many cases they hold in."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Settings = Mapping[str, str]


_FOR_ORDER = 4
"""A factor needs this many numbers before ranges are considered."""
_MOST_RANGES = 120
"""With more possible ranges than this, only those with an open end are considered."""


class Condition(Record):
    """A factor has a value, or has it not; None is the value of a factor that is not set.

    Or it is a number of at least `low`, of at most `high`; empty: of any size.
    """

    factor: str
    value: str | None = None
    is_not: bool = False
    low: str = ""
    high: str = ""

    def holds(self, settings: Settings) -> bool:
        """Tell whether it is so in one case."""
        if not self.is_range:
            return (settings.get(self.factor) == self.value) is not self.is_not
        number = _number(settings.get(self.factor))
        return number is not None and _is_within(number, _number(self.low), _number(self.high))

    @property
    def is_range(self) -> bool:
        """Whether it speaks of how large a number is."""
        return bool(self.low or self.high)

    @property
    def is_plain(self) -> bool:
        """Whether it names the one value that a factor has."""
        return not self.is_not and not self.is_range

    @property
    def cost(self) -> int:
        """How much it is to say; what a value is not, or how large it is, is a little more."""
        return 2 if self.is_plain else 4 if self.low and self.high else 3

    @property
    def text(self) -> str:
        """Say it."""
        if self.is_range:
            if self.low and self.high:
                return f"{self.low}<={self.factor}<={self.high}"
            return f"{self.factor}>={self.low}" if self.low else f"{self.factor}<={self.high}"
        if self.value is None:
            return f"{self.factor} {'set' if self.is_not else 'not set'}"
        return f"{self.factor}{'!=' if self.is_not else '='}{self.value}"


class Rule(Record):
    """It fails in any of these ways; each way is conditions that hold together."""

    ways: tuple[tuple[Condition, ...], ...]

    def holds(self, settings: Settings) -> bool:
        """Tell whether the rule says that a case fails."""
        return any(all(one.holds(settings) for one in way) for way in self.ways)

    @property
    def cost(self) -> int:
        """How much it is to say: of two rules that explain the same, the cheaper is the better."""
        return sum(one.cost for way in self.ways for one in way) + len(self.ways) - 1

    @property
    def text(self) -> str:
        """Say it."""
        return " or ".join(" and ".join(one.text for one in way) or "always" for way in self.ways)


class Table:
    """In which cases each condition holds: a bit for each case."""

    def __init__(self, cases: Sequence[Settings], others: Sequence[Settings] = ()) -> None:
        """A factor with two values needs no `!=`; one that never varies needs nothing at all.

        `others` were run too, and are none of the question: no range speaks of their values.
        """
        self.everything = (1 << len(cases)) - 1
        self._others = others
        self.values = _places(cases)
        self.conditions: list[Condition] = []
        self.masks: list[int] = []
        for condition, mask in self._varying():
            self.conditions.append(condition)
            self.masks.append(mask)

    def _varying(self) -> Iterator[tuple[Condition, int]]:
        for factor, values in self.values.items():
            for value, mask in values.items() if len(values) > 1 else ():
                yield Condition(factor=factor, value=value), mask
        for factor, values in self.values.items():
            apart = {one.get(factor) for one in self._others} - values.keys()
            ranges = dict(
                _ranges(factor, values, [n for n in map(_number, apart) if n is not None])
            )
            yield from ((condition, mask) for mask, condition in ranges.items())
            for value, mask in values.items() if len(values) > 2 else ():
                negated = Condition(factor=factor, value=value, is_not=True)
                if self.everything & ~mask not in ranges:
                    yield negated, self.everything & ~mask

    def mask(self, numbers: Sequence[int]) -> int:
        """Return the cases in which all these conditions hold."""
        mask = self.everything
        for number in numbers:
            mask &= self.masks[number]
        return mask

    def holding(self, rule: Rule) -> int:
        """Return the cases in which a rule holds."""
        mask = 0
        for way in rule.ways:
            mask |= self.mask([self.conditions.index(condition) for condition in way])
        return mask

    def way(self, numbers: Sequence[int]) -> tuple[Condition, ...]:
        """Return these conditions in the order of the factors."""
        places = {factor: place for place, factor in enumerate(self.values)}
        found = [self.conditions[number] for number in numbers]
        return tuple(sorted(found, key=lambda one: places[one.factor]))


def _ranges(
    factor: str, values: Mapping[str | None, int], apart: Sequence[Decimal]
) -> Iterator[tuple[int, Condition]]:
    """Yield ranges of two numbers and more, where all values that are set are numbers.

    Two words for one number are one; a range that holds a number `apart` is none.
    """
    masks: dict[Decimal, int] = {}
    words: dict[Decimal, str] = {}
    for value, mask in values.items():
        if value is None:
            continue
        number = _number(value)
        if number is None:
            return
        masks[number] = masks.get(number, 0) | mask
        words.setdefault(number, value)
    if len(masks) < _FOR_ORDER:
        return
    ordered = sorted(masks)
    last = len(ordered) - 1
    has_middles = last * (last - 1) // 2 <= _MOST_RANGES
    for start in range(last):
        mask = masks[ordered[start]]
        for end in range(start + 1, last + 1):
            mask |= masks[ordered[end]]
            if (start, end) == (0, last) or not (start == 0 or end == last or has_middles):
                continue
            low = ordered[start] if start else None
            high = ordered[end] if end < last else None
            if not any(_is_within(one, low, high) for one in apart):
                yield (
                    mask,
                    Condition(
                        factor=factor,
                        low="" if low is None else words[low],
                        high="" if high is None else words[high],
                    ),
                )


def _is_within(number: Decimal, low: Decimal | None, high: Decimal | None) -> bool:
    return (low is None or low <= number) and (high is None or number <= high)


def _number(text: str | None) -> Decimal | None:
    try:
        number = Decimal(text or "")
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _places(cases: Sequence[Settings]) -> dict[str, dict[str | None, int]]:
    """Return for each factor and value the cases that have it."""
    factors = list(dict.fromkeys(factor for case in cases for factor in case))
    bits: dict[str, dict[str | None, list[int]]] = {factor: {} for factor in factors}
    for number, case in enumerate(cases):
        for factor in factors:
            bits[factor].setdefault(case.get(factor), []).append(number)
    return {
        factor: {value: _bitmask(numbers) for value, numbers in values.items()}
        for factor, values in bits.items()
    }


def _bitmask(numbers: Sequence[int]) -> int:
    """Return the number in which just these bits are set."""
    text = bytearray(max(numbers, default=-1) // 8 + 1)
    for number in numbers:
        text[number // 8] |= 1 << number % 8
    return int.from_bytes(text, "little")
