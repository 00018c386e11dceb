"""One statement of a function, as a function of its own: its variables become the arguments.

So a call whose arguments are gone, because they were rebound or consumed, still fails as it did.
"""

from __future__ import annotations

import ast

from relaunch.inside.replay.source import Source, first_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


class NoStatement(Exception):
    """There is no statement to run at that place."""


def module_code(source: Source, line: int) -> CodeType:
    """Return the code of the statement at a line of a module."""
    statement = _alone(_innermost(source.tree.body, line), line)
    tree = ast.Module(body=[statement], type_ignores=[])
    return source.compiled(ast.fix_missing_locations(tree))


def function_code(
    source: Source, frame: dict[str, Any], first: int, line: int, variables: list[str]
) -> CodeType:
    """Return the code of a function that takes the variables and runs the statement at a line.

    It begins at `first`, as both are now.
    """
    node = source.find_definition(frame["qualname"], first)
    if node is None:
        raise NoStatement(f"{frame['qualname']} is no longer in {source.path}")
    if isinstance(node, ast.Lambda):
        body: list[ast.stmt] = [ast.copy_location(ast.Return(value=node.body), node.body)]
    else:
        body = [*_declarations(node), _alone(_innermost(node.body, line), line)]
    names = [name for name in variables if name.isidentifier() and name != "__class__"]
    leading = [name for name in frame["positional"][:1] if name in names]
    rest = [name for name in names if name not in leading]
    made = _function(node, body, leading, rest)
    _Mangle(_class_of(frame["qualname"])).visit(made)
    kind: Any = ast.FunctionDef  # which asks for `type_params` from Python 3.12 on
    outer = kind(
        name="outer",
        args=_arguments(["__class__"], []),
        body=[made, ast.Return(value=ast.Name(id=made.name, ctx=ast.Load()))],
        decorator_list=[],
        lineno=made.lineno,
        end_lineno=made.lineno,
        col_offset=0,
    )
    outer.type_params = []
    tree = ast.Module(body=[outer], type_ignores=[])
    code = source.compiled(ast.fix_missing_locations(tree))
    inner = _inner(_inner(code))
    return inner.replace(co_qualname=frame["qualname"], co_name=frame["name"])


def _inner(code: CodeType) -> CodeType:
    return next(const for const in code.co_consts if isinstance(const, type(code)))


def _innermost(body: list[ast.stmt], line: int) -> ast.stmt:
    """Return the innermost statement that a line is part of."""
    found = None
    todo: list[Any] = list(body)
    while todo:
        node = todo.pop()
        if not _first(node) <= line <= node.end_lineno:
            continue
        if isinstance(node, ast.stmt):
            found = node
        if not isinstance(node, _DEFINITIONS):
            todo = [child for name in _BODIES for child in getattr(node, name, ())]
    if found is None:
        raise NoStatement(f"no statement at line {line}")
    return found


def _first(node: Any) -> int:
    if isinstance(node, ast.match_case):
        return int(node.pattern.lineno)
    return first_line(node)


def _alone(node: Any, line: int) -> ast.stmt:
    """Return a statement whose place is its head, as `for x in rows():`, without its body."""
    nothing: list[ast.stmt] = [ast.copy_location(ast.Pass(), node)]
    if isinstance(node, (ast.For, ast.AsyncFor)):
        node.body, node.orelse = nothing, []
    elif isinstance(node, (ast.With, ast.AsyncWith)):
        node.body = nothing
    elif isinstance(node, (ast.If, ast.While)):
        return ast.copy_location(ast.Expr(value=node.test), node)
    elif isinstance(node, ast.Match):
        return ast.copy_location(ast.Expr(value=node.subject), node)
    elif isinstance(node, (ast.Try, ast.TryStar)):
        raise NoStatement(f"line {line} is a `try` alone")
    return node  # type: ignore[no-any-return]  # a statement


def _declarations(node: ast.AST) -> list[ast.stmt]:
    """Return the `global` statements of a function; what was nonlocal is an argument now."""
    return [
        child
        for child in ast.walk(node)
        if isinstance(child, ast.Global) and not isinstance(child, _DEFINITIONS)
    ]


def _function(node: Any, body: list[ast.stmt], first: list[str], rest: list[str]) -> Any:
    declared = {name for one in body if isinstance(one, ast.Global) for name in one.names}
    kind: Any = ast.AsyncFunctionDef if isinstance(node, ast.AsyncFunctionDef) else ast.FunctionDef
    made = kind(
        name=getattr(node, "name", "call"),
        args=_arguments(first, [name for name in rest if name not in declared]),
        body=body,
        decorator_list=[],
        lineno=node.lineno,
        end_lineno=node.lineno,
        col_offset=0,
    )
    made.type_params = []
    return made


def _arguments(first: list[str], rest: list[str]) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[],
        args=[ast.arg(arg=name) for name in first],
        kwonlyargs=[ast.arg(arg=name) for name in rest],
        kw_defaults=[None for _ in rest],
        defaults=[],
    )


def _class_of(qualname: str) -> str:
    """Return the class whose private names a function uses; empty if it is in none."""
    parts = qualname.split(".")
    return parts[-2] if len(parts) > 1 and parts[-2] != "<locals>" else ""


class _Mangle(ast.NodeTransformer):
    """Writes private names as the class has them: `self.__x` is `self._Loader__x`."""

    def __init__(self, kind: str) -> None:
        self._kind = kind.lstrip("_")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        node.attr = self._mangled(node.attr)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._mangled(node.id)
        return node

    def _mangled(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__")
        return f"_{self._kind}{name}" if self._kind and private else name
