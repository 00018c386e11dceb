"""From what was seen of a function to the shape of each of its values, in names."""

from __future__ import annotations

import ast

from relaunch.inside.shapes.sites import own_statements
from relaunch.record import Record
from relaunch.trial.shapes.choose import Choice, Words, choose
from relaunch.trial.shapes.hints import Hints, unpacked
from relaunch.trial.shapes.notation import ANY, REST, Fields, Several, Shape, names_in
from relaunch.trial.shapes.patterns import value_of
from relaunch.trial.shapes.scope import Scope
from relaunch.trial.shapes.sides import Side
from relaunch.trial.shapes.sums import names_used, numbers_used, sums_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

    from relaunch.inside.shapes.sites import Function, Site
    from relaunch.trial.shapes.notation import Value
    from relaunch.trial.shapes.scope import Glimpse
    from relaunch.trial.shapes.seen import Call
    from relaunch.trial.shapes.sides import Sides

_SHOWN = 4
"""Of more different arrays together, no shape is told."""


class Found(Record):
    """What a name was seen to be at a site."""

    site: Any
    """The `Site` itself."""
    index: int
    label: str
    value: Any = None
    """The shape in names; None where there is no one shape to tell."""
    why_not: str = ""
    doubts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What was written, and what else it may be."""
    steady: tuple[tuple[str, int], ...] = ()
    """What was written on trust: it had one size, this, in all calls."""


class Inference:
    """Goes through one function in the order of its text."""

    def __init__(self, function: Function, calls: Sequence[Call], sums: Sequence[str]) -> None:
        """`sums` are those of names that stand in the file."""
        self.function = function
        self.scope = Scope(function, calls)
        self._hints = Hints(self.scope.shown, self.scope.nearness)
        self._plain_words = Words(
            nearness=self.scope.nearness,
            sums=tuple(dict.fromkeys(sums_in(function.node, self.scope.shown))),
            far_sums=tuple(sums),
        )
        self._called = _names_for_sides(function)
        self._glimpses: dict[tuple[int, int], list[Glimpse]] = {}
        for glimpse in self.scope.glimpses:
            self._glimpses.setdefault((glimpse.site, glimpse.index), []).append(glimpse)

    def found(self, said: Mapping[tuple[int, int], Value] | None = None) -> list[Found]:
        """Return what every site with arrays shows; `said` are comments that hold."""
        self._said = said or {}
        found: list[Found] = []
        for site in self.function.sites:
            for index, label in enumerate(site.labels):
                glimpses = [one for one in self._glimpses.get((site.number, index), ())
                            if isinstance(one.spec, tuple)]  # fmt: skip
                if glimpses:
                    one = self._tell(site, index, label, glimpses)
                    found.append(one)
                    self._remember(label, one.value)
                elif (site.number, index) in self._glimpses:  # it is something else now
                    self._hints.variables.pop(label, None)
        return found

    def _remember(self, label: str, value: Value | None) -> None:
        """Know a variable by what its sides are called, for the statements that follow."""
        if isinstance(value, Several) and value.is_open:
            value = value.items[0]
        if not isinstance(value, Shape) or REST in value.sides:
            self._hints.variables.pop(label, None)
            return
        self._hints.variables[label] = [
            # A number that is only what was seen says nothing about the next array.
            None
            if choice.text == ANY or (choice.text.isdecimal() and not choice.is_sure)
            else Side(choice.text, sure=choice.is_sure)
            for choice in self._choices
        ]

    def _tell(self, site: Site, index: int, label: str, glimpses: Sequence[Glimpse]) -> Found:
        self._words = self._words_of(site)
        self._choices: list[Choice] = []
        value, why_not = self._value(site, index, label, glimpses)
        doubtful = [one for one in self._choices if one.doubts]
        trusted = [one for one in self._choices if one.size and not one.doubts]
        return Found(
            site=site,
            index=index,
            label=label,
            value=value,
            why_not=why_not,
            doubts=tuple((one.text, one.doubts) for one in doubtful) if value is not None else (),
            steady=tuple((one.text, one.size) for one in trusted) if value is not None else (),
        )

    def _words_of(self, site: Site) -> Words:
        node = value_of(site.statement) if site.kind != "arguments" else None
        if node is None:
            return self._plain_words
        return self._plain_words.but(
            used=frozenset(names_used(node, self.scope.shown)),
            numbers=frozenset(numbers_used(node)),
        )

    # --- one value -------------------------------------------------------------------------------

    def _value(
        self, site: Site, index: int, label: str, glimpses: Sequence[Glimpse]
    ) -> tuple[Value | None, str]:
        kinds = {_kind(one.spec) for one in glimpses}
        if len(kinds) > 1:
            return None, "it is not always the same kind of thing"
        (kind,) = kinds
        hint = self._hint(site, index, label)
        if kind == "":
            return self._shape([(one.spec, one.numbers) for one in glimpses], hint)
        if kind == "dict":
            return self._fields(glimpses)
        return self._several(kind, glimpses, hint)

    def _hint(self, site: Site, index: int, label: str) -> Sides | None:
        if site.kind == "arguments":
            hint = None
        elif site.kind in ("return", "attribute", "augment"):
            hint = self._hints.of(value_of(site.statement))
        elif site.kind == "loop":
            hint = None
        else:
            hint = self._hints.part(value_of(site.statement), index)
            if hint is not None and index and not isinstance(value_of(site.statement), ast.Tuple):
                # Several results of who knows what: the first side is the one they share.
                hint = [side if not n or (side and side.sure) else None
                        for n, side in enumerate(hint)]  # fmt: skip
        called = self._called.get((site.number, label))
        hint = _with_names(hint, called) if called else hint
        said = self._said.get((site.number, index))
        return _with_names(hint, _known_sides(said, self.scope.nearness)) if said else hint

    def _several(
        self, kind: str, glimpses: Sequence[Glimpse], hint: Sides | None
    ) -> tuple[Value | None, str]:
        counts = {len(one.spec) - 1 for one in glimpses}
        values: list[Value] = []
        if len(counts) == 1 and max(counts) <= _SHOWN:
            for n in range(1, max(counts) + 1):
                seen = [(one.spec[n], one.numbers) for one in glimpses]
                value, why_not = self._shape(seen, hint)
                if value is None:
                    return None, why_not
                values.append(value)
            if len(set(map(str, values))) > 1 or len(values) == 1:
                return Several(items=tuple(values), is_list=kind == "list"), ""
            self._choices = self._choices[: len(self._choices) // len(values)]
            return Several(items=tuple(values[:1]), is_list=kind == "list", is_open=True), ""
        every = [(shape, one.numbers) for one in glimpses for shape in one.spec[1:]]
        value, why_not = self._shape(every, hint)
        if value is None:
            return None, why_not
        return Several(items=(value,), is_list=kind == "list", is_open=True), ""

    def _fields(self, glimpses: Sequence[Glimpse]) -> tuple[Value | None, str]:
        keys = {tuple(key for key, _ in one.spec[1:]) for one in glimpses}
        if len(keys) > 1 or len(next(iter(keys))) > _SHOWN:
            return None, "it has too many arrays to tell of"
        items: list[tuple[str, Value]] = []
        for n, key in enumerate(next(iter(keys)), 1):
            value, why_not = self._shape([(one.spec[n][1], one.numbers) for one in glimpses], None)
            if value is None or not key.isidentifier():
                return None, why_not or "its keys are no names"
            items.append((key, value))
        return Fields(items=tuple(items)), ""

    def _shape(
        self, seen: Sequence[tuple[tuple[int | None, ...], Any]], hint: Sides | None
    ) -> tuple[Shape | None, str]:
        ranks = sorted({len(shape) for shape, _ in seen})
        count = ranks[0]
        if hint is not None and len(hint) == count - 1 and all(s and not s.sure for s in hint):
            hint = [*hint, None]  # as an embedding does: one side more
        if hint is not None and len(hint) != count:
            hint = None
        before = len(self._choices)
        sides: list[str] = []
        for n in range(count):
            lengths = [(shape[n - count], numbers) for shape, numbers in seen]
            sides.append(self._side(lengths, hint[n] if hint is not None else None, sides))
        if len(ranks) == 1:
            return Shape(sides=tuple(sides)), ""
        named = count
        while named and sides[named - 1] != ANY and not sides[named - 1].isdecimal():
            named -= 1
        del self._choices[before : before + named]
        if named == count:
            return None, f"it has {' or '.join(map(str, ranks))} dimensions"
        return Shape(sides=(REST, *sides[named:])), ""

    def _side(
        self, seen: Sequence[tuple[int | None, Any]], hint: Side | None, before: Sequence[str]
    ) -> str:
        known = [(size, numbers) for size, numbers in seen if size is not None]
        choice = choose(known, hint, self._words.but(taken=frozenset(before)))
        if len(known) < len(seen) and choice.text.isdecimal():
            choice = Choice(text=ANY)  # a side that was a symbol at times is no number
        self._choices.append(choice)
        return choice.text


def _kind(spec: Any) -> str:
    return spec[0] if spec and isinstance(spec[0], str) else ""


def _with_names(hint: Sides | None, called: dict[int, str]) -> Sides | None:
    """Lay the names that the code gives to sides over a hint."""
    count = len(hint) if hint is not None else 0
    needed = max((n + 1 if n >= 0 else -n for n in called), default=0)
    if hint is None:
        found: Sides = [None] * needed
    elif count < needed:
        return hint
    else:
        found = list(hint)
    for n, name in called.items():
        if name:
            found[n] = Side(name)
    return found


def _known_sides(value: Value, known: Collection[str]) -> dict[int, str]:
    """Return what a comment calls the sides of an array, in names that the code has."""
    if not isinstance(value, Shape) or REST in value.sides:
        return {}
    found = {}
    for n, side in enumerate(value.sides):
        names = names_in(side)
        found[n] = side if names and all(name in known for name in names) else ""
    return found


def _names_for_sides(function: Function) -> dict[tuple[int, str], dict[int, str]]:
    """Return what the code calls the sides of an array, by the site that sets the array."""
    found: dict[tuple[int, str], dict[int, str]] = {}
    by_statement = {id(site.statement): site for site in function.sites}
    last: dict[str, int] = {}
    if function.sites and function.sites[0].kind == "arguments":
        last = dict.fromkeys(function.sites[0].labels, function.sites[0].number)
    for statement in own_statements(function.node):
        for array, place, name in unpacked(statement):
            if array in last:
                found.setdefault((last[array], array), {}).setdefault(place, name)
        site = by_statement.get(id(statement))
        if site is not None and site.kind != "arguments":
            last.update(dict.fromkeys(site.labels, site.number))
    return found
