"""Gives test files sites as well, although pytest loads them itself, their assertions rewritten."""

from __future__ import annotations

import os
import sys

from . import arrivals, quiet, unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from . import spine

_MODULE = "_pytest.assertion.rewrite"


def watch(program: spine.Program, is_project: Callable[[str], bool]) -> None:
    """Come between pytest and its bytecode as soon as its rewriting is loaded."""
    arrivals.await_module(_MODULE, lambda names: _replace_reader(names, program, is_project))


def _replace_reader(
    names: dict[str, Any], program: spine.Program, is_project: Callable[[str], bool]
) -> None:
    """Answer pytest's question for bytecode of a test file it has rewritten before."""
    theirs = names["_read_pyc"]
    rewrite_asserts = names["rewrite_asserts"]
    hook = names["AssertionRewritingHook"]

    def rewrite(tree: ast.Module, text: str, path: str) -> None:
        (config,) = [one.config for one in sys.meta_path if isinstance(one, hook)][:1]
        rewrite_asserts(tree, text.encode(), path, config)

    def read_pyc(source: Any, pyc: Any, trace: Any = lambda _: None) -> CodeType | None:
        path = os.fspath(source)
        if not is_project(path) or path in program.files:
            return unseen.in_sight(theirs, source, pyc, trace)  # type: ignore[no-any-return]
        before = quiet.enter()
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            return program.load(
                text, path, rewrite=lambda tree, text: rewrite(tree, text, path)
            ).code
        except (OSError, SyntaxError, ValueError):
            pass
        finally:
            quiet.leave(before)
        return unseen.in_sight(theirs, source, pyc, trace)  # type: ignore[no-any-return]

    names["_read_pyc"] = read_pyc
