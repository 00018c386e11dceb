"""Chooses the name of a side: one that fits whatever was seen, and that is not there by chance.

Where the numbers alone leave it open which of several names is meant, the words of the statement
decide; where they do not either, the number is written, and the doubt is told.
"""

from __future__ import annotations

from relaunch.record import Record
from relaunch.trial.shapes.notation import ANY, evaluate, joined, names_in
from relaunch.trial.shapes.scope import ABOVE, MODULE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from relaunch.trial.shapes.sides import Side

    Seen = Sequence[tuple[int, Mapping[str, int]]]
    """Lengths of a side, each with the numbers by name at that moment."""

_TELLING = 5
"""A number below this is met too often to be a name's by itself."""
_TELLING_FAR = 32
"""Likewise of a sum that stands elsewhere."""
_TIMES = (2, 3, 4)


class Choice(Record):
    """What is written for a side."""

    text: str
    doubts: tuple[str, ...] = ()
    """Other names that fit what was seen just as well."""
    size: int = 0
    """How long the side always was; 0 if it was not always the same."""
    is_sure: bool = False
    """By the words of the code, or because it changed and the name with it."""


class Words(Record):
    """What the code around a side says."""

    nearness: Mapping[str, int]
    """Names, and how near each is."""
    used: frozenset[str] = frozenset()
    """Names that the statement uses."""
    sums: tuple[str, ...] = ()
    """Sums of names that stand in the function."""
    far_sums: tuple[str, ...] = ()
    """Sums that stand elsewhere in the file."""
    numbers: frozenset[int] = frozenset()
    """Numbers that stand in the statement."""
    taken: frozenset[str] = frozenset()
    """Names of other sides of the same array."""


def choose(seen: Seen, hint: Side | None, words: Words) -> Choice:
    """Return what to write for a side that had these lengths."""
    if not seen:
        return Choice(text=ANY)
    first = seen[0][0]
    is_steady = all(size == first for size, _ in seen)
    if hint is not None and hint.sure and _fits(hint.text, seen):
        return Choice(text=hint.text, is_sure=True)
    if is_steady and first <= 1:
        return Choice(text=str(first), is_sure=True)
    fitting = _by_nearness(seen, words)
    if hint is not None and _fits(hint.text, seen):
        if not is_steady:
            return Choice(text=hint.text, is_sure=True)
        is_told = hint.text.isidentifier() or hint.text in (*words.sums, *words.far_sums)
        if not is_told:  # a product that one number fits, and nobody wrote
            doubts = tuple(one for one in (hint.text, *fitting) if one != str(first))
            return Choice(text=str(first), doubts=doubts, size=first)
        others = [name for name in fitting if name not in (hint.text, *names_in(hint.text))]
        return Choice(text=hint.text, doubts=tuple(others), size=first)
    if is_steady:
        return _steady(first, seen, fitting, words)
    if fitting:
        name = min(fitting, key=lambda name: name not in words.used)
        return Choice(text=name, is_sure=True)
    for text in (*words.sums, *words.far_sums):
        if _fits(text, seen):
            return Choice(text=text, is_sure=True)
    found = list(dict.fromkeys(_made_up(seen, words)))
    if len(found) == 1:
        return Choice(text=found[0], is_sure=True)
    return Choice(text=ANY, doubts=tuple(found[:4]))


def _steady(size: int, seen: Seen, fitting: list[str], words: Words) -> Choice:
    """Choose for a side that always was the same."""
    used = [name for name in fitting if name in words.used and name not in words.taken]
    if len(used) == 1:
        others = [name for name in fitting if name not in used]
        return Choice(text=used[0], doubts=tuple(others), size=size)
    if size in words.numbers and not used:
        return Choice(text=str(size), is_sure=True)
    if fitting:
        others = _products(seen, words) if words.nearness.get(fitting[0], ABOVE) == ABOVE else []
        if len(fitting) == 1 and size >= _TELLING and not others:
            return Choice(text=fitting[0], size=size)
        return Choice(text=str(size), doubts=(*fitting, *others), size=size)
    sums = words.sums if size >= _TELLING else ()
    sums += words.far_sums if size >= _TELLING_FAR else ()
    alike = list(dict.fromkeys(one for one in sums if _fits(one, seen)))
    if len(alike) == 1:
        return Choice(text=alike[0], size=size)
    return Choice(text=str(size), doubts=tuple(alike), size=size)


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


def _products(seen: Seen, words: Words) -> list[str]:
    """Return the products of two names of the function itself that fit."""
    own = {name for name, near in words.nearness.items() if near < MODULE}
    return [text for text in _made_up(seen, words) if {*names_in(text)} <= own and "*" in text
            and len(names_in(text)) == 2]  # fmt: skip


def _sums(name: str, value: int) -> Iterator[tuple[str, int]]:
    for times in _TIMES:
        yield joined(str(times), "*", name), times * value
        if value % times == 0:
            yield joined(name, "//", str(times)), value // times
    yield joined(name, "+", "1"), value + 1
    yield joined(name, "-", "1"), value - 1
