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
    try:
        text = (looks.get(kind) or look_for(kind))(value, room, ())
        return text if len(text) <= room else cut(text, room)
    except Exception:
        return hardly(kind, room)


def summary(value: object) -> dict[str, object]:
    """Return what `show` says, and by name what it knows: shape, dtype, min ...; fit for JSON."""
    found: dict[str, object] = {"type": name_of(type(value)), "text": show(value)}
    try:
        found.update(_facts(value))
    except Exception:
        pass
    return found


def _facts(value: object) -> dict[str, object]:
    kind = type(value)
    facts: Callable[[object], dict[str, object]] | None
    facts = getattr(looks.get(kind), "facts", None)
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
