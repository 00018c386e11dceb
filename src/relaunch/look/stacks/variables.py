"""The variables of one frame in many processes: which have the same value, and who differs."""

from __future__ import annotations

import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|\b0x[0-9a-fA-F]{6,}\b")
MISSING = "(not set)"


class Value(Record):
    """A value, and who has it: positions among the processes that were merged."""

    text: str
    members: tuple[int, ...]


class Variable(Record):
    """One variable; with one value all of them have the same."""

    name: str
    values: tuple[Value, ...]

    @property
    def differs(self) -> bool:
        """Tell whether not all of them have the same value."""
        return len(self.values) > 1


def washed(text: str) -> str:
    """Take the addresses out of a repr: they differ, and mean nothing."""
    return _ADDRESS.sub("", text) if "0x" in text else text


def compared(given: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[Variable, ...]:
    """Compare the variables of a frame; those in the order of the first that has them.

    Each comes with its position. One who lacks a variable that others have is told too.
    """
    names: dict[str, None] = {}
    for _, values in given:
        names.update(dict.fromkeys(values))
    return tuple(Variable(name=name, values=_values(name, given)) for name in names)


def _values(name: str, given: Sequence[tuple[int, Mapping[str, str]]]) -> tuple[Value, ...]:
    raw: dict[str, list[int]] = {}
    for member, values in given:
        raw.setdefault(values.get(name, MISSING), []).append(member)
    found: dict[str, list[int]] = {}
    for text, members in raw.items():
        found.setdefault(washed(text), []).extend(members)
    several = [Value(text=text, members=tuple(sorted({*who}))) for text, who in found.items()]
    return tuple(_in_order(several)) if len(several) > 1 else tuple(several)


def _in_order(values: list[Value]) -> list[Value]:
    """Order numbers by their size, other values by how many have them."""
    numbers = numeric(value.text for value in values)
    if numbers is not None:
        return [one for _, _, one in sorted(zip(numbers, range(len(values)), values, strict=True))]
    return sorted(values, key=lambda one: (-len(one.members), one.members))


def numeric(texts: Iterable[str]) -> list[float] | None:
    """Return the numbers that these are; None when one is none."""
    found = []
    for text in texts:
        try:
            found.append(float(text))
        except ValueError:
            return None
        if found[-1] != found[-1]:  # no order with a nan
            return None
    return found
