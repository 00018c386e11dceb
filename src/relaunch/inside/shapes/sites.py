"""Which statements of a file may have arrays to tell of: told alike in the program and outside it.

Functions and sites are numbered in the order of the text, so that both sides mean the same by a
number. Text in, places out: nothing is run.
"""

from __future__ import annotations

import _ast

from relaunch.inside.probe import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

MODULE = ""
"""The name of what stands outside every function."""
RETURNED = "return"
"""The label of what is returned: no name that a program can have."""
_FUNCTIONS = (_ast.FunctionDef, _ast.AsyncFunctionDef)
_LOOPS = (_ast.For, _ast.AsyncFor)
_SEES_LOCALS = frozenset(("locals", "vars", "dir", "eval", "exec"))
_COMPILERS = frozenset(("numba", "triton", "taichi", "warp", "pythran", "cython", "tilelang"))
"""Packages that read a function's bytecode or source, and would stumble over what is put there."""


class Site:
    """A statement after which values are looked at; its labels name them in the user's words."""

    def __init__(self, number: int, kind: str, statement: Any, labels: Sequence[str]) -> None:
        """Keep what it is: `arguments`, `assign`, `attribute`, `augment`, `loop` or `return`."""
        self.number = number
        self.kind = kind
        self.statement = statement
        self.labels = tuple(labels)


class Function:
    """A function with its sites; `hidden` says why none of them can be looked at."""

    def __init__(self, number: int, name: str, node: Any, hidden: str = "") -> None:
        """Begin without sites."""
        self.number = number
        self.name = name
        self.node = node
        self.hidden = hidden
        self.sites: list[Site] = []

    def is_meant(self, wanted: Sequence[str]) -> bool:
        """Tell whether a function is one of those named; a class stands for its methods."""
        return any(
            not name or self.name == name or self.name.startswith(name + ".") for name in wanted
        )


def functions_of(tree: Any) -> list[Function]:
    """Return the module itself and all its functions, each with its sites."""
    origins = _origins(tree)
    handed_over = set(_handed_over(tree, origins))
    found = [Function(0, MODULE, tree)]
    for name, node in lines.functions(tree):
        hidden = _hidden(node, origins)
        if not hidden and name in handed_over:
            hidden = "it is compiled by another package"
        found.append(Function(len(found), name, node, hidden))
    count = 0
    for function in found:
        if function.node is not tree:
            function.sites.append(Site(count, "arguments", function.node, arguments(function.node)))
            count += 1
        for statement in own_statements(function.node):
            kind, labels = what_is_set(statement)
            if labels:
                function.sites.append(Site(count, kind, statement, labels))
                count += 1
    return found


def arguments(node: Any) -> list[str]:
    """Return the names of a function's arguments, in order."""
    spec = node.args
    every = [*spec.posonlyargs, *spec.args, spec.vararg, *spec.kwonlyargs, spec.kwarg]
    return [one.arg for one in every if one is not None]


def own_statements(node: Any) -> Iterator[Any]:
    """Go through the statements of a function, not those of functions and classes inside it."""
    for block in lines.blocks(node):
        for statement in block:
            yield statement
            if not isinstance(statement, (*_FUNCTIONS, _ast.ClassDef)):
                yield from own_statements(statement)


def what_is_set(statement: Any) -> tuple[str, list[str]]:
    """Return how a statement sets values, and the names that it sets; no names if it sets none."""
    if isinstance(statement, _ast.Assign):
        names = [name for target in statement.targets for name in _names(target)]
        if names:
            return "assign", list(dict.fromkeys(names))
        if len(statement.targets) == 1:
            return "attribute", [text for text in [dotted(statement.targets[0])] if text]
    elif isinstance(statement, _ast.AnnAssign) and statement.value is not None:
        return "assign", list(_names(statement.target))
    elif isinstance(statement, _ast.AugAssign):
        return "augment", list(_names(statement.target))
    elif isinstance(statement, _LOOPS):
        return "loop", list(dict.fromkeys(_names(statement.target)))
    elif isinstance(statement, _ast.Return):
        is_worth = isinstance(statement.value, (_ast.Call, _ast.BinOp, _ast.Subscript, _ast.Tuple,
                                                _ast.Attribute, _ast.IfExp, _ast.UnaryOp,
                                                _ast.List, _ast.Dict, _ast.Compare, _ast.Await,
                                                _ast.ListComp))  # fmt: skip
        return "return", [RETURNED] if is_worth else []
    return "", []


def dotted(node: Any) -> str:
    """Return `self.n_head` as text; empty for what is no such chain of names."""
    parts: list[str] = []
    while isinstance(node, _ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    return ".".join([node.id, *parts]) if isinstance(node, _ast.Name) else ""


def walk_own(node: Any) -> Iterator[Any]:
    """Go through all nodes of a function, not into functions and classes inside it."""
    todo = [node]
    while todo:
        one = todo.pop()
        yield one
        for field in one._fields:
            value = getattr(one, field, None)
            for child in value if isinstance(value, list) else (value,):
                if isinstance(child, _ast.AST) and not isinstance(
                    child, (*_FUNCTIONS, _ast.ClassDef, _ast.Lambda)
                ):
                    todo.append(child)


def _names(target: Any) -> Iterator[str]:
    """Go through the names of a target that mean something: `_` does not."""
    if isinstance(target, _ast.Name):
        if target.id.strip("_"):
            yield target.id
    elif isinstance(target, (_ast.Tuple, _ast.List)):
        for one in target.elts:
            yield from _names(one)
    elif isinstance(target, _ast.Starred):
        yield from _names(target.value)


def _hidden(node: Any, origins: dict[str, str]) -> str:
    for decorator in node.decorator_list:
        by = _package_of(decorator, origins)
        if by in _COMPILERS:
            return f"{by} compiles it"
    for one in walk_own(node):
        if isinstance(one, _ast.Name) and one.id in _SEES_LOCALS:
            return f"it uses {one.id}(), which would show a name of ours"
    return ""


def _package_of(node: Any, origins: dict[str, str]) -> str:
    """Return the package that `jit`, `nb.njit(cache=True)` or `numba.cuda.jit` comes from."""
    if isinstance(node, _ast.Call):
        node = node.func
    return origins.get(dotted(node).partition(".")[0], "")


def _origins(tree: Any) -> dict[str, str]:
    """Return the imported names of a module with the packages that they come from."""
    found: dict[str, str] = {}
    for statement in lines.statements(tree):
        if isinstance(statement, _ast.Import):
            for alias in statement.names:
                package = alias.name.partition(".")[0]
                found[alias.asname or package] = package
        elif isinstance(statement, _ast.ImportFrom) and statement.module and not statement.level:
            for alias in statement.names:
                found[alias.asname or alias.name] = statement.module.partition(".")[0]
    return found


def _handed_over(tree: Any, origins: dict[str, str]) -> Iterator[str]:
    """Go through the functions that are handed to a compiler, as by `f = njit(f)`."""
    if not _COMPILERS & set(origins.values()):
        return
    for node in walk_own(tree):
        if isinstance(node, _ast.Call) and _package_of(node.func, origins) in _COMPILERS:
            yield from (one.id for one in node.args if isinstance(one, _ast.Name))
