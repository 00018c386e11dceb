"""One call of an operation on arrays, as it stands in the code."""

from __future__ import annotations

import ast

from relaunch.trial.shapes.sides import Side, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from relaunch.trial.shapes.sides import Sides


class Called:
    """An operation: on which array, with which arguments, by place and by name."""

    def __init__(
        self,
        on: Sides | None,
        given: Sequence[ast.expr],
        named: Mapping[str, ast.expr],
        *,
        of: Callable[[ast.AST], Sides | None],
        side: Callable[[ast.AST], str | None],
    ) -> None:
        """`of` tells the sides of an argument, `side` what one that is a size comes to."""
        self.on, self.given, self.named = on, given, named
        self.of, self._side = of, side

    def other(self, at: int) -> Sides | None:
        """Return the sides of an argument."""
        return self.of(self.given[at]) if len(self.given) > at else None

    def parts(self) -> list[Sides | None]:
        """Return the sides of arrays that are given as a list."""
        listed = self.given[0] if self.given else None
        if not isinstance(listed, (ast.Tuple, ast.List)):
            return []
        return [self.of(one) for one in listed.elts]

    def size(self, at: int, name: str = "") -> Side | None:
        """Return an argument that is a size."""
        node = self.named.get(name) or (self.given[at] if len(self.given) > at else None)
        text = self._side(node) if node is not None else None
        return None if text is None else Side(text)

    def sizes(self, nodes: Sequence[ast.expr] | None = None) -> Sides | None:
        """Return arguments that are sizes, given one by one or as one tuple."""
        nodes = self.listed(nodes)
        if not nodes or any(isinstance(node, ast.Starred) for node in nodes):
            return None
        texts = [self._side(node) for node in nodes]
        return [None if text is None else Side(text) for text in texts]

    def listed(self, nodes: Sequence[ast.expr] | None = None) -> list[ast.expr]:
        """Return arguments that are given one by one or as one tuple."""
        nodes = self.given if nodes is None else nodes
        if len(nodes) == 1 and isinstance(nodes[0], (ast.Tuple, ast.List)):
            return list(nodes[0].elts)
        return list(nodes)

    def numbers(self) -> list[int] | None:
        """Return the arguments, if all are whole numbers in the code."""
        found = [number(node) for node in self.listed()]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None

    def place(self, at: int, otherwise: int | None = None) -> int | None:
        """Return which side is meant, by its place among the arguments or as `dim=`, from 0 on."""
        for name in ("dim", "axis"):
            if name in self.named:
                return self._from_front(number(self.named[name]))
        if len(self.given) > at:
            return self._from_front(number(self.given[at]))
        return self._from_front(otherwise)

    def _from_front(self, place: int | None) -> int | None:
        if place is None or self.on is None or place >= 0:
            return place
        return place + len(self.on)
