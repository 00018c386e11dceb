"""What the words of a statement say about the shape that it makes: `view(B, T, C)` is `(B, T, C)`.

Only a hint: it chooses between names that fit what was seen, and never stands against it. A hint
is sure where the words leave no doubt, else it is what the sides of an operand were called.
"""

from __future__ import annotations

import ast

from relaunch.inside.shapes.sites import dotted
from relaunch.trial.shapes import sides as words
from relaunch.trial.shapes.called import Called
from relaunch.trial.shapes.notation import names_in
from relaunch.trial.shapes.operations import KNOWN
from relaunch.trial.shapes.patterns import pattern_of
from relaunch.trial.shapes.scope import PATTERN
from relaunch.trial.shapes.sums import side_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.trial.shapes.sides import Sides

_LIBRARY_NAMES = "torch F nn np numpy jnp jax lax tf mx einops keras ops xp self"
_LIBRARIES = frozenset(_LIBRARY_NAMES.split())
"""Names before a function, which is no method then: `F.softmax(x)`, not `x.softmax()`."""


class Hints:
    """Knows the shapes of a function's variables so far, in words."""

    def __init__(self, shown: Mapping[str, str], nearness: Mapping[str, int]) -> None:
        """Begin without any variable; the names of the function are told."""
        self.shown = shown
        self._nearness = nearness
        self.variables: dict[str, Sides] = {}

    def of(self, node: ast.AST | None) -> Sides | None:
        """Return the sides that an expression has, as far as its words tell; None if they do not.

        Several results, as of `split`, are told alike.
        """
        if node is None:
            return None
        said = pattern_of(node)
        if said is not None:
            return [self._by_pattern(text) for text in said]
        method = getattr(self, f"_{type(node).__name__}", None)
        found: Sides | None = method(node) if method is not None else None
        return found

    def _by_pattern(self, text: str) -> words.Side | None:
        """Return a side of a pattern; in a product, its names must be the pattern's own.

        `h` may be the height of an image there, and in the pattern the number of heads.
        """
        is_product = len(names_in(text)) > 1
        if is_product and any(self._nearness.get(name) != PATTERN for name in names_in(text)):
            return None
        return words.Side(text)

    def part(self, node: ast.AST | None, index: int) -> Sides | None:
        """Return the sides of one of several values that are set together."""
        if isinstance(node, ast.Tuple):
            is_plain = not any(isinstance(one, ast.Starred) for one in node.elts)
            return self.of(node.elts[index]) if is_plain and index < len(node.elts) else None
        return self.of(node)

    def side(self, node: ast.AST) -> str | None:
        """Return a size as a side."""
        return side_of(node, self.shown, self._measure)

    def _measure(self, node: ast.AST) -> str | None:
        """Return the size that `x.shape[0]`, `x.size(0)` or `len(x)` asks for."""
        found = measured(node)
        if found is None:
            return None
        sides = self.variables.get(found[0])
        if sides is None or not -len(sides) <= found[1] < len(sides):
            return None
        side = sides[found[1]]
        return side.text if side is not None and side.sure else None

    # --- expressions -----------------------------------------------------------------------------

    def _Name(self, node: ast.Name) -> Sides | None:
        return self.variables.get(node.id)

    def _Attribute(self, node: ast.Attribute) -> Sides | None:
        inner = self.of(node.value)
        if inner is not None and node.attr in words.TURNED:
            return words.swapped(inner, -1, -2)
        if inner is not None and node.attr in words.SAME:
            return inner
        return self.variables.get(dotted(node))

    def _IfExp(self, node: ast.IfExp) -> Sides | None:
        return self.of(node.body) or self.of(node.orelse)

    def _NamedExpr(self, node: ast.NamedExpr) -> Sides | None:
        return self.of(node.value)

    def _Await(self, node: ast.Await) -> Sides | None:
        return self.of(node.value)

    def _UnaryOp(self, node: ast.UnaryOp) -> Sides | None:
        return self.of(node.operand)

    def _Compare(self, node: ast.Compare) -> Sides | None:
        return words.spread([self.of(one) for one in (node.left, *node.comparators)])

    def _BinOp(self, node: ast.BinOp) -> Sides | None:
        left, right = self.of(node.left), self.of(node.right)
        if isinstance(node.op, ast.MatMult):
            return words.multiplied(left, right)
        return words.spread([left, right])

    def _Subscript(self, node: ast.Subscript) -> Sides | None:
        sides = self.of(node.value)
        return None if sides is None else words.indexed(sides, node.slice, self.side)

    def _Call(self, node: ast.Call) -> Sides | None:
        name, receiver, arguments = self._called(node)
        known = KNOWN.get(name)
        if known is not None:
            named = {one.arg: one.value for one in node.keywords if one.arg is not None}
            return known(Called(receiver, arguments, named, of=self.of, side=self.side))
        # Whatever it does: where a side is as long as it was, it is likely the same one.
        operands = [receiver, *(self.of(one) for one in arguments)]
        sides = next((one for one in operands if one is not None), None)
        if sides is None:
            return None
        if name in words.SAME:
            return sides
        return [None if side is None else side.unsure() for side in sides]

    def _called(self, node: ast.Call) -> tuple[str, Sides | None, list[ast.expr]]:
        """Return what is called, on which array, and with what: `F.relu(x)` is `x.relu()`."""
        if isinstance(node.func, ast.Attribute):
            receiver = self.of(node.func.value)
            if receiver is not None:
                return node.func.attr, receiver, node.args
            # A layer may be named like an operation: `self.norm(x)` is no `x.norm()`.
            root = dotted(node.func).partition(".")[0]
            name = "" if root == "self" else node.func.attr
            if root not in _LIBRARIES and name in KNOWN:
                return name, None, node.args
        else:
            name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in words.MAKING or not node.args:
            return name, None, node.args
        return name, self.of(node.args[0]), node.args[1:]


def measured(node: ast.AST) -> tuple[str, int] | None:
    """Return the array and the side that an expression asks the length of; None if it is none."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        index = words.number(node.slice)
        name = dotted(node.value.value)
        if node.value.attr == "shape" and name and index is not None:
            return name, index
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
            index, name = words.number(node.args[0]), dotted(node.func.value)
            return (name, index) if name and index is not None else None
        if isinstance(node.func, ast.Name) and node.func.id == "len":
            name = dotted(node.args[0])
            return (name, 0) if name else None
    return None


def unpacked(statement: Any) -> list[tuple[str, int, str]]:
    """Return what a statement calls the sides of arrays: array, which side, name; `_` is none.

    `B, T, C = x.shape`, `b, *_, d = x.size()`, `T = x.shape[1]`, `b, t = x.size(0), x.size(1)`,
    `b, t, device = *x.shape, x.device`.
    """
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Name):
        found = measured(value)
        return [(*found, target.id)] if found is not None else []
    if not isinstance(target, (ast.Tuple, ast.List)):
        return []
    whole = _shape_of(value)
    if whole is not None:
        return _in_order(whole[0], target.elts, whole[1])
    if not isinstance(value, ast.Tuple):
        return []
    return _pairwise(target.elts, value.elts)


def _pairwise(targets: list[ast.expr], values: list[ast.expr]) -> list[tuple[str, int, str]]:
    found: list[tuple[str, int, str]] = []
    if values and isinstance(values[0], ast.Starred):
        whole = _shape_of(values[0].value)
        if whole is not None and not any(isinstance(one, ast.Starred) for one in values[1:]):
            names = targets[: len(targets) - len(values) + 1]
            return _in_order(whole[0], names, whole[1])
        return []
    for one, value in zip(targets, values, strict=False):
        if isinstance(one, (ast.Tuple, ast.List)):
            whole = _shape_of(value)
            found += _in_order(whole[0], one.elts, whole[1]) if whole is not None else []
        asked = measured(value)
        if isinstance(one, ast.Name) and asked is not None:
            found.append((*asked, one.id))
    return found


def _shape_of(node: ast.AST) -> tuple[str, slice] | None:
    """Return the array whose shape, or part of it, an expression is."""
    part = slice(None)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice):
        bounds = [None if one is None else words.number(one)
                  for one in (node.slice.lower, node.slice.upper)]  # fmt: skip
        part, node = slice(*bounds), node.value
    if isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute):
        if node.func.attr != "size":
            return None
        name = dotted(node.func.value)
    elif isinstance(node, ast.Attribute) and node.attr == "shape":
        name = dotted(node.value)
    else:
        return None
    return (name, part) if name else None


def _in_order(array: str, targets: list[ast.expr], part: slice) -> list[tuple[str, int, str]]:
    start = part.start or 0
    starred = next((n for n, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
    found = []
    for n, one in enumerate(targets):
        if isinstance(one, ast.Name):
            is_behind = starred is not None and n > starred
            index = n - len(targets) + (part.stop or 0) if is_behind else start + n
            found.append((array, index, one.id if one.id.strip("_") else ""))
    return found
