"""Sides of an array in words, and what happens to them when arrays meet or are cut."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Sides = list["Side | None"]
    """The sides of an array in words; None for one without."""


class Side:
    """One side in words; `sure` where the words leave no doubt."""

    __slots__ = ("sure", "text")

    def __init__(self, text: str, *, sure: bool = True) -> None:
        """Keep the words."""
        self.text = text
        self.sure = sure

    def unsure(self) -> Side:
        """Return the same words, not to be sure of."""
        return Side(self.text, sure=False)


_SAME = (
    "Parameter abs add_ as_tensor asarray astype bfloat16 bool byte ceil clamp clamp_ clip "
    "clone contiguous copy cos cpu cuda cumprod cumsum data detach device_put div_ double "
    "dropout elu exp flip float floor from_numpy full_like gelu group_norm half imag int "
    "layer_norm leaky_relu log log2 log_softmax logical_not long masked_fill masked_fill_ "
    "mish mul_ nan_to_num neg normalize ones_like pow rand_like randn_like real relu relu_ "
    "requires_grad_ rms_norm roll round rsqrt sigmoid sign silu sin softmax softplus sort "
    "sqrt square stop_gradient sub_ tanh to tril triu type type_as zeros_like"
)
SAME = frozenset(_SAME.split())
"""Leave every side as it is."""
TURNED = frozenset(("T", "mT", "H", "mH"))
_MAKING = (
    "zeros ones empty full rand randn randint arange linspace eye cat concat concatenate "
    "stack einsum hstack vstack normal uniform"
)
MAKING = frozenset(_MAKING.split())
"""Make an array out of sizes, or of several others."""


def number(node: ast.AST | None) -> int | None:
    """Return a whole number that stands in the code."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = number(node.operand)
        return None if inner is None else -inner
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return None


def swapped(sides: Sides, one: int, other: int) -> Sides | None:
    """Exchange two sides."""
    count = len(sides)
    if not (-count <= one < count and -count <= other < count):
        return None
    found = list(sides)
    found[one], found[other] = sides[other], sides[one]
    return found


def spread(operands: Sequence[Sides | None]) -> Sides | None:
    """Return the sides of operands that are stretched to fit each other."""
    known = [one for one in operands if one is not None]
    if not known:
        return None
    found: Sides = []
    for place in range(1, max(map(len, known)) + 1):
        here = [one[-place] for one in known if len(one) >= place]
        told = [one for one in here if one is not None and one.text != "1"]
        sure = [one for one in told if one.sure]
        texts = {one.text for one in sure or told}
        # Two names for one side are equal as long as the sum works: the first is as good.
        found.insert(0, (sure or told)[0] if texts else (here[0] if len(here) == 1 else None))
    return found


def multiplied(left: Sides | None, right: Sides | None) -> Sides | None:
    """Return the sides of a product of matrices."""
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return None
    front = spread([left[:-2], right[:-2]]) or []
    return [*front, left[-2], right[-1]]


def indexed(sides: Sides, index: ast.expr, side: Callable[[ast.AST], str | None]) -> Sides | None:
    """Return the sides of `x[:, -1]`, `x[..., :d]`, `x[None]`."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    taken = sum(not _is_new(one) and not _is_rest(one) for one in parts)
    if not any(map(_is_rest, parts)):
        parts.append(ast.Constant(...))
    found: Sides = []
    rest = list(sides)
    for one in parts:
        if _is_new(one):
            found.append(Side("1"))
        elif _is_rest(one):
            count = len(sides) - taken
            found += rest[:count]
            rest = rest[count:]
        elif not rest:
            return None
        elif isinstance(one, ast.Slice):
            found.append(_cut(rest.pop(0), one, side))
        elif isinstance(one, ast.List):
            rest.pop(0)
            found.append(Side(str(len(one.elts))))
        elif number(one) is not None:
            rest.pop(0)
        else:
            return None
    return found


def _cut(whole: Side | None, part: ast.Slice, side: Callable[[ast.AST], str | None]) -> Side | None:
    if part.step is not None:
        return None
    if part.lower is None and part.upper is None:
        return whole
    if part.lower is None and part.upper is not None and number(part.upper) is None:
        text = side(part.upper)
        return None if text is None else Side(text)
    return None


def _is_new(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_rest(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...
