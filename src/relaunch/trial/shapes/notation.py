"""How shapes are written in comments: `(B, T, C//n_head)`, `[(B, T), ...]`, `{x: (B, T)}`.

A side is a number, a name, a small sum of both, `*` for any, or `...` for any number of sides.
"""

from __future__ import annotations

import ast

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

ANY = "*"
REST = "..."
_ANYTHING = (ANY, "?", "_", "-1")
_OPEN = {"(": ")", "[": "]", "{": "}"}
_LONGEST = 400
_OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b if b else None,
    ast.Div: lambda a, b: a // b if b and a % b == 0 else None,
    ast.Mod: lambda a, b: a % b if b else None,
    ast.Pow: lambda a, b: a**b if 0 <= b < 8 else None,
}


class Shape(Record):
    """The sides of one array, each as text."""

    sides: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as one writes it."""
        comma = "," if len(self.sides) == 1 and self.sides[0] != REST else ""
        return f"({', '.join(self.sides)}{comma})"


class Several(Record):
    """A list or tuple of arrays; an open one has any number of the last kind."""

    items: tuple[Value, ...]
    is_list: bool = True
    is_open: bool = False

    def __str__(self) -> str:
        """Return it as one writes it."""
        inner = ", ".join([*map(str, self.items), *([REST] if self.is_open else [])])
        comma = "," if len(self.items) == 1 and not self.is_open and not self.is_list else ""
        return f"[{inner}]" if self.is_list else f"({inner}{comma})"


class Fields(Record):
    """A dict of arrays, or part of one."""

    items: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        """Return it as one writes it."""
        return "{" + ", ".join(f"{key}: {value}" for key, value in self.items) + "}"


if TYPE_CHECKING:
    Value = Shape | Several | Fields


def sides_of(value: Value) -> Iterator[str]:
    """Go through all sides of all arrays in it."""
    if isinstance(value, Shape):
        yield from value.sides
    elif isinstance(value, Several):
        for item in value.items:
            yield from sides_of(item)
    else:
        for _, item in value.items:
            yield from sides_of(item)


def read_value(text: str, at: int) -> tuple[Value, int] | None:
    """Read what begins with a bracket at this place; None if that is no shape. Also its end."""
    end = closing(text, at)
    if end < 0:
        return None
    inner = _split(text[at + 1 : end])
    value = _fields(inner) if text[at] == "{" else _sequence(inner, text[at])
    return None if value is None else (value, end + 1)


def _sequence(inner: list[str], bracket: str) -> Value | None:
    """Read what is between brackets: sides, or shapes."""
    parts = inner[:-1] if len(inner) > 1 and not inner[-1] else inner
    if parts == [""]:
        return Shape(sides=()) if bracket == "(" else None
    if parts[0][:1] in _OPEN and parts[0][:1] and closing(parts[0], 0) == len(parts[0]) - 1:
        is_open = parts[-1] == REST
        items = [_whole(part) for part in (parts[:-1] if is_open else parts)]
        found = [item for item in items if item is not None]
        is_complete = len(found) == len(items) and bool(found)
        is_sum = bracket == "(" and len(inner) == 1
        if not is_complete or is_sum:
            return None
        return Several(items=tuple(found), is_list=bracket == "[", is_open=is_open)
    if len(inner) == 1 and bracket == "(" and parts[0] != REST:
        return None  # `(n_embd)` is a word in brackets; one side is written `(n_embd,)`
    if not all(is_side(part) for part in parts) or _is_sequence(parts):
        return None
    return Shape(sides=tuple(_tidy(part) for part in parts))


def _is_sequence(parts: list[str]) -> bool:
    """Tell numbers that go on, `0, 1, ..., n`, from sides."""
    at = parts.index(REST) if REST in parts else 0
    return REST in parts[at + 1 :] or (0 < at < len(parts) - 1 and parts[at - 1].isdecimal())


def _fields(inner: list[str]) -> Value | None:
    items: list[tuple[str, Value]] = []
    for part in inner:
        key, colon, rest = part.partition(":")
        value = _whole(rest.strip())
        if not colon or not key.strip() or value is None:
            return None
        items.append((key.strip().strip("'\""), value))
    return Fields(items=tuple(items))


def _whole(text: str) -> Value | None:
    if text[:1] not in _OPEN or not text:
        return None
    found = read_value(text, 0)
    return found[0] if found is not None and found[1] == len(text) else None


def closing(text: str, at: int) -> int:
    """Return where the bracket at this place is closed; -1 if it is not."""
    waiting: list[str] = []
    for index in range(at, min(len(text), at + _LONGEST)):
        char = text[index]
        if char in _OPEN:
            waiting.append(_OPEN[char])
        elif waiting and char == waiting[-1]:
            waiting.pop()
            if not waiting:
                return index
        elif char in ")]}":
            return -1
    return -1


def _split(text: str) -> list[str]:
    """Split at the commas that are in no brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [part.strip() for part in (*parts, text[start:])]


def _tidy(text: str) -> str:
    return ANY if text in _ANYTHING else "".join(text.split())


# --- one side -------------------------------------------------------------------------------------


def is_side(text: str) -> bool:
    """Tell whether a text can be the side of an array."""
    if text in _ANYTHING or text == REST:
        return True
    node = expression(text)
    return node is not None and all(map(_is_plain, ast.walk(node)))


def expression(text: str) -> ast.expr | None:
    """Return the tree of a side; None for what is none, or more than a name, a number or a sum."""
    known = _EXPRESSIONS.get(text, text)
    if not isinstance(known, str):
        return known
    try:
        node: ast.expr | None = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        node = None
    _EXPRESSIONS[text] = node
    return node


_EXPRESSIONS: dict[str, ast.expr | None] = {}


def _is_plain(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    kinds = (ast.Name, ast.Attribute, ast.BinOp, ast.operator, ast.expr_context)
    return isinstance(node, kinds)


def names_in(text: str) -> list[str]:
    """Return the names that a side is made of, dotted ones whole."""
    node = expression(text) if text not in (*_ANYTHING, REST) else None
    return [] if node is None else list(dict.fromkeys(_names(node)))


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return [ast.unparse(node)]
    return [name for child in ast.iter_child_nodes(node) for name in _names(child)]


def evaluate(text: str, numbers: Mapping[str, int]) -> int | None:
    """Return what a side comes to with these numbers; None where they do not tell."""
    node = expression(text)
    return None if node is None else _evaluate(node, numbers)


def _evaluate(node: ast.expr, numbers: Mapping[str, int]) -> int | None:
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        text = node.id if isinstance(node, ast.Name) else ast.unparse(node)
        return numbers.get(text)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _evaluate(node.left, numbers), _evaluate(node.right, numbers)
        if left is None or right is None:
            return None
        found: int | None = _OPERATORS[type(node.op)](left, right)
        return found
    return None


def joined(left: str, operator: str, right: str) -> str:
    """Return `left operator right` as a side, with brackets where they are needed."""
    level = {"+": 1, "-": 1, "*": 2, "//": 2}
    if _level(left) < level[operator]:
        left = f"({left})"
    if _level(right) < level[operator] or (_level(right) == level[operator] and operator != "+"):
        right = f"({right})"
    return f"{left}{operator}{right}"


def _level(text: str) -> int:
    """Return how strongly a side holds together."""
    node = expression(text)
    if isinstance(node, ast.BinOp):
        return 1 if isinstance(node.op, (ast.Add, ast.Sub)) else 2
    return 3
