"""The whole numbers that a call can name: its arguments, what they hold, and the module's own.

Only data are read: the `__dict__` of objects, never a property or a `__getattr__`.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_MOST = 96
"""So many names of one call are kept."""
_CONFIGS = frozenset(
    ("config", "cfg", "conf", "args", "hparams", "hp", "params", "opt", "options", "settings")
)
"""Attributes whose own numbers are names too, as in `self.config.n_embd`."""
_HUGE = 1 << 40
_MODULE = type(sys)


def numbers_of(given: Iterable[tuple[str, Any]], wanted: Mapping[str, Any]) -> dict[str, int]:
    """Return the numbers that arguments and `wanted` names lead to, by their dotted names."""
    found: dict[str, int] = {}
    for name, value in (*given, *wanted.items()):
        if len(found) >= _MOST:
            break
        if type(value) is int:
            if 0 < value < _HUGE:
                found.setdefault(name, value)
        else:
            for inner, number in _held(value, 1):
                found.setdefault(f"{name}.{inner}", number)
    return found


def _held(value: Any, depth: int) -> Iterator[tuple[str, int]]:
    """Go through the numbers that an object has as plain data; its configuration's too."""
    for name, one in _data(value):
        if type(one) is int:
            if 0 < one < _HUGE:
                yield name, one
        elif depth and name in _CONFIGS:
            for inner, number in _held(one, depth - 1):
                yield f"{name}.{inner}", number


def _data(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, (type, _MODULE)):
        return []
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    if type(own) is not dict:
        return []
    return [(name, one) for name, one in [*own.items()] if type(name) is str and name[:2] != "__"]
