"""What differs between two JSON texts, key by key, and a text with some of it taken over. Pure.

Commas make lines of JSON depend on each other, so a mix is written anew: its values count, the
layout is ours. With all or nothing taken over it is the one or the other text itself.
"""

from __future__ import annotations

import json
import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any

    Path = tuple[str | int, ...]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:\n]|[^\s{}\[\],:"]+')
_NOTHING: Any = object()


class Value(Record):
    """A key whose value differs; `old` or `new` is None where it is not there."""

    path: Path
    old: str | None
    new: str | None
    lines: tuple[int, int]
    """In the old and the new text, from 0."""


class JsonMix:
    """Two JSON texts, and all that lies between them; ValueError if one is none."""

    def __init__(self, old: str, new: str) -> None:
        """Compare."""
        self._texts = old, new
        self._old, self._new = _loads(old), _loads(new)
        lines = _lines(old), _lines(new)
        self.changes = [
            Value(
                path=path,
                old=None if a is _NOTHING else _one_line(a),
                new=None if b is _NOTHING else _one_line(b),
                lines=(lines[0].get(path, 0), lines[1].get(path, 0)),
            )
            for path, a, b in _differing(self._old, self._new, ())
        ]

    def mix(self, chosen: Collection[int]) -> str:
        """Return the old text with these values taken over."""
        if len(chosen) == len(self.changes):
            return self._texts[1]
        if not chosen:
            return self._texts[0]
        paths = {self.changes[number].path for number in chosen}
        value = _mixed(self._old, self._new, (), paths)
        return json.dumps(value, indent=2) + "\n"


def _loads(text: str) -> Any:
    text.encode("utf-8")  # bytes that are no text would be another text when written anew
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _one_line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_same(old: Any, new: Any) -> bool:
    """Compare as written: to Python 1 and 1.0 and True are equal."""
    return json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True)


def _differing(old: Any, new: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    for key in _steps(old, new):
        a, b = _at(old, key), _at(new, key)
        if a is _NOTHING or b is _NOTHING:
            yield (*path, key), a, b
        elif not _is_same(a, b):
            yield from _differing(a, b, (*path, key))
    if not _can_step(old, new):
        yield path, old, new


def _can_step(old: Any, new: Any) -> bool:
    """Tell whether two values can be compared part by part."""
    if isinstance(old, dict) and isinstance(new, dict):
        return True
    return isinstance(old, list) and isinstance(new, list) and len(old) == len(new)


def _steps(old: Any, new: Any) -> list[Any]:
    """Return the keys of both, those of the new one beside those it has them beside."""
    if not _can_step(old, new):
        return []
    if isinstance(old, list):
        return list(range(len(old)))
    found = list(old)
    for at, key in enumerate(new):
        if key not in old:
            before = list(new)[at - 1] if at else None
            found.insert(found.index(before) + 1 if before is not None else 0, key)
    return found


def _at(value: Any, key: Any) -> Any:
    if isinstance(value, dict):
        return value.get(key, _NOTHING)
    return value[key]


def _mixed(old: Any, new: Any, path: Path, taken: set[Path]) -> Any:
    if path in taken:
        return new
    if old is _NOTHING or new is _NOTHING or not _can_step(old, new):
        return old
    pairs = [
        (key, _mixed(_at(old, key), _at(new, key), (*path, key), taken)) for key in _steps(old, new)
    ]
    pairs = [(key, value) for key, value in pairs if value is not _NOTHING]
    return dict(pairs) if isinstance(old, dict) else [value for _, value in pairs]


def _lines(text: str) -> dict[Path, int]:
    """Return the line of each key and item; the text is known to be JSON."""
    found: dict[Path, int] = {}
    stack: list[list[Any]] = []
    """Of each open object or list: the step that is due, and whether it is a list."""
    line, last = 0, ""
    for token in _TOKEN.findall(text):
        if token == "\n":
            line += 1
            continue
        here = stack[-1] if stack else None
        if here and here[1] and last in ("[", ",") and token != "]":
            here[0] += 1
            found[tuple(one[0] for one in stack)] = line
        elif here and not here[1] and last in ("{", ",") and token != "}":
            here[0] = json.loads(token)
            found[tuple(one[0] for one in stack)] = line
        if token in ("{", "["):
            stack.append([-1, token == "["])
        elif token in ("}", "]"):
            stack.pop()
        last = token
    return found
