"""The user's source as it is now: code by its name, nearest to where it was."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType

    Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Source:
    """One file."""

    def __init__(self, path: str, data: bytes | None = None) -> None:
        """Read it, unless there is other `data`; OSError or SyntaxError if that cannot be."""
        self.path = path
        if data is None:
            with open(path, "rb") as file:
                data = file.read()
        self.data = data
        self.tree = ast.parse(self.data, path)
        self._code: CodeType | None = None

    @property
    def lines(self) -> list[str]:
        """The lines, as the capture keeps them too."""
        return self.data.decode("utf-8", "replace").split("\n")

    @property
    def code(self) -> CodeType:
        """The code of the whole file."""
        if self._code is None:
            self._code = compile(self.data, self.path, "exec", dont_inherit=True)
        return self._code

    def find_code(self, qualname: str, first: int) -> CodeType | None:
        """Return the code of a function; of several with one name the one nearest to a line."""
        found = [code for code in _codes(self.code) if code.co_qualname == qualname]
        return min(found, key=lambda code: abs(code.co_firstlineno - first), default=None)

    def find_definition(self, qualname: str, first: int) -> Definition | None:
        """Return the definition of a function; of several the one nearest to a line."""
        found = [node for name, node in _definitions(self.tree, "") if name == qualname]
        return min(found, key=lambda node: abs(first_line(node) - first), default=None)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, type(code)):
            yield from _codes(const)


def _definitions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            name = prefix + getattr(child, "name", "<lambda>")
            yield name, child
            yield from _definitions(child, f"{name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _definitions(child, f"{prefix}{child.name}.")
        else:
            yield from _definitions(child, prefix)


def first_line(node: ast.AST) -> int:
    """Return the first line of a definition, its decorators included, as code objects count it."""
    decorators = getattr(node, "decorator_list", None)
    return int((decorators[0] if decorators else node).lineno)  # type: ignore[attr-defined]


def moved(line: int, old: list[str], old_first: int, new: list[str], new_first: int) -> int:
    """Return where a line of a text is in its edited version; of a changed line, what replaced it."""
    at = line - old_first
    if old == new:
        return new_first + at
    from difflib import SequenceMatcher

    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if i1 <= at < i2:
            if tag == "equal":
                return new_first + j1 + at - i1
            return new_first + max(0, min(j1 + at - i1, j2 - 1))
    return new_first + min(at, len(new) - 1)
