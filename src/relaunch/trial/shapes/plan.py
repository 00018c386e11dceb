"""What to write into a file, line by line, and which of its comments do not hold."""

from __future__ import annotations

import ast

from relaunch.record import Record
from relaunch.trial.shapes.holds import Broken, broken
from relaunch.trial.shapes.infer import Inference
from relaunch.trial.shapes.notation import ANY, Shape, names_in, sides_of
from relaunch.trial.shapes.patterns import value_of
from relaunch.trial.shapes.said import said_in
from relaunch.trial.shapes.sums import LAST_PARTS, sums_in
from relaunch.trial.shapes.words import told, with_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from relaunch.inside.shapes.sites import Function, Site
    from relaunch.trial.shapes.infer import Found
    from relaunch.trial.shapes.notation import Value
    from relaunch.trial.shapes.said import Said
    from relaunch.trial.shapes.seen import Call
    from relaunch.trial.shapes.source import Line, Source

NEW, UPDATED, HOLDS, LEFT_OUT = "new", "updated", "holds", "left out"


class Row(Record):
    """One line of the file, and what becomes of its comment."""

    line: int
    state: str
    """new, updated, holds, left out"""
    comment: str = ""
    """The whole comment, as it is or will be."""
    text: str = ""
    """The shapes in it."""
    before: str = ""
    """The shapes that were in it."""
    why: str = ""
    """Why it is left out, or no longer holds."""
    saw: str = ""
    """What was seen where it does not hold."""
    doubts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    steady: tuple[tuple[str, int], ...] = ()
    """What is written on trust: it had one size, this, in all calls."""
    is_broken: bool = False
    is_reached: bool = True


class Plan(Record):
    """What a file is to become."""

    rows: tuple[Row, ...] = ()
    comments: dict[int, str] = {}
    """Line to the comment that it is to have."""


def plan(
    source: Source,
    functions: Sequence[Function],
    calls: Sequence[Call],
    *,
    with_arguments: bool = False,
    width: int = 100,
) -> Plan:
    """Decide for each line of the functions that were called."""
    sums = list(dict.fromkeys(sums_in(source.tree, LAST_PARTS)))
    lines: dict[int, _OneLine] = {}
    for function in functions:
        mine = [call for call in calls if call.function == function.number]
        known: Collection[str] = ()
        inference = Inference(function, mine, sums) if mine else None
        if inference is not None:
            known = inference.scope.nearness
        for site in function.sites:
            line = source.line_of(site.statement.lineno)
            if line is not None:
                lines.setdefault(line.last, _OneLine(line)).add(site, known)
        if inference is not None:
            _look(inference, lines, source)
    rows = [one.row(source, with_arguments=with_arguments, width=width) for one in lines.values()]
    kept = sorted((row for row in rows if row is not None), key=lambda row: row.line)
    changed = {row.line: row.comment for row in kept if row.state in (NEW, UPDATED)}
    return Plan(rows=tuple(kept), comments=changed)


def _look(inference: Inference, lines: dict[int, _OneLine], source: Source) -> None:
    """Hand each line what was found on it, and what of its comment did not hold."""
    said: dict[tuple[int, int], Value] = {}
    owner: dict[int, _OneLine] = {}
    for site in inference.function.sites:
        line = source.line_of(site.statement.lineno)
        if line is not None:
            owner[site.number] = one = lines[line.last]
            said.update(one.said_of(site))
    off = broken(said, inference.scope.glimpses)
    for (number, _), one_broken in off.items():
        owner[number].broken.append(one_broken)
    holding = {where: value for where, value in said.items() if where not in off}
    for found in inference.found(holding):
        if found.site.number in owner:
            owner[found.site.number].found.append(found)


class _OneLine:
    """A logical line with all that is set on it."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self.sites: list[Site] = []
        self.found: list[Found] = []
        self.broken: list[Broken] = []
        self._known: set[str] = set()

    def add(self, site: Site, known: Collection[str]) -> None:
        self.sites.append(site)
        self._known.update(known)

    @property
    def said(self) -> list[Said]:
        labels = [label for site in self.sites for label in site.labels]
        return said_in(self.line.comment, labels, self._known) if self.line.comment else []

    def said_of(self, site: Site) -> Iterator[tuple[tuple[int, int], Value]]:
        """Go through what the comment says of the names that a site sets."""
        is_beside = site.kind == "arguments" and len(self.sites) > 1
        for one in self.said:
            for index, label in enumerate(site.labels):
                if label == one.label or (not one.label and not is_beside):
                    yield (site.number, index), one.value

    def row(self, source: Source, *, with_arguments: bool, width: int) -> Row | None:
        said = self.said
        before = ", ".join(str(one.value) for one in said)
        worth = [one for one in self.found if _is_worth(one, bool(said), with_arguments)]
        items = [(one.label, str(one.value)) for one in worth]
        if not said and all(_is_scalar(one.value) for one in worth):
            items = []
        mine = Row(line=self.line.last, state=HOLDS, comment=self.line.comment, text=before,
                   before=before, is_reached=bool(self.found))  # fmt: skip
        if self.broken:
            first = self.broken[0]
            mine = mine.but(is_broken=True, why=first.why, saw=shown(first.spec))
        if said and not self.broken and not self._is_poorer(said, worth):
            return mine
        if not items:
            meant = [one for one in self.found if with_arguments or one.site.kind != "arguments"]
            why_not = next((one.why_not for one in meant if one.why_not), "")
            if said or why_not:
                return mine.but(state=LEFT_OUT if not said else HOLDS, why=mine.why or why_not)
            return None
        text = told(items, is_all=self._is_all(worth))
        comment = with_shape(self.line.comment, text, said)
        told_row = mine.but(
            state=UPDATED if said else NEW,
            comment=comment,
            text=text,
            doubts=tuple(doubt for one in worth for doubt in one.doubts),
            steady=tuple(one for found in worth for one in found.steady),
        )
        if not said and source.width_with(self.line, comment) > width:
            return mine.but(state=LEFT_OUT, text=text, why=f"the line would be over {width} long")
        return told_row

    def _is_all(self, worth: Sequence[Found]) -> bool:
        """Tell whether these are all that the line sets."""
        sites = [site for site in self.sites if site.kind != "arguments"] or self.sites
        labels = [(site.number, n) for site in sites for n in range(len(site.labels))]
        return {(one.site.number, one.index) for one in worth} == set(labels)

    def _is_poorer(self, said: Sequence[Said], worth: Sequence[Found]) -> bool:
        """Tell whether a comment that holds has numbers where there are names now."""
        sides = [side for one in said for side in sides_of(one.value)]
        if any(name not in self._known for side in sides for name in names_in(side)):
            return False  # names of the author's own: they stay
        now = [side for one in worth for side in sides_of(one.value)]
        if not worth:
            return False
        if self._is_all(worth) and len({str(one.value) for one in worth}) == 1:
            now = now[: len(now) // len(worth)]
        return _unnamed(now) < _unnamed(sides)


def _unnamed(sides: Sequence[str]) -> int:
    return sum(side == ANY or (side.isdecimal() and int(side) > 1) for side in sides)


def _is_worth(found: Found, has_comment: bool, with_arguments: bool) -> bool:
    """Tell whether one wants to read a shape here."""
    if found.value is None:
        return False
    if found.site.kind == "arguments":
        return with_arguments or has_comment
    if has_comment:
        return True
    value = value_of(found.site.statement)
    is_alias = found.site.kind in ("assign", "attribute", "return") and isinstance(
        value, (ast.Name, ast.Attribute, ast.Constant)
    )
    names_only = isinstance(value, ast.Tuple) and all(
        isinstance(one, (ast.Name, ast.Constant)) for one in value.elts
    )
    is_told = (
        is_alias or found.site.kind == "augment" or (found.site.kind == "return" and names_only)
    )
    sides = list(sides_of(found.value))
    return not is_told and not (sides and all(side == ANY for side in sides))


def _is_scalar(value: Any) -> bool:
    return not list(sides_of(value))


def shown(spec: Any) -> str:
    """Return what was seen as one would write it."""
    kind = spec[0] if spec and isinstance(spec[0], str) else ""
    if not kind:
        return str(Shape(sides=tuple("?" if one is None else str(one) for one in spec)))
    if kind == "dict":
        return "{" + ", ".join(f"{key}: {shown(one)}" for key, one in spec[1:]) + "}"
    inner = ", ".join(shown(one) for one in spec[1:])
    return f"[{inner}]" if kind == "list" else f"({inner})"
