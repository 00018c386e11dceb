"""Gives test files sites as well, although pytest loads them itself, their assertions rewritten."""

from __future__ import annotations

import ast
import builtins
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from . import spine

MODULE = "_pytest.assertion.rewrite"
_HOOK = "__rl_pytest__"


def watch(program: spine.Program, is_project: Callable[[str], bool]) -> None:
    """Be called when pytest's rewriting is loaded; `watched` code does that."""

    def loaded(names: dict[str, Any]) -> None:
        delattr(builtins, _HOOK)
        _replace_reader(names, program, is_project)

    setattr(builtins, _HOOK, loaded)


def watched(native: CodeType | None, text: str, path: str) -> CodeType | None:
    """Return the code of pytest's module, with a call of ours at its end."""
    if not hasattr(builtins, _HOOK):
        return native
    tree = ast.parse(text, path)
    names = ast.Call(ast.Name("globals", ast.Load()), [], [])
    call = ast.Expr(ast.Call(ast.Name(_HOOK, ast.Load()), [names], []))
    for node in ast.walk(call):
        node.lineno = node.end_lineno = len(text.splitlines())  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    tree.body.append(call)
    return compile(tree, path, "exec", dont_inherit=True)


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
            return theirs(source, pyc, trace)  # type: ignore[no-any-return]
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            return program.load(
                text, path, rewrite=lambda tree, text: rewrite(tree, text, path)
            ).code
        except (OSError, SyntaxError, ValueError):
            return theirs(source, pyc, trace)  # type: ignore[no-any-return]

    names["_read_pyc"] = read_pyc
