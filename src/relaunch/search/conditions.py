"""Conditions on settings, rules made of them, and which of many cases they hold in."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Settings = Mapping[str, str]


class Condition(Record):
    """A factor has a value, or has it not; None is the value of a factor that is not set."""

    factor: str
    value: str | None
    is_not: bool = False

    def holds(self, settings: Settings) -> bool:
        """Tell whether it is so in one case."""
        return (settings.get(self.factor) == self.value) is not self.is_not

    @property
    def cost(self) -> int:
        """How much it is to say; what a value is not is a little more."""
        return 3 if self.is_not else 2

    @property
    def text(self) -> str:
        """Say it."""
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

    def __init__(self, cases: Sequence[Settings]) -> None:
        """A factor with two values needs no `!=`; one that never varies needs nothing at all."""
        self.everything = (1 << len(cases)) - 1
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
            for value, mask in values.items() if len(values) > 2 else ():
                negated = Condition(factor=factor, value=value, is_not=True)
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
