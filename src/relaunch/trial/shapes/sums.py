"""Reads sizes out of the user's own expressions: `C // self.n_head` is the side `C//n_head`."""

from __future__ import annotations

import ast

from relaunch.inside.shapes.sites import dotted
from relaunch.trial.shapes.notation import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Div: "//",
}


def side_of(
    node: ast.AST, shown: Mapping[str, str], measure: Callable[[ast.AST], str | None]
) -> str | None:
    """Return an expression for a size as a side; None for what has no such words.

    `shown` is how names are shown; `measure` tells `x.size(0)` and the like.
    """
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return str(node.value) if node.value >= 0 else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return shown.get(dotted(node)) or measure(node)
    if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
        left, right = (side_of(one, shown, measure) for one in (node.left, node.right))
        return None if left is None or right is None else joined(left, _SIGNS[type(node.op)], right)
    if isinstance(node, ast.Call) and dotted(node.func) == "int" and len(node.args) == 1:
        return side_of(node.args[0], shown, measure)
    return measure(node)


def sums_in(tree: ast.AST, shown: Mapping[str, str]) -> Iterator[str]:
    """Go through the sums of names in the user's code, as sides."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            side = side_of(node, shown, lambda _: None)
            if side is not None and not side.isdecimal():
                yield side


def names_used(tree: ast.AST, shown: Mapping[str, str]) -> set[str]:
    """Return how the names that some code uses are shown."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Name, ast.Attribute)):
            text = shown.get(dotted(node))
            if text is not None:
                found.add(text)
    return found


def numbers_used(tree: ast.AST) -> set[int]:
    """Return the whole numbers that stand in some code, but for those that only choose a side."""
    chosen = {id(one) for node in ast.walk(tree) for one in _choosing(node)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and type(node.value) is int and id(node) not in chosen
    }


def _choosing(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.Subscript):
        return list(ast.walk(node.slice))
    is_side = isinstance(node, ast.keyword) and node.arg in ("dim", "axis")
    return list(ast.walk(node)) if is_side else []


class _LastParts(dict[str, str]):
    """Shows every name by its last part."""

    def get(self, name: str, otherwise: str | None = None) -> str | None:  # type: ignore[override]  # a default of one kind is enough
        return name.rpartition(".")[2] or otherwise


LAST_PARTS = _LastParts()
