"""`show(value)`: any value on one line, at once; it never raises and never changes anything.

A value is known by its type alone: nothing is imported for it, and no attribute of a stranger is
read that could run the stranger's code. How a kind looks is in `relaunch.inside.looks`.
"""

from __future__ import annotations

from relaunch.inside.looks.choose import hardly, look_for, looks, name_of
from relaunch.inside.looks.plain import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ROOM = 200
_EXACT = 1 << 53


def show(value: object, room: int = ROOM) -> str:
    """Return the value as one line of at most `room` characters; `room` is 20 or more."""
    kind = type(value)
    if kind is int and -_EXACT < value < _EXACT:  # type: ignore[operator]  # it is an int
        return repr(value)  # so many of them that it pays
    try:
        text = (looks.get(kind) or look_for(kind))(value, room, ())
        return text if len(text) <= room else cut(text, room)
    except Exception:
        return hardly(kind, room)


def summary(value: object) -> dict[str, object]:
    """Return what `show` says, and by name what it knows: shape, dtype, min ...; fit for JSON."""
    found: dict[str, object] = {"type": name_of(type(value)), "text": show(value)}
    try:
        found.update((key, _for_json(one)) for key, one in _facts(value).items())
    except Exception:
        pass
    return found


def _facts(value: object) -> dict[str, object]:
    kind = type(value)
    facts: Callable[[object], dict[str, object]] | None = getattr(looks.get(kind), "facts", None)
    if facts is not None:
        return facts(value)
    if value is None or kind is bool or (kind is str and len(str(value)) <= ROOM):
        return {"value": value}
    if type(value) is int or type(value) is float:
        # A reader of JSON has no nan, no inf, and no int beyond what a float holds.
        return {"value": value} if -_EXACT < value < _EXACT else {}
    if isinstance(value, (list, tuple, dict, set, frozenset, str, bytes)):
        return {"length": len(value)}
    return {}


def _for_json(value: object) -> object:
    """Bring a fact into what JSON has: it knows no nan, no inf, and no tuple."""
    if isinstance(value, (list, tuple)):
        return [_for_json(one) for one in value]
    if isinstance(value, float) and value - value != 0:
        return str(float(value))
    if value is None or type(value) in (bool, int, float, str):
        return value
    return str(value)
