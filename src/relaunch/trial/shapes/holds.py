"""Whether shapes that stand in comments hold: each against every value that was seen there.

A name that the code knows has the number that it had then; any other stands for one number within
one call, whichever it is.
"""

from __future__ import annotations

from relaunch.record import Record
from relaunch.trial.shapes.notation import ANY, REST, Fields, Several, Shape, evaluate, names_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.trial.shapes.notation import Value
    from relaunch.trial.shapes.scope import Glimpse

    Where = tuple[int, int]
    """A site, and which of its names."""


class Broken(Record):
    """A shape that did not hold."""

    site: int
    index: int
    spec: Any
    why: str


def broken(said: Mapping[Where, Value], glimpses: Sequence[Glimpse]) -> dict[Where, Broken]:
    """Return the shapes that did not hold, each with the first value that showed it."""
    found: dict[Where, Broken] = {}
    bound: dict[int, dict[str, int]] = {}
    for glimpse in glimpses:
        where = (glimpse.site, glimpse.index)
        value = said.get(where)
        if value is None or not isinstance(glimpse.spec, tuple):
            continue
        own = bound.setdefault(glimpse.call, {})
        why = differs(value, glimpse.spec, glimpse.numbers, own)
        if why and where not in found:
            found[where] = Broken(site=where[0], index=where[1], spec=glimpse.spec, why=why)
    return found


def differs(value: Value, spec: Any, numbers: Mapping[str, int], bound: dict[str, int]) -> str:
    """Say in what a value is not as it is said to be; nothing if it is."""
    kind = spec[0] if spec and isinstance(spec[0], str) else ""
    if isinstance(value, Shape):
        shapes = [spec] if not kind else list(spec[1:])
        if kind == "dict":
            shapes = [shape for _, shape in spec[1:]]
        return _first(_shape_differs(value, shape, numbers, bound) for shape in shapes)
    if isinstance(value, Several):
        return _several_differ(value, spec, kind, numbers, bound)
    return _fields_differ(value, spec, kind, numbers, bound)


def _first(reasons: Any) -> str:
    return next((why for why in reasons if why), "")


def _several_differ(
    value: Several, spec: Any, kind: str, numbers: Mapping[str, int], bound: dict[str, int]
) -> str:
    if kind not in ("list", "tuple"):
        return f"it is {_called(kind)}, not several arrays"
    shapes = spec[1:]
    items = value.items
    if value.is_open:
        items = (*items, *[items[-1]] * (len(shapes) - len(items)))[: len(shapes)]
    if len(items) != len(shapes):
        return f"there are {len(shapes)} arrays, not {len(items)}"
    return _first(
        differs(item, shape, numbers, bound) for item, shape in zip(items, shapes, strict=True)
    )


def _fields_differ(
    value: Fields, spec: Any, kind: str, numbers: Mapping[str, int], bound: dict[str, int]
) -> str:
    if kind != "dict":
        return f"it is {_called(kind)}, not a dict"
    shapes = dict(spec[1:])
    for key, item in value.items:
        if key not in shapes:
            return f"it has no array `{key}`"
        why = differs(item, shapes[key], numbers, bound)
        if why:
            return f"{key}: {why}"
    return ""


def _called(kind: str) -> str:
    return f"a {kind}" if kind else "one array"


def _shape_differs(
    value: Shape, shape: Sequence[int | None], numbers: Mapping[str, int], bound: dict[str, int]
) -> str:
    sides = list(value.sides)
    if REST in sides:
        at = sides.index(REST)
        missing = len(shape) - (len(sides) - 1)
        if missing < 0:
            return f"it has {_dimensions(len(shape))}, not {len(sides) - 1} or more"
        sides[at : at + 1] = [ANY] * missing
    if len(sides) != len(shape):
        return f"it has {_dimensions(len(shape))}, not {len(sides)}"
    new: dict[str, int] = {}
    for side, size in zip(sides, shape, strict=True):
        why = _side_differs(side, size, numbers, bound, new)
        if why:
            return why
    bound.update(new)
    return ""


def _dimensions(count: int) -> str:
    return f"{count} dimension{'' if count == 1 else 's'}"


def _side_differs(
    side: str,
    size: int | None,
    numbers: Mapping[str, int],
    bound: Mapping[str, int],
    new: dict[str, int],
) -> str:
    if side == ANY or size is None:
        return ""
    names = names_in(side)
    known = {name: _number(name, numbers, {**bound, **new}) for name in names}
    if names == [side] and known[side] is None:
        new[side] = size
        return ""
    expected = evaluate(side, {name: n for name, n in known.items() if n is not None})
    if expected is None or expected == size:
        return ""
    return f"{side} is {expected}, not {size}" if names else f"{size}, not {expected}"


def _number(name: str, numbers: Mapping[str, int], bound: Mapping[str, int]) -> int | None:
    """Return what a name stands for: as it is written, or its last part."""
    for text in (name, name.rpartition(".")[2]):
        if text in numbers:
            return numbers[text]
    return bound.get(name)
