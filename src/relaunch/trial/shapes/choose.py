"""Chooses the name of a side: one that fits whatever was seen, and that is not there by chance.

Where the numbers alone leave it open which of several names is meant, the words of the statement
decide; where they do not either, the number is written, and the doubt is told.
"""

from __future__ import annotations

from relaunch.record import Record
from relaunch.trial.shapes.notation import ANY, evaluate, joined, names_in
from relaunch.trial.shapes.scope import ABOVE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.trial.shapes.sides import Side

    Seen = Sequence[tuple[int, Mapping[str, int]]]
    """Lengths of a side, each with the numbers by name at that moment."""

_TELLING = 5
"""A number below this is met too often to be a name's by itself."""
_TIMES = (2, 3, 4)


class Choice(Record):
    """What is written for a side."""

    text: str
    doubts: tuple[str, ...] = ()
    """Other names that fit what was seen just as well."""
    is_constant: bool = False
    """A number stands there only because it never was another one, and has no name."""


class Words(Record):
    """What the code around a side says."""

    nearness: Mapping[str, int]
    """Names, and how near each is."""
    used: frozenset[str] = frozenset()
    """Names that the statement uses."""
    sums: tuple[str, ...] = ()
    """Sums of names that stand somewhere in the code."""


def choose(seen: Seen, hint: Side | None, words: Words) -> Choice:
    """Return what to write for a side that had these lengths."""
    if not seen:
        return Choice(text=ANY)
    first = seen[0][0]
    is_steady = all(size == first for size, _ in seen)
    if hint is not None and hint.sure and _fits(hint.text, seen):
        return Choice(text=hint.text)
    if is_steady and first <= 1:
        return Choice(text=str(first))
    fitting = _by_nearness(seen, words)
    if hint is not None and _fits(hint.text, seen):
        others = [name for name in fitting if name not in (hint.text, *names_in(hint.text))]
        return Choice(text=hint.text, doubts=tuple(others) if is_steady else ())
    if is_steady:
        return _steady(first, seen, fitting, words)
    if fitting:
        return Choice(text=min(fitting, key=lambda name: name not in words.used))
    for sum_ in words.sums:
        if _fits(sum_, seen):
            return Choice(text=sum_)
    found = list(dict.fromkeys(_made_up(seen, words)))
    if len(found) == 1:
        return Choice(text=found[0])
    return Choice(text=ANY, doubts=tuple(found[:4]))


def _steady(size: int, seen: Seen, fitting: list[str], words: Words) -> Choice:
    """Choose for a side that always was the same."""
    used = [name for name in fitting if name in words.used]
    if len(used) == 1:
        others = [name for name in fitting if name not in used]
        return Choice(text=used[0], doubts=tuple(others))
    if fitting:
        is_telling = len(fitting) == 1 and size >= _TELLING
        if is_telling:
            return Choice(text=fitting[0])
        return Choice(text=str(size), doubts=tuple(fitting))
    sums = [one for one in words.sums if _fits(one, seen)] if size >= _TELLING else []
    alike = list(dict.fromkeys(sums))
    if len(alike) == 1:
        return Choice(text=alike[0])
    return Choice(text=str(size), doubts=tuple(alike), is_constant=not alike)


def _by_nearness(seen: Seen, words: Words) -> list[str]:
    """Return the names that fit everything seen, the nearest first."""
    size, numbers = seen[0]
    found = [name for name, number in numbers.items() if number == size]
    for size, numbers in seen[1:]:
        if not found:
            break
        found = [name for name in found if numbers.get(name) == size]
    return sorted(found, key=lambda name: words.nearness.get(name, ABOVE))


def _fits(text: str, seen: Seen) -> bool:
    return all(evaluate(text, numbers) == size for size, numbers in seen)


def _made_up(seen: Seen, words: Words) -> Iterator[str]:
    """Go through simple sums of near names that fit a side of several lengths."""
    size, numbers = seen[0]
    near = sorted(
        (name for name in numbers if words.nearness.get(name, ABOVE) < ABOVE),
        key=lambda name: words.nearness[name],
    )[:40]
    for n, name in enumerate(near):
        value = numbers[name]
        for text, result in _sums(name, value):
            if result == size and _fits(text, seen):
                yield text
        for other in near[:n]:
            if value * numbers[other] == size:
                text = joined(other, "*", name)
                if _fits(text, seen):
                    yield text
        for other in near:
            if other != name and numbers[other] > 1 and value == size * numbers[other]:
                text = joined(name, "//", other)
                if _fits(text, seen):
                    yield text


def _sums(name: str, value: int) -> Iterator[tuple[str, int]]:
    for times in _TIMES:
        yield joined(str(times), "*", name), times * value
        if value % times == 0:
            yield joined(name, "//", str(times)), value // times
    yield joined(name, "+", "1"), value + 1
    yield joined(name, "-", "1"), value - 1
