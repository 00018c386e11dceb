"""The program itself as a module: what it defines, without running it.

With `if __name__ == "__main__":` all but that is run, as for a worker of multiprocessing. Without
it, only what cannot do anything: definitions, imports, constants. The capture has other globals.
"""

from __future__ import annotations

import ast
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from relaunch.inside.replay.source import Source

_PLAIN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


class Script:
    """The module `__main__` of a replay."""

    def __init__(self, facts: dict[str, Any], source: Source) -> None:
        """Make the module of a source."""
        self._source = source
        self.module: ModuleType = type(sys)("__main__")
        self.module.__file__ = source.path
        self.module.__package__ = facts["package"] or None
        vars(self.module)["__builtins__"] = __import__("builtins")
        self._put_off: list[ast.stmt] = []

    def load(self) -> None:
        """Run what is to be run of it; it is `__main__` from then on."""
        sys.modules["__main__"] = self.module
        body = self._source.tree.body
        if any(map(_is_guard, body)):
            kept = []
            for node in body:
                kept += node.orelse if isinstance(node, ast.If) and _is_guard(node) else [node]
            self._run(kept)
            return
        for node in filter(_is_harmless, body):
            try:
                self._run([node])
            except Exception:  # it needs what the capture has
                self._put_off.append(node)

    def finish(self) -> None:
        """Run what needed globals that are there by now."""
        todo, self._put_off = self._put_off, []
        for node in todo:
            try:
                self._run([node])
            except Exception:
                continue

    def _run(self, body: list[ast.stmt]) -> None:
        tree = ast.Module(body=body, type_ignores=[])
        exec(self._source.compiled(tree), vars(self.module))


def _is_guard(node: ast.stmt) -> bool:
    if not isinstance(node, ast.If) or not isinstance(node.test, ast.Compare):
        return False
    sides = [node.test.left, *node.test.comparators]
    names = [side.id for side in sides if isinstance(side, ast.Name)]
    words = [side.value for side in sides if isinstance(side, ast.Constant)]
    return "__name__" in names and "__main__" in words


def _is_harmless(node: ast.stmt) -> bool:
    """Tell whether a statement only defines something."""
    if isinstance(node, _PLAIN):
        return True
    if isinstance(node, ast.Assign):
        return _is_constant(node.value)
    if isinstance(node, ast.AnnAssign):
        return node.value is None or _is_constant(node.value)
    if isinstance(node, ast.If):
        return all(map(_is_harmless, [*node.body, *node.orelse]))
    if isinstance(node, ast.Try):
        handled = [one for handler in node.handlers for one in handler.body]
        return all(map(_is_harmless, [*node.body, *handled, *node.orelse, *node.finalbody]))
    return isinstance(node, ast.Pass) or _is_about_the_path(node)


def _is_constant(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_about_the_path(node: ast.stmt) -> bool:
    """Tell `sys.path.insert(0, ...)`: without it the imports that follow find nothing."""
    return isinstance(node, ast.Expr) and ast.unparse(node).startswith("sys.path.")
