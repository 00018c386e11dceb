"""Reads places in the user's source, `train.py:88` or `model.py:GPT.forward`, and checks them."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.inside.probe import lines
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_LOOKED_AT = 20_000
"""So many files of the project are looked through for one that may be meant."""


class Place(Record):
    """A line or a function of a file that is there."""

    file: str
    """Where it really is."""
    line: int = 0
    function: str = ""
    label: str
    """As it was typed."""
    tree: Any = None
    """None for source that only a newer Python can read."""


def looks_like_place(word: str) -> bool:
    """Tell a place from an expression: a file, a colon, then a line or a name with dots."""
    file, colon, rest = word.rpartition(":")
    is_file = file.endswith((".py", ".pyw")) or os.path.isfile(file)
    is_name = all(part.isidentifier() for part in rest.split("."))
    return bool(colon) and is_file and (rest.isdecimal() or is_name)


def read_place(word: str, *, verb: str, after: bool = False, rest: str = "") -> Place:
    """Return the place that a word names; raises UsageError with the nearest one that there is.

    `rest` stood behind the place, and stands there in what is suggested.
    """
    file, _, where = word.rpartition(":")
    real = os.path.realpath(file)
    tree = tree_of(file, verb)
    place = Place(
        file=real,
        line=int(where) if where.isdecimal() else 0,
        function="" if where.isdecimal() else where,
        label=word,
        tree=tree,
    )
    if tree is None:
        return place
    try:
        if place.function:
            lines.find_function(lines.by_name(tree), place.function, after=after)
        elif not place.line:
            lines.find_beginning(tree)
        else:
            lines.find_line(tree, place.line, after=after)
    except lines.NoPlace as error:
        near = " and ".join(f"{file}:{one}" for one in error.near)
        words = f"{file}: {error.why}" + (f"; near is {near}" if near else "")
        hint = f"{verb} {file}:{error.near[0] if error.near else 'LINE'}{rest}"
        raise UsageError(words, hint=hint) from None
    return place


def function_place(word: str, *, verb: str) -> Place:
    """Return the function that a word names, as FILE:FUNCTION or by its name alone."""
    if ":" in word:
        return read_place(word, verb=verb)
    found = []
    for file in _files():
        if file.endswith(".py"):
            try:
                tree = tree_of(file, verb)
            except UsageError:
                continue
            names = [*lines.by_name(tree)] if tree is not None else []
            if word in names or any(name.endswith(f".{word}") for name in names):
                exact = word if word in names else next(n for n in names if n.endswith(f".{word}"))
                found.append(f"{file}:{exact}")
    if len(found) != 1:
        what = f"{len(found)} functions are" if found else "no function below here is"
        hint = f"{verb} {found[0] if found else 'FILE:FUNCTION'}"
        raise UsageError(f"{what} called `{word}`", hint=hint)
    return read_place(found[0], verb=verb)


def _files() -> list[str]:
    """List the files below here, as far as that is not too many."""
    found: list[str] = []
    for folder, inner, names in os.walk("."):
        inner[:] = [name for name in inner if not name.startswith((".", "__pycache__"))]
        inner[:] = [name for name in inner if not name.endswith("-packages")]
        found += [os.path.normpath(os.path.join(folder, one)) for one in names]
        if len(found) > _LOOKED_AT:
            break
    return found


def tree_of(file: str, verb: str) -> Any:
    """Return the tree of a file; None for what only a newer Python can read."""
    try:
        with open(file, "rb") as source:
            text = source.read()
    except OSError as error:
        near = _like(file)
        hint = f"{verb} {near}:..." if near else ""
        words = f"{file}: {error.strerror}" + (f"; did you mean {near}?" if near else "")
        raise UsageError(words, hint=hint) from None
    try:
        return lines.parse(text, file)
    except (SyntaxError, ValueError) as error:
        if file.endswith((".py", ".pyw")):  # it may be for a newer Python than ours
            return None
        raise UsageError(f"{file} is no Python: {error}", hint=f"{verb} FILE.py:LINE") from None


def _like(file: str) -> str:
    """Return the file below here that may be meant: the same name elsewhere, or one like it."""
    wanted = os.path.basename(file)
    found = _files()
    same = sorted((one for one in found if os.path.basename(one) == wanted), key=len)
    if same:
        return same[0]
    from relaunch.cli.launch_options import nearest

    return nearest(file, [one for one in found if one.endswith(".py")])


def check_expression(text: str) -> None:
    """Refuse what cannot be asked: no expression, or one that would change the program."""
    try:
        tree: Any = compile(f"({text}\n)", "<probe>", "eval", lines.ONLY_AST, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        raise UsageError(f"`{text}` is no expression: {words}", hint="rl probe --help") from None
    import ast

    for node in ast.walk(tree):
        if isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom)):
            raise UsageError(f"`{text}` would change the program", hint="rl probe --help")


def natural_expressions(place: Place) -> tuple[str, ...]:
    """Return what one would look at here: what the line sets, or what it uses; or arguments."""
    import ast

    if place.tree is None:
        return ()
    if place.function:
        spec = lines.named(lines.by_name(place.tree), place.function)[0].args
        named = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
        return tuple(one.arg for one in named if one is not None)
    (spot, *_) = lines.find_line(place.tree, place.line, after=False)
    statement: Any = spot.statement
    parts = [statement]
    if hasattr(statement, "body"):  # a header: not what it leads to
        fields = ("target", "iter", "test", "items", "subject", "args")
        parts = [value for field in fields for value in _listed(getattr(statement, field, None))]
    names = [node for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)]
    stored = [node.id for node in names if isinstance(node.ctx, ast.Store)]
    used = [node.id for node in names if isinstance(node.ctx, ast.Load)]
    called = {
        node.func.id
        for part in parts
        for node in ast.walk(part)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    kept = stored or [name for name in used if name not in called]
    return tuple(dict.fromkeys(kept))[:6]


def _listed(value: Any) -> Sequence[Any]:
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)
