"""Which statement a line belongs to, and where beside it a probe goes: text in, places out."""

from __future__ import annotations

import _ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ONLY_AST = 0x400
"""`compile` gives the tree; the module `ast` would be one more import in the user's process."""
_FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)
_BLOCKS = ("body", "orelse", "finalbody")


class NoPlace(Exception):
    """There is no such place; `near` are lines or functions that there are."""

    def __init__(self, why: str, near: tuple[str, ...] = ()) -> None:
        """Say why, in one line."""
        super().__init__(why)
        self.why = why
        self.near = near


class Place:
    """Where a probe goes: before or after the statement at `index` of a block."""

    def __init__(self, block: list[Any], index: int, *, after: bool = False) -> None:
        """Name the statement by its block, which is changed in place later."""
        self.block = block
        self.index = index
        self.after = after

    @property
    def statement(self) -> Any:
        """Return the statement itself."""
        return self.block[self.index]


def parse(source: bytes | str, file: str) -> Any:
    """Return the tree of a module; raises SyntaxError, or ValueError for a NUL byte."""
    return compile(source, file, "exec", ONLY_AST, dont_inherit=True)


def first_line(statement: Any) -> int:
    """Return where a statement begins, its decorators included."""
    lines: list[int] = [node.lineno for node in getattr(statement, "decorator_list", ())]
    own: int = statement.lineno
    return min([own, *lines])


def blocks(node: Any) -> Iterator[list[Any]]:
    """Go through the blocks of statements directly below a node."""
    for field in _BLOCKS:
        block = getattr(node, field, None)
        if isinstance(block, list) and block and isinstance(block[0], _ast.stmt):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def statements(node: Any) -> Iterator[Any]:
    """Go through all statements below a node, those of inner functions and classes too."""
    for block in blocks(node):
        for statement in block:
            yield statement
            yield from statements(statement)


def functions(node: Any, above: str = "") -> Iterator[tuple[str, Any]]:
    """Go through the functions and methods with their qualified names, as `Outer.inner`."""
    for block in blocks(node):
        for statement in block:
            if isinstance(statement, (*_FUNCTIONS, _ast.ClassDef)):
                name = above + statement.name
                if isinstance(statement, _FUNCTIONS):
                    yield name, statement
                yield from functions(statement, name + ".")
            else:
                yield from functions(statement, above)


def find_line(tree: Any, line: int, *, after: bool) -> list[Place]:
    """Return where a probe of a line goes: one place, or every way out of a `def` line's function.

    The line of a `def` stands for its function, and that of another header for what it leads to.
    """
    block, index = _owner(tree, line)
    if block is None:
        raise NoPlace(f"line {line} has no code", _near_lines(tree, line))
    statement = block[index]
    inner = [one for one in blocks(statement) if one]
    if isinstance(statement, _FUNCTIONS) and line >= statement.lineno:
        return find_returns(statement) if after else [entry(statement)]
    if not inner or any(first_line(one[0]) == line for one in inner):
        return [_beside(block, index, line, after=after)]
    following = [one for one in inner if first_line(one[0]) > line]
    if not following:  # a blank line or a comment behind the last block
        raise NoPlace(f"line {line} has no code", _near_lines(tree, line))
    cases = getattr(statement, "cases", None)
    is_header = line < cases[0].pattern.lineno if cases else len(following) == len(inner)
    if is_header and (not after or cases or isinstance(statement, (_ast.ClassDef, *_FUNCTIONS))):
        return [Place(block, index, after=after)]
    nearest = min(following, key=lambda one: first_line(one[0]))
    if not is_header and not _is_header_line(statement, nearest, line):
        raise NoPlace(f"line {line} has no code", _near_lines(tree, line))
    return [Place(nearest, 0)]


def find_beginning(tree: Any) -> list[Place]:
    """Return the place at which a file begins to run."""
    if not tree.body:
        raise NoPlace("the file is empty")
    return [Place(tree.body, 0)]


def by_name(tree: Any) -> dict[str, list[Any]]:
    """Return the functions by their qualified names: one may be defined twice, as by `if`, `else`.

    To go through a tree takes long: who looks for many names does it once.
    """
    found: dict[str, list[Any]] = {}
    for name, node in functions(tree):
        found.setdefault(name, []).append(node)
    return found


def named(known: Mapping[str, list[Any]], name: str) -> list[Any]:
    """Return the functions of this name; raises NoPlace, which says what there is instead."""
    if name not in known:
        raise NoPlace(f"no function `{name}`", _near_names(name, [*known]))
    return known[name]


def find_function(known: Mapping[str, list[Any]], name: str, *, after: bool) -> list[Place]:
    """Return where a probe of a function goes: its entry, or every way out but an exception."""
    places = []
    for node in named(known, name):
        places += find_returns(node) if after else [entry(node)]
    return places


def entry(function: Any) -> Place:
    """Return the place before the first statement of a function."""
    body = function.body
    index = 1 if is_docstring(body[0]) else 0
    while index < len(body) and isinstance(body[index], (_ast.Global, _ast.Nonlocal)):
        index += 1
    if index == len(body):
        return Place(body, index - 1, after=True)
    return Place(body, index)


def find_returns(function: Any) -> list[Place]:
    """Return the places at which a function returns, and its end where that can be reached."""
    found = [Place(block, index, after=True) for block, index in _returns(function)]
    last = function.body[-1]
    if not isinstance(last, (_ast.Return, _ast.Raise)):
        found.append(Place(function.body, len(function.body) - 1, after=True))
    return found


def is_docstring(statement: Any) -> bool:
    """Tell whether a statement is a bare string."""
    value = getattr(statement, "value", None)
    is_constant = isinstance(statement, _ast.Expr) and isinstance(value, _ast.Constant)
    return is_constant and isinstance(getattr(value, "value", None), str)


def is_prelude(block: list[Any], index: int) -> bool:
    """Tell whether nothing may come before a statement: a docstring, or `from __future__`."""
    statement = block[index]
    if isinstance(statement, _ast.ImportFrom):
        return statement.module == "__future__"
    return index == 0 and is_docstring(statement)


def lines_with_code(tree: Any) -> list[int]:
    """Return the first lines of all statements, in order."""
    return sorted({first_line(statement) for statement in statements(tree)})


def _owner(node: Any, line: int) -> tuple[list[Any] | None, int]:
    """Find the innermost statement that a line is part of; the first of several on one line.

    Of `if a: b` on one line that is the whole, of `def f(): b` the function.
    """
    for block in blocks(node):
        for index, statement in enumerate(block):
            if first_line(statement) <= line <= (statement.end_lineno or statement.lineno):
                inner, at = _owner(statement, line)
                if inner is not None and not first_line(statement) == line == inner[at].lineno:
                    return inner, at
                return block, index
    return None, 0


def _beside(block: list[Any], index: int, line: int, *, after: bool) -> Place:
    """Return the place before all statements of a line, or after them all."""
    while after and index + 1 < len(block) and first_line(block[index + 1]) == line:
        index += 1
    return Place(block, index, after=after)


def _is_header_line(statement: Any, block: list[Any], line: int) -> bool:
    """Tell whether a line between two blocks can be the `else:` or `except:` that leads to one.

    Only `else` and `finally` have no place in the tree: all from the end of the block above it on
    may be one, and the caller knows no better without the text.
    """
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        if part.body is block:
            begins = getattr(part, "lineno", None) or part.pattern.lineno
            return bool(begins <= line)
    above = [one[-1].end_lineno for one in blocks(statement) if first_line(one[0]) < line]
    return bool(line > max(above))


def _returns(node: Any) -> Iterator[tuple[list[Any], int]]:
    for block in blocks(node):
        for index, statement in enumerate(block):
            if isinstance(statement, _ast.Return):
                yield block, index
            elif not isinstance(statement, (*_FUNCTIONS, _ast.ClassDef)):
                yield from _returns(statement)


def _near_lines(tree: Any, line: int) -> tuple[str, ...]:
    known = lines_with_code(tree)
    above = [one for one in known if one < line][-1:]
    below = [one for one in known if one > line][:1]
    return tuple(str(one) for one in above + below)


def _near_names(name: str, names: list[str]) -> tuple[str, ...]:
    """Return the functions that may be meant: the same last name first, then alike ones."""
    last = name.rpartition(".")[2]
    same = [one for one in names if one.rpartition(".")[2] == last]
    if same:
        return tuple(same[:3])
    from difflib import get_close_matches

    return tuple(get_close_matches(name, names, 3))


def around(tree: Any, line: int) -> list[tuple[str, Any]]:
    """Return the functions and statements around a line, outermost first; functions by name."""
    found: list[tuple[str, Any]] = []
    node, name = tree, ""
    while True:
        inner = [
            statement
            for block in blocks(node)
            for statement in block
            if first_line(statement) < line <= statement.end_lineno and any(blocks(statement))
        ]
        if not inner:
            return found
        node = inner[0]
        if isinstance(node, (*_FUNCTIONS, _ast.ClassDef)):
            name += ("." if name else "") + node.name
        if isinstance(node, _FUNCTIONS):
            found.append((name, node))
        elif not isinstance(node, _ast.ClassDef):
            found.append(("", node))
