"""Where a snapshot stands, and why a run may go on there, in words for people."""

from __future__ import annotations

import ast

from . import compare, sites

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .choice import Snapshot, Verdict
    from .texts import Look

    Path = tuple[Any, ...]


class Place:
    """Where a snapshot stands: in which block, before which of its statements."""

    def __init__(self, source: compare.Source, path: Path, index: int) -> None:
        self.source = source
        self.path = path
        self.index = index

    @property
    def line(self) -> int:
        """The line of the statement that is next, or the last one of the block."""
        return _line(_body(self.source.tree, self.path), self.index)

    def line_in(self, new: compare.Source) -> int:
        """Return the line in another version of the file."""
        try:
            return _line(_body(new.tree, self.path), self.index)
        except (KeyError, IndexError):
            return self.line

    @property
    def function(self) -> str:
        """The name of the function that runs there; empty at module level."""
        node: ast.AST = self.source.tree
        found = ""
        for statement in _statements(node, self.path):
            if isinstance(statement, sites.FUNCTIONS):
                found = statement.name
        return found

    @property
    def name(self) -> str:
        """A name for the place that stays when lines move."""
        body = _body(self.source.tree, self.path)
        after = self.index >= len(body)
        statement = ast.dump(body[-1 if after else self.index])
        return f"{self.source.file} {self.function} {after} {hash(statement)}"

    def last_act(self) -> str:
        """Say what was done last before it: a call, or the imports; empty if neither is near."""
        path, index = self.path, self.index
        while True:
            for statement in reversed(_body(self.source.tree, path)[:index]):
                act = _act(statement)
                if act:
                    return act
            inner = list(_statements(self.source.tree, path))
            if not inner or isinstance(inner[-1], sites.FUNCTIONS):
                return ""
            act = _act(inner[-1])
            if act:
                return act
            path, index = path[:-2], path[-2]


def place_of(snapshot: Snapshot, source: compare.Source) -> Place | None:
    """Find where a snapshot stands, in the version of the file that it was made of."""
    first = snapshot.files[snapshot.file][0]
    if snapshot.site >= 0:
        number = snapshot.site - first
        for block in source.blocks:
            if block.first <= number <= block.end:
                return Place(source, block.path, number - block.first)
    seen = snapshot.seen_of(first, source)
    after = None
    for block in reversed(source.blocks):
        for index, statement in enumerate(block.body):
            if statement.lineno == snapshot.line:
                is_last = index == len(block.body) - 1 and statement.end_lineno == snapshot.line
                done = is_last and seen[block.first + index] and not seen[block.end]
                return Place(source, block.path, index + 1 if done else index)
        if block.body[-1].end_lineno == snapshot.line:
            after = after or Place(source, block.path, len(block.body))
    return after


def because(snapshot: Snapshot, place: Place | None, verdict: Verdict, look: Look) -> str:
    """Say in words why a snapshot may be used."""
    if not verdict.edited:
        return "nothing was edited"
    if place is None:
        return "what ran before it is unchanged"
    act = place.last_act()
    function = f"{place.function}()" if place.function else ""
    if not act and not function:
        return "what ran before it is unchanged"
    if act and function and act != function:
        act = f"{act} in {function}"
    if act and _is_above_unchanged(snapshot, place, verdict, look):
        return f"{act} and above are unchanged"
    return f"what ran up to {act or function} is unchanged"


def _is_above_unchanged(snapshot: Snapshot, place: Place, verdict: Verdict, look: Look) -> bool:
    """Tell whether only the lines below were edited, and no function that the words could mean."""
    if [*verdict.edited] != [snapshot.file]:
        return False
    new = verdict.edited[snapshot.file]
    before = place.line - 1
    if place.source.lines[:before] != new.lines[:before]:
        return False
    act = place.last_act().removesuffix("()")
    olds, news = (
        [one for one in ast.walk(tree) if isinstance(one, sites.FUNCTIONS) and one.name == act]
        for tree in (place.source.tree, new.tree)
    )
    return compare.all_same(olds, news)


def _act(statement: ast.stmt) -> str:
    """Name what a statement does, if it is worth naming."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return "the imports"
    if isinstance(statement, (*sites.FUNCTIONS, ast.ClassDef)):
        return ""
    below = {id(one) for _, body in sites.bodies(statement) for one in body}
    below |= {id(one) for one in getattr(statement, "handlers", ())}
    below |= {id(one) for one in getattr(statement, "cases", ())}
    todo: list[ast.AST] = [statement]
    named = ""
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Call):
            name = _called(node.func)
            if name and isinstance(node.func, ast.Name) and not _is_builtin(name):
                return f"{name}()"
            named = named or name
        if not isinstance(node, ast.Lambda):
            todo += [one for one in ast.iter_child_nodes(node) if id(one) not in below]
    return f"{named}()" if named else ""


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return function.attr
    return ""


def _is_builtin(name: str) -> bool:
    import builtins

    return hasattr(builtins, name)


def _body(tree: ast.AST, path: Path) -> list[ast.stmt]:
    """Return the block at the end of a path; KeyError or IndexError if it is not there."""
    node = tree
    body: list[ast.stmt] = []
    for step in path:
        if isinstance(step, int):
            node = body[step]
        else:
            body = dict(sites.bodies(node))[step]
    return body


def _statements(tree: ast.AST, path: Path) -> Iterable[ast.stmt]:
    """Give the statements around a block, outermost first."""
    for number, step in enumerate(path):
        if isinstance(step, int):
            yield _body(tree, path[:number])[step]


def _line(body: list[ast.stmt], index: int) -> int:
    after = index >= len(body)
    statement = body[-1 if after else index]
    return (statement.end_lineno or 0) if after else statement.lineno
