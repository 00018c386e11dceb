"""Containers on one line: their first elements, each short, and how many more there are."""

from __future__ import annotations

from relaunch.inside.looks.choose import inner, name_of
from relaunch.inside.looks.plain import MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.inside.looks.choose import Above

DEPTH = 4
"""Containers in containers that are opened."""
SORTED = 64
"""A set of at most as many elements is shown in an order that is the same in every run."""
_ELEMENT = 60
_LEAST = 12
"""Room under which no further element is begun."""
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    dict: ("{", "}"),
    set: ("{", "}"),
}
ALONE = object()
"""In place of an element: the text before it is all there is."""


def sequence(value: Any, room: int, above: Above) -> str:
    """Show a list, a tuple, or anything else with a length that may be gone through safely."""
    kind = type(value)
    names = _names(kind)
    if names is not None:
        return named(
            value, zip(names, tuple.__iter__(value), strict=False), len(names), room, above
        )
    base = list if isinstance(value, list) else tuple if isinstance(value, tuple) else None
    size = base.__len__(value) if base else len(value)
    around = _around(kind, base or list)
    if base is tuple and size == 1:
        around = (around[0], f",{around[1]}")
    elements = base.__iter__(value) if base else iter(value)
    return joined(value, (("", one) for one in elements), size, room, above, around)


def mapping(value: Any, room: int, above: Above) -> str:
    """Show a dict or a view of one."""
    is_dict = isinstance(value, dict)
    items = dict.items(value) if is_dict else value.items()
    size = dict.__len__(value) if is_dict else len(value)
    inside = (*above, id(value))
    pairs = ((f"{inner(key, _ELEMENT, inside)}: ", one) for key, one in items)
    return joined(value, pairs, size, room, above, _around(type(value), dict))


def a_set(value: Any, room: int, above: Above) -> str:
    """Show a set; a small one sorted, for its own order differs from run to run."""
    base = set if isinstance(value, set) else frozenset
    size = base.__len__(value)
    if not size:
        return f"{name_of(type(value))}()"
    elements: Iterable[tuple[str, object]] = (("", one) for one in base.__iter__(value))
    if size <= SORTED:
        inside = (*above, id(value))
        texts = sorted(inner(one, _ELEMENT, inside) for one in base.__iter__(value))
        elements = ((one, ALONE) for one in texts)
    return joined(value, elements, size, room, above, _around(type(value), set))


def named(
    value: object, pairs: Iterable[tuple[str, object]], size: int, room: int, above: Above
) -> str:
    """Show the parts of a value by their names, as in a call: `Point(x=1, y=2)`."""
    parts = ((f"{name}=", one) for name, one in pairs)
    return joined(value, parts, size, room, above, (f"{name_of(type(value))}(", ")"))


def joined(
    value: object,
    elements: Iterable[tuple[str, object]],
    size: int,
    room: int,
    above: Above,
    around: tuple[str, str],
) -> str:
    """Join the elements, each with a text before it, until the room is full; count the rest."""
    opening, closing = around
    if id(value) in above:
        return f"{opening}...{closing}"
    if len(above) >= DEPTH and size:
        return f"{opening}{_more(size)}{closing}"
    inside = (*above, id(value))
    left = room - len(opening) - len(closing)
    spare = len(_more(size)) + 2
    parts: list[str] = []
    rest = size
    try:
        for head, one in elements:
            # The last one needs no room for a count behind it.
            free = left if rest <= 1 else left - spare
            if free < _LEAST + len(head) and (parts or rest > 1):
                parts.append(_more(rest))
                break
            if one is ALONE:
                part = head
            else:
                most = free if free <= _ELEMENT else max(_ELEMENT, free // 2)
                part = head + inner(one, max(_LEAST, most - len(head)), inside)
            parts.append(part)
            left -= len(part) + 2
            rest -= 1
    except RuntimeError:  # another thread changes it at this moment
        parts.append(MARK)
    return f"{opening}{', '.join(parts)}{closing}"


def _more(count: int) -> str:
    return f"{MARK} {count:,} more"


def _around(kind: type, base: type) -> tuple[str, str]:
    if kind is base or kind.__module__ == "torch":  # torch.Size is a shape like any other
        return _BRACKETS[base]
    opening, closing = _BRACKETS[base]
    return f"{name_of(kind)}({opening}", f"{closing})"


def _names(kind: type) -> tuple[str, ...] | None:
    """Return the names of the elements of a named tuple, also of one made in C."""
    if kind is tuple or not issubclass(kind, tuple):
        return None
    names = getattr(kind, "_fields", None)
    if names is None and hasattr(kind, "n_sequence_fields"):
        names = getattr(kind, "__match_args__", None)
    return names if type(names) is tuple and names else None
