"""Finds by which way an object is reached from the variables of a frame: `self.conn`, `jobs[3]`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

_DEPTH, _MOST = 8, 50_000
_FUNCTION = type(lambda: 0)
_PLAIN = (int, float, complex, str, bytes, type, type(None))


def paths(variables: Mapping[str, Any], wanted: set[int]) -> dict[int, str]:
    """Return the shortest way to each of the objects, by their ids."""
    found: dict[int, str] = {}
    for path, thing in walk(variables):
        if id(thing) in wanted:
            found.setdefault(id(thing), path)
            if len(found) == len(wanted):
                break
    return found


def walk(variables: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Go through what variables hold, nearest first, some levels down; no code of the user runs."""
    level: list[tuple[str, Any]] = list(variables.items())
    seen: set[int] = set()
    for _ in range(_DEPTH):
        below: list[tuple[str, Any]] = []
        for path, thing in level:
            yield path, thing
            if len(seen) > _MOST:
                return
            if id(thing) not in seen and not isinstance(thing, _PLAIN):
                seen.add(id(thing))
                below += [(path + step, inner) for step, inner in _inside(thing)]
        level = below


def _inside(thing: Any) -> Iterator[tuple[str, Any]]:
    if type(thing) is dict:
        yield from ((f"[{_short(key)}]", value) for key, value in list(thing.items())[:1000])
    elif type(thing) in (list, tuple):
        yield from ((f"[{number}]", value) for number, value in enumerate(thing[:1000]))
    else:
        try:
            inner = object.__getattribute__(thing, "__dict__")
        except Exception:
            inner = {}
        if isinstance(inner, dict):
            yield from ((f".{name}", value) for name, value in list(inner.items())[:1000])
        cells = thing.__closure__ if isinstance(thing, _FUNCTION) else None
        for cell in cells or ():
            try:
                yield " closes over", cell.cell_contents
            except ValueError:
                continue


def _short(key: Any) -> str:
    return repr(key)[:40] if type(key) in (str, int, float, bool, tuple) else "..."
