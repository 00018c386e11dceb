"""Names that a text in a statement gives to sides: patterns of einops, letters of einsum."""

from __future__ import annotations

import ast

from relaunch.trial.shapes.notation import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.inside.shapes.sites import Site
    from relaunch.trial.shapes.seen import Call

_EINOPS = ("rearrange", "repeat", "reduce")


def pattern_of(node: ast.AST | None) -> tuple[str, ...] | None:
    """Return the sides that a call of einops says its result has; None if it is no such call.

    Each side is a text such as `b` or `h*d`; `map(lambda t: rearrange(t, ...), qkv)` is one too.
    """
    if isinstance(node, ast.Call) and _last_name(node.func) == "map" and node.args:
        function = node.args[0]
        return pattern_of(function.body) if isinstance(function, ast.Lambda) else None
    if not isinstance(node, ast.Call) or _last_name(node.func) not in _EINOPS:
        return None
    _, arrow, right = text_of(node.args[1] if len(node.args) > 1 else None).partition("->")
    return sides(right) if arrow else None


def text_of(node: ast.AST | None) -> str:
    """Return a text that stands in the code; empty for what is none."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(text_of, node.values))
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return str(node.value) if isinstance(node, ast.Constant) and is_text else ""


def sides(text: str) -> tuple[str, ...] | None:
    """Read one half of a pattern, `b h (n d)`, as sides; None if it has a part of any length."""
    found: list[str] = []
    group: list[str] | None = None
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            group = []
        elif word == ")":
            side = "1"
            for n, part in enumerate(group or ()):
                side = part if not n else joined(side, "*", part)
            found.append(side)
            group = None
        elif not (word.isidentifier() or word.isdecimal()):
            return None
        elif group is not None:
            group.append(word)
        else:
            found.append(word)
    return tuple(found)


def bindings(sites: Mapping[int, Site], call: Call) -> dict[str, int]:
    """Return what the names in patterns come to in a call; a name with two values has none."""
    found: dict[str, set[int]] = {}
    for number, _, spec in call.events:
        site = sites.get(number)
        said = pattern_of(value_of(site.statement)) if site is not None else None
        if said is None:
            continue
        for shape in _shapes(spec):
            if len(shape) == len(said):
                for side, size in zip(said, shape, strict=True):
                    if side.isidentifier() and type(size) is int:
                        found.setdefault(side, set()).add(size)
    return {name: values.pop() for name, values in found.items() if len(values) == 1}


def _shapes(spec: Any) -> list[tuple[Any, ...]]:
    if not isinstance(spec, tuple):
        return []
    if spec and isinstance(spec[0], str):
        return [one for one in spec[1:] if isinstance(one, tuple)]
    return [spec]


def value_of(statement: Any) -> ast.expr | None:
    """Return what a statement sets its names to."""
    value: ast.expr | None = getattr(statement, "value", None)
    return value


def _last_name(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
