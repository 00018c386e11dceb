"""Which rows have values that programs trip over: one row of each kind that was seen.

Values come in columns, a batch at a time. Whole columns are asked by functions of C (`max`, `in`,
`sum`), and only what is new is looked for value by value: most batches have nothing new.
"""

from __future__ import annotations

import re
from itertools import chain, compress
from math import copysign, inf, isfinite

from relaunch.tiny.data.source import Unread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

ABSENT: Any = type("ABSENT", (), {"__repr__": lambda _: "ABSENT"})()
"""In the place of a value whose key a row does not have."""
_MOST_PATHS = 2000
"""Of rows whose keys are data themselves, no more names than these are kept apart."""
_DEEPEST = 8
_ORDER = (
    "broken", "nan", "inf", "-inf", "null", "no", "type", "empty", "surrogate", "NUL", "astral",
    "not ASCII", "-0", "min", "max", "longest",
)  # fmt: skip
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = {"nan": "nan", "null": "null", "none": "null", "na": "null", "n/a": "null",
          "inf": "inf", "-inf": "-inf", "infinity": "inf", "-infinity": "-inf"}  # fmt: skip


class Watch:
    """Remembers the first row of each kind of special value, and the ends of each range."""

    def __init__(self, *, of_text: bool = False) -> None:
        """Watch values as they are; `of_text`: as they are written, as csv has them."""
        self._of_text = of_text
        self._found: dict[tuple[str, str], int] = {}
        self._types: dict[str, dict[str, int]] = {}
        self._low: dict[str, tuple[Any, int]] = {}
        self._high: dict[str, tuple[Any, int]] = {}
        self._longest: dict[str, tuple[int, int]] = {}
        self._shortest: dict[str, int] = {}
        self.paths_left_out = False

    def kinds(self) -> list[tuple[str, int]]:
        """Return each kind in words with its row, those that break programs first."""
        found = [(kind, path, row) for (kind, path), row in self._found.items()]
        for path, types in self._types.items():
            if len(types) > 1:
                found += [(f"type {word}", path, row) for word, row in types.items()]
        for path, (low, row) in self._low.items():
            high, other = self._high[path]
            if low != high:
                found += [("min", path, row), ("max", path, other)]
        for path, (length, row) in self._longest.items():
            if length > self._shortest[path]:
                found.append(("longest", path, row))
        found.sort(key=lambda one: (_ORDER.index(one[0].split()[0] if one[0] not in _ORDER
                                                 else one[0]), one[2]))  # fmt: skip
        return [(_in_words(kind, path), row) for kind, path, row in found]

    def broken(self, what: str, row: int) -> None:
        """Note a row that cannot be read as the others."""
        self._found.setdefault(("broken", what), row)

    def note(self, kind: str, path: str, row: int) -> None:
        """Note a row of a kind, the first one alone."""
        self._found.setdefault((kind, path), row)

    def knows(self, kind: str, path: str) -> bool:
        """Tell whether a kind was seen."""
        return (kind, path) in self._found

    def type_seen(self, path: str, word: str, row: int) -> None:
        """Note the first row with a value of a type."""
        self._types.setdefault(path, {}).setdefault(word, row)

    def ends(self, path: str, low: Any, low_row: int, high: Any, high_row: int) -> None:
        """Note the least and the greatest value of a batch."""
        if path not in self._low or low < self._low[path][0]:
            self._low[path] = low, low_row
        if path not in self._high or high > self._high[path][0]:
            self._high[path] = high, high_row

    def lengths(self, path: str, shortest: int, longest: int, row: int) -> None:
        """Note how long the values of a batch are, with the row of the longest."""
        if path not in self._longest or longest > self._longest[path][0]:
            self._longest[path] = longest, row
        self._shortest[path] = min(shortest, self._shortest.get(path, shortest))

    def rows(self, rows: Sequence[Any], start: int) -> None:
        """See a batch of rows, of which `start` is the first."""
        self.some_rows(rows, range(start, start + len(rows)))

    def some_rows(self, rows: Sequence[Any], at: Sequence[int]) -> None:
        """See rows that need not follow each other."""
        if set(map(type, rows)) == {dict}:
            if not all(rows):
                self.note("empty", "", at[_index(rows, lambda one: not one)])
            self._dicts("", rows, at, 0)
        elif rows:
            self.column("", rows, at)

    def column(self, path: str, values: Sequence[Any], at: Sequence[int], depth: int = 0) -> None:
        """See the values of one column; `at` has their rows."""
        types = set(map(type, values))
        if len(types) == 1:
            self._one_type(path, types.pop(), values, at, depth)
            return
        for one in types:
            chosen = [n for n, value in enumerate(values) if type(value) is one]
            self._one_type(path, one, [values[n] for n in chosen], [at[n] for n in chosen], depth)

    def _one_type(
        self, path: str, kind: type, values: Sequence[Any], at: Sequence[int], depth: int
    ) -> None:
        if values[0] is ABSENT:
            self.note("no", path, at[0])
            return
        if kind is type(None):
            self.note("null", path, at[0])
            return
        if path not in self._types and len(self._types) >= _MOST_PATHS:
            self.paths_left_out = True
            return
        if not self._of_text:
            self.type_seen(path, "bytes" if kind is Unread else kind.__name__, at[0])
        if kind is dict:
            if depth < _DEEPEST:
                if not all(values):
                    self.note("empty", path, at[_index(values, lambda one: not one)])
                self._dicts(path, values, at, depth + 1)
        elif see := self._seers().get(kind):
            see(path, values, at)

    def _seers(self) -> Mapping[type, Callable[[str, Sequence[Any], Sequence[int]], None]]:
        return {str: self._text_column if self._of_text else self._strings, int: self._numbers,
                float: self._floats, list: self._lists, bytes: self._lists,
                Unread: self._lists}  # fmt: skip

    def _dicts(self, path: str, rows: Sequence[Any], at: Sequence[int], depth: int) -> None:
        for name in dict.fromkeys(chain.from_iterable(rows)):
            try:
                values = [row[name] for row in rows]
            except KeyError:
                values = [row.get(name, ABSENT) for row in rows]
            self.column(f"{path}.{name}" if path else str(name), values, at, depth)

    def _strings(self, path: str, values: Sequence[str], at: Sequence[int]) -> None:
        if ("empty", path) not in self._found and "" in values:
            self.note("empty", path, at[values.index("")])
        self._lengths(path, values, at)
        self._characters(path, values, at)

    def _characters(self, path: str, values: Sequence[str], at: Sequence[int]) -> None:
        found = self._found
        wanted = [kind for kind in ("not ASCII", "astral", "surrogate", "NUL")
                  if (kind, path) not in found]  # fmt: skip
        if not wanted:
            return
        joined = "".join(values)
        if "NUL" in wanted and "\0" in joined:
            self.note("NUL", path, at[_index(values, lambda one: "\0" in one)])
        if joined.isascii():
            return
        if "not ASCII" in wanted:
            self.note("not ASCII", path, at[_index(values, lambda one: not one.isascii())])
        if "astral" in wanted and max(joined) > "\uffff":
            self.note(
                "astral", path, at[_index(values, lambda one: max(one, default="") > "\uffff")]
            )
        if "surrogate" in wanted and _SURROGATE.search(joined):
            self.note(
                "surrogate", path, at[_index(values, lambda one: bool(_SURROGATE.search(one)))]
            )

    def _lists(self, path: str, values: Sequence[Any], at: Sequence[int]) -> None:
        if ("empty", path) not in self._found and not all(values):
            self.note("empty", path, at[_index(values, lambda one: not one)])
        self._lengths(path, values, at)

    def _lengths(self, path: str, values: Sequence[Any], at: Sequence[int]) -> None:
        lengths = list(map(len, values))
        longest = max(lengths)
        if longest > self._longest.get(path, (-1, 0))[0]:
            self._longest[path] = longest, at[lengths.index(longest)]
        shortest = self._shortest.get(path)
        if shortest is None or shortest:
            least = min(lengths)
            self._shortest[path] = least if shortest is None else min(least, shortest)

    def _numbers(self, path: str, values: Sequence[Any], at: Sequence[int]) -> None:
        low, high = min(values), max(values)
        if path not in self._low or low < self._low[path][0]:
            self._low[path] = low, at[values.index(low)]
        if path not in self._high or high > self._high[path][0]:
            self._high[path] = high, at[values.index(high)]

    def _floats(self, path: str, values: Sequence[float], at: Sequence[int]) -> None:
        if not isfinite(sum(values)):
            values, at = self._finite(path, values, at)
            if not values:
                return
        self._numbers(path, values, at)
        if ("-0", path) not in self._found and 0.0 in values:
            for n, value in enumerate(values):
                if value == 0 and copysign(1, value) < 0:
                    self.note("-0", path, at[n])
                    break

    def _finite(
        self, path: str, values: Sequence[float], at: Sequence[int]
    ) -> tuple[list[float], list[int]]:
        """Note those that are not finite, and return the others."""
        for n, value in enumerate(values):
            if value != value:
                self.note("nan", path, at[n])
            elif value in (inf, -inf):
                self.note("inf" if value > 0 else "-inf", path, at[n])
        kept = [(value, row) for value, row in zip(values, at, strict=True) if isfinite(value)]
        return [value for value, _ in kept], [row for _, row in kept]

    def _text_column(self, path: str, values: Sequence[str], at: Sequence[int]) -> None:
        """See values as csv has them: numbers, and words that are read as no value at all."""
        self._strings(path, values, at)
        if "" in values:
            at = list(compress(at, values))
            values = list(filter(None, values))
        types = self._types.setdefault(path, {})
        if not values:
            return
        if "number" not in types and not any(_number(one) is not None for one in values[:50]):
            types.setdefault("str", at[0])
            self._find_words(path, values, at)
            return
        numbers = self._numbers_in(path, values, at)
        if numbers[0]:
            types.setdefault("number", numbers[1][0])
            self._floats(path, *numbers)

    def _numbers_in(
        self, path: str, values: Sequence[str], at: Sequence[int]
    ) -> tuple[Sequence[float], Sequence[int]]:
        """Return the numbers of a column with their rows; note what is none."""
        try:
            return list(map(float, values)), at
        except ValueError:
            pass
        self._find_words(path, values, at)
        kept = []
        for value, row in zip(values, at, strict=True):
            number = _number(value)
            if number is not None:
                kept.append((number, row))
            elif value.strip().lower() not in _WORDS:
                self.type_seen(path, "str", row)
        return [number for number, _ in kept], [row for _, row in kept]

    def _find_words(self, path: str, values: Sequence[str], at: Sequence[int]) -> None:
        lowered = [value.lower() for value in values]
        for word in _WORDS.keys() & set(lowered):
            self.note(_WORDS[word], path, at[lowered.index(word)])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _index(values: Sequence[Any], is_it: Callable[[Any], bool]) -> int:
    return next(n for n, value in enumerate(values) if is_it(value))


def _in_words(kind: str, path: str) -> str:
    if kind == "broken":
        return path
    what = path or "the row"
    if kind == "no":
        return f"no {what}"
    if kind.startswith("type "):
        return f"{kind[5:]} in {what}"
    if kind in ("min", "max", "longest"):
        return f"{kind} of {what}" if kind != "longest" else f"longest {what}"
    return f"{kind} in {what}"
