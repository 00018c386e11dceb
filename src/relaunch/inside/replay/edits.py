"""What was edited since a failure: which functions, which globals; and whether a replay runs it."""

from __future__ import annotations

import ast
import sys

from relaunch.inside.replay.source import Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType
    from typing import Any

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class Edits:
    """How one file differs from what it was."""

    def __init__(self, old: Source, new: Source) -> None:
        """Compare by meaning: comments and layout are no edits."""
        before, after = dict(_units(old.tree, "")), dict(_units(new.tree, ""))
        names = [*after, *(name for name in before if name not in after)]
        self.functions = [one for one in names if before.get(one) != after.get(one)]
        """Functions that are new, gone or other than they were."""
        were, are = _globals(old.tree), _globals(new.tree)
        self.names = {one for one in {*were, *are} if were.get(one) != are.get(one)}
        """Globals that are assigned otherwise than they were."""


def _units(node: ast.AST, prefix: str) -> Iterator[tuple[str, str]]:
    """Return each function with what is in it, but for the functions in it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{prefix}{child.name}", _text(child)
            yield from _units(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _units(child, f"{prefix}{child.name}.")
        else:
            yield from _units(child, prefix)


def _text(node: Any, top: bool = True) -> str:
    """Write a tree without positions; a definition inside it only by its name."""
    if isinstance(node, _DEFINITIONS) and not top:
        return f"<{node.name}>"
    if isinstance(node, ast.AST):
        inner = ",".join(_text(getattr(node, name, None), False) for name in node._fields)
        return f"{type(node).__name__}({inner})"
    if isinstance(node, list):
        return f"[{','.join(_text(one, False) for one in node)}]"
    return repr(node)


def _globals(tree: ast.Module) -> dict[str, str]:
    """Return the names that a module assigns, each with all that assigns it."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            continue
        for target in _targets(node):
            found[target] = found.get(target, "") + _text(node)
    return found


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
        targets = [node.target]
    else:
        return []
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


class Watched:
    """Sees which edited functions a replay runs."""

    def __init__(self, edits: dict[str, Edits]) -> None:
        """Take the edits of each file."""
        self._edits = edits
        self._seen: set[CodeType] = set()
        self._ran: set[tuple[str, str]] = set()

    def __enter__(self) -> Watched:
        """Begin."""
        if any(one.functions for one in self._edits.values()):
            sys.setprofile(self._look)
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        sys.setprofile(None)

    def _look(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code not in self._seen:
            self._seen.add(code)
            if code.co_filename in self._edits:
                self._ran.add((code.co_filename, code.co_qualname))

    @property
    def not_run(self) -> list[str]:
        """Name the edited functions that did not run."""
        return [
            name
            for file, edits in self._edits.items()
            for name in edits.functions
            if (file, name) not in self._ran
        ]
