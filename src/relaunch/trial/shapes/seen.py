"""Reads what the processes of a program saw: its calls, the numbers they name, what they set."""

from __future__ import annotations

import os

from relaunch.inside.shapes.book import ENDING
from relaunch.inside.shapes.inject import STEP
from relaunch.jsontext import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Spec = Any
    """A whole number, a shape as a tuple, a tuple of a kind and several shapes, or a text."""

ARGUMENTS = -1
"""Stands for the site of the arguments."""
CHANGES = "..."
"""What a number is that took too many values to be told."""


class Call:
    """One call of a function that was looked at."""

    def __init__(
        self, function: int, names: Mapping[str, int], above: Mapping[str, int] | None = None
    ) -> None:
        """Begin before anything is set; `above` is what its callers can name."""
        self.function = function
        self.names = dict(names)
        self.above = dict(above or {})
        self.events: list[tuple[int, int, Spec]] = []
        """What was set: site, which of its names, and what it was."""


def read_calls(folder: str, probe: int) -> list[Call]:
    """Read the calls of the functions of one probe; half-written lines are passed over."""
    found: list[Call] = []
    for data in _files(folder):
        found += calls_in(data, probe)
    return found


def calls_in(lines: Sequence[str], probe: int) -> list[Call]:
    """Read the lines of one process."""
    calls: dict[int, Call] = {}
    base = STEP * probe
    for line in lines:
        try:
            value = loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            number = value.get("function", -1)
            if base <= number < base + STEP:
                calls[value["call"]] = Call(number - base, value["names"], value["above"])
        elif isinstance(value, list) and len(value) == 4 and value[0] in calls:
            ident, site, index, spec = value
            calls[ident].events.append((site - base if site >= 0 else site, index, _spec(spec)))
    return list(calls.values())


def _spec(value: Any) -> Spec:
    return tuple(map(_spec, value)) if isinstance(value, list) else value


def _files(folder: str) -> Iterator[list[str]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name.endswith(ENDING):
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    yield file.read().splitlines()
            except OSError:
                continue
