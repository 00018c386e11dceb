"""The words of a command, and variables: an option goes with its value."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b

from relaunch.record import Record
from relaunch.search.shrink import pieces
from relaunch.search.shrink.model import Smaller
from relaunch.search.shrink.runs import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Mapping, Sequence

    from relaunch.search.shrink.model import Pass
    from relaunch.search.shrink.pieces import Pieces

_NUMBER = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PLAIN = ("", "0", "1", "a")


class _Texts:
    """What words and variables have in common: units that can go, values that can be plainer."""

    unit_name = ""

    def __init__(self, keep: Sequence[str] = ()) -> None:
        self.keep = tuple(keep)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All that is written, in order."""
        raise NotImplementedError

    @property
    def bytes(self) -> int:
        """How many bytes it has, with what separates them."""
        return sum(len(_encoded(text)) + 1 for text in self.texts)

    @cached_property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, then plainer ones."""
        return (self.bytes, sum(sum(_encoded(text)) for text in self.texts))

    @cached_property
    def key(self) -> builtins.bytes:
        """A digest of all words."""
        return blake2b(_encoded("\0".join(self.texts)), digest_size=16).digest()

    def write(self, path: str) -> None:
        """Write one on a line."""
        with open(path, "xb") as file:
            file.writelines(_encoded(text) + b"\n" for text in self.texts)

    @property
    def units(self) -> Sequence[tuple[int, int]]:
        """What goes together, as ranges."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many single ones there are."""
        return len(self.texts)

    def without(self, gone: set[int]) -> _Texts:
        """Return the rest."""
        raise NotImplementedError

    def is_kept(self, index: int) -> bool:
        """Tell whether one may not be changed."""
        raise NotImplementedError

    @property
    def values(self) -> Sequence[tuple[int, str]]:
        """What could be plainer: where it is, and the value."""
        raise NotImplementedError

    def with_value(self, index: int, value: str) -> _Texts:
        """Return it with another value at a place."""
        raise NotImplementedError

    def passes(self) -> Sequence[Pass]:
        """Return units first, then single ones, then their values."""
        found: list[Pass] = [_Units(self.unit_name)]
        if len(self.units) != self.count:
            found.append(_Units("words", single=True))
        return [*found, _PlainValues()]


class Words(_Texts):
    """The words of a command that may be left out: all, or those after the program."""

    unit_name = "options"

    def __init__(self, words: Sequence[str], *, keep: Sequence[str] = ()) -> None:
        """`keep` has patterns of options and words that stay as they are."""
        super().__init__(keep)
        self.words = tuple(words)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The words."""
        return self.words

    @cached_property
    def units(self) -> Sequence[tuple[int, int]]:
        """An option with its value is one: `--a=1`, `--a 1`, `-a 1`; others are alone."""
        found: list[tuple[int, int]] = []
        at, are_options_over = 0, False
        while at < len(self.words):
            word = self.words[at]
            end = at + 1
            if word == "--":
                are_options_over = True
            elif not are_options_over and _is_option(word) and "=" not in word:
                following = self.words[end] if end < len(self.words) else "-"
                end += following != "--" and not _is_option(following) and following != "-"
            found.append((at, end))
            at = end
        return found

    def without(self, gone: set[int]) -> Words:
        """Return the other words."""
        left = [word for index, word in enumerate(self.words) if index not in gone]
        return Words(left, keep=self.keep)

    def is_kept(self, index: int) -> bool:
        """Tell whether an option or its value was asked to stay."""
        before = self.words[index - 1] if index else ""
        names = [self.words[index], self.words[index].partition("=")[0]]
        if before and (index - 1, index + 1) in self.units:
            names.append(before)
        return any(_matches(name, pattern) for name in names for pattern in self.keep)

    @cached_property
    def values(self) -> Sequence[tuple[int, str]]:
        """What stands after `=`, and words that are no options."""
        found = []
        for index, word in enumerate(self.words):
            if not _is_option(word):
                found.append((index, word))
            elif "=" in word:
                found.append((index, word.partition("=")[2]))
        return [(index, value) for index, value in found if not self.is_kept(index)]

    def with_value(self, index: int, value: str) -> Words:
        """Return the words with another value of an option, or another word."""
        word = self.words[index]
        if _is_option(word):
            value = word.partition("=")[0] + "=" + value
        return Words((*self.words[:index], value, *self.words[index + 1 :]), keep=self.keep)


class Environment(_Texts):
    """Variables."""

    unit_name = "variables"

    def __init__(self, variables: Mapping[str, str], *, keep: Sequence[str] = ()) -> None:
        """`keep` has patterns of names that stay as they are."""
        super().__init__(keep)
        self.variables = dict(sorted(variables.items()))

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """All as `NAME=value`."""
        return tuple(f"{name}={value}" for name, value in self.variables.items())

    @cached_property
    def units(self) -> Sequence[tuple[int, int]]:
        """Each is one."""
        return [(index, index + 1) for index in range(len(self.variables))]

    def without(self, gone: set[int]) -> Environment:
        """Return the other variables."""
        left = [pair for index, pair in enumerate(self.variables.items()) if index not in gone]
        return Environment(dict(left), keep=self.keep)

    def is_kept(self, index: int) -> bool:
        """Tell whether a variable was asked to stay."""
        name = list(self.variables)[index]
        return any(fnmatchcase(name, pattern) for pattern in self.keep)

    @cached_property
    def values(self) -> Sequence[tuple[int, str]]:
        """The values."""
        found = enumerate(self.variables.values())
        return [(index, value) for index, value in found if not self.is_kept(index)]

    def with_value(self, index: int, value: str) -> Environment:
        """Return the variables with another value of one."""
        name = list(self.variables)[index]
        return Environment({**self.variables, name: value}, keep=self.keep)


class _Units:
    """Leaves out options, words or variables."""

    phase = 0

    def __init__(self, name: str, *, single: bool = False) -> None:
        """`single`: one word after the other, whatever belongs together."""
        self.name = name
        self.phase = int(single)
        self._single = single

    def _units(self, model: _Texts) -> list[list[int]]:
        """Return the units that may go; what lies around them stays."""
        if self._single:
            found = [[index] for index in range(model.count)]
        else:
            found = [list(range(start, end)) for start, end in model.units]
        return [unit for unit in found if not any(model.is_kept(index) for index in unit)]

    def begin(self, model: _Texts) -> Pieces | None:
        """Return the first place."""
        return pieces.begin(len(self._units(model)), pairs=True)

    def attempt(self, model: _Texts, cursor: Pieces) -> Smaller | None:
        """Return what is left without some units."""
        units = self._units(model)
        if len(units) != cursor.n:
            return None
        chosen = [unit for low, high in cursor.drops for unit in units[low:high]]
        gone = {index for unit in chosen for index in unit}
        what = said(self.name, cursor)
        if len(chosen) == 1:
            what = "`" + " ".join(_short(model.texts[index]) for index in chosen[0]) + "`"
        return Smaller(model=model.without(gone), what=f"without {what}")

    def failed(self, model: _Texts, cursor: Pieces) -> Pieces | None:
        """Return the next place; from the start where words now belong to others."""
        count = len(self._units(model))
        return pieces.failed(cursor) if cursor.n == count else pieces.begin(count, pairs=True)

    def passed(self, model: _Texts, cursor: Pieces) -> Pieces | None:
        """Return the next place in what is left."""
        return pieces.passed(cursor)


class _InText(Record):
    """A place: a value, one of the plain ones or of the sizes, then letters."""

    index: int
    choice: int = 0
    letters: Pieces | None = None


class _PlainValues:
    """Makes one value after the other plain: empty, 0, 1, smaller, shorter."""

    name = "values"
    phase = 2

    def begin(self, model: _Texts) -> _InText | None:
        """Return the first place."""
        return _InText(index=0) if model.values else None

    def attempt(self, model: _Texts, cursor: _InText) -> Smaller | None:
        """Return it with one value made plainer."""
        if cursor.index >= len(model.values):
            return None
        index, value = model.values[cursor.index]
        text: str | None
        if cursor.letters is None:
            choices = _plainer(value)
            text = choices[cursor.choice] if cursor.choice < len(choices) else None
        else:
            text = _without_letters(value, cursor.letters)
        if text is None or text == value:
            return None
        smaller = model.with_value(index, text)
        return Smaller(model=smaller, what=f"`{_short(smaller.texts[index])}`")

    def failed(self, model: _Texts, cursor: _InText) -> _InText | None:
        """Return the next plain value, the next letters, or the next value."""
        if cursor.index >= len(model.values):
            return None
        value = model.values[cursor.index][1]
        if cursor.letters is not None:
            return self._with_letters(model, cursor, pieces.failed(cursor.letters))
        if cursor.choice + 1 < len(_plainer(value)):
            return cursor.but(choice=cursor.choice + 1)
        return self._with_letters(model, cursor, pieces.begin(len(value), is_one_needed=True))

    def passed(self, model: _Texts, cursor: _InText) -> _InText | None:
        """Return the same value again, which is another now."""
        if cursor.letters is not None:
            return self._with_letters(model, cursor, pieces.passed(cursor.letters))
        return cursor.but(choice=0)

    @staticmethod
    def _with_letters(model: _Texts, cursor: _InText, to: Pieces | None) -> _InText | None:
        if to is not None:
            return cursor.but(letters=to)
        return _InText(index=cursor.index + 1) if cursor.index + 1 < len(model.values) else None


def _plainer(value: str) -> list[str]:
    """Return plain values that are shorter or as short: by kind, then smaller numbers."""
    found = list(_PLAIN)
    if _NUMBER.fullmatch(value):
        number = float(value)
        if abs(number) < 1e15:
            whole = int(number)
            found.append(str(whole))
            sizes = (whole // 1000, whole // 100, whole // 10, whole // 2, whole - whole // 4)
            found += [str(size) for size in sizes if abs(size) > 1]
            found.append(str(whole - 1 if whole > 0 else whole + 1))
    return [text for text in dict.fromkeys(found) if len(text) <= len(value) and text != value]


def _without_letters(value: str, letters: Pieces) -> str | None:
    if letters.n != len(value):
        return None
    gone = [range(low, high) for low, high in letters.drops]
    return "".join(
        letter for index, letter in enumerate(value) if not any(index in one for one in gone)
    )


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and not _NUMBER.fullmatch(word)


def _matches(word: str, pattern: str) -> bool:
    return fnmatchcase(word, pattern) or fnmatchcase(word.lstrip("-"), pattern)


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:37]}..."


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
