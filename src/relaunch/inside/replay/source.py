"""The user's source as it is now: code by its name, nearest to where it was."""

from __future__ import annotations

import ast

from relaunch.inside.capture.code import where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType
    from typing import Any

    Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Source:
    """One file."""

    def __init__(self, path: str, data: bytes | None = None, *, rewritten: bool = False) -> None:
        """Read it, unless there is other `data`; OSError or SyntaxError if that cannot be.

        Where it is `rewritten`, its asserts tell as much as pytest lets them.
        """
        self.path = path
        self._rewritten = rewritten
        if data is None:
            with open(path, "rb") as file:
                data = file.read()
        self.data = data
        self.tree = ast.parse(self.data, path)
        self._code: CodeType | None = None

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return lines_of(self.data)

    @property
    def code(self) -> CodeType:
        """The code of the whole file."""
        if self._code is None:
            self._code = self.compiled(ast.parse(self.data, self.path))
        return self._code

    def compiled(self, tree: ast.Module) -> CodeType:
        """Compile a tree that was made of this file."""
        if self._rewritten:
            from importlib import import_module

            import_module("_pytest.assertion.rewrite").rewrite_asserts(tree, self.data)
        return compile(tree, self.path, "exec", dont_inherit=True)

    def find_code(
        self, qualname: str, first: int, column: int = 0, arguments: Any = None, body: bytes = b""
    ) -> CodeType | None:
        """Return the code of a function; of several with one name the one nearest to a place.

        Of two lambdas on a line, the one that is as it was, or takes what it took.
        """

        def far(code: CodeType) -> tuple[int, bool, bool, int]:
            line, at, its_arguments, its_body = where(code)
            is_other = its_body != body
            return abs(line - first), is_other, its_arguments != arguments, abs(at - column)

        return min(
            (code for code in _codes(self.code) if code.co_qualname == qualname),
            key=far,
            default=None,
        )

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
    first: Any = decorators[0] if decorators else node
    return int(first.lineno)


def lines_of(data: bytes) -> list[str]:
    """Part a source into lines."""
    return data.decode("utf-8", "replace").split("\n")


def moved(line: int, old: list[str], new: list[str]) -> int:
    """Return where a line is in the edited text; of a changed line, what replaced it."""
    from difflib import SequenceMatcher

    at = line - 1
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if i1 <= at < i2:
            if tag == "equal":
                return j1 + at - i1 + 1
            return max(0, min(j1 + at - i1, j2 - 1)) + 1
    return min(line, len(new))
