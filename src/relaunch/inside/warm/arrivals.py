"""Has a word with modules of others when they are loaded: a call of ours ends their code."""

from __future__ import annotations

import ast
import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    Heed = Callable[[dict[str, Any]], object]

_HOOK = "__rl_loaded_"
_awaited: dict[str, str] = {}


def await_module(name: str, heed: Heed) -> None:
    """Let `heed` have the names of a module, once, when all of it was executed."""
    hook = _awaited[name] = f"{_HOOK}{name.replace('.', '_')}__"

    def loaded(names: dict[str, Any]) -> None:
        delattr(builtins, hook)
        heed(names)

    setattr(builtins, hook, loaded)


def is_awaited(name: str) -> bool:
    """Tell whether `watched` is to be asked for the code of a module."""
    return name in _awaited and hasattr(builtins, _awaited[name])


def watched(name: str, text: str, path: str) -> CodeType:
    """Return the code of an awaited module, with a call of ours at its end."""
    tree = ast.parse(text, path)
    names = ast.Call(ast.Name("globals", ast.Load()), [], [])
    call = ast.Expr(ast.Call(ast.Name(_awaited[name], ast.Load()), [names], []))
    for node in ast.walk(call):
        node.lineno = node.end_lineno = len(text.splitlines())  # type: ignore[attr-defined]
        node.col_offset = node.end_col_offset = 0  # type: ignore[attr-defined]
    tree.body.append(call)
    return compile(tree, path, "exec", dont_inherit=True)
