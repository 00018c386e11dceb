"""Puts what looks at shapes into a module's tree.

A function asks once, when it is called, whether this call is to be looked at; where it is not, its
statements pay for a comparison with None and no more. What stands outside functions runs once, and
is looked at each time. `torch.compile` sees none of it: there the question answers itself.
"""

from __future__ import annotations

import _ast

from relaunch.inside.probe import lines
from relaunch.inside.probe.rewrite import walk
from relaunch.inside.shapes.sites import functions_of, walk_own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.inside.shapes.sites import Function, Site


class Known:
    """What is known of a function before it is called."""

    def __init__(self, number: int, arguments: Sequence[str], wanted: Sequence[str]) -> None:
        """Keep the names of its arguments, and those that it may take from its module."""
        self.number = number
        self.arguments = arguments
        self.wanted = wanted


functions: dict[int, Known] = {}
"""All that were put anywhere, by number."""
labels: dict[int, Sequence[str]] = {}
"""The names that a site sets, by its number."""
RUNTIME = "__rl_shapes__"
"""A name of ours in `builtins`, besides the one of other probes: torch is told to call that one."""
CALL = "@shapes"
"""A variable that no program can have: what looks at this call, or None."""
_VALUE = "@shape"
"""Likewise: a value on its way to where it is kept, or to the caller."""
STEP = 1 << 16
"""Functions and sites of a file are numbered from this on, times the number of its probe."""


def add_sites(tree: Any, number: int, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """Look at the functions that are wanted, for probe `number`; return their lines.

    `names` are numbers of the module that may be asked for, besides those that the code uses.
    """
    base = STEP * number
    placed: list[int] = []
    for function in functions_of(tree):
        if function.hidden or not function.is_meant(wanted):
            continue
        is_module = function.node is tree
        asked = [] if is_module else function.sites[0].labels
        used = {one.id for one in walk_own(function.node) if isinstance(one, _ast.Name)}
        functions[base + function.number] = Known(
            base + function.number, asked, sorted(used.union(names).difference(asked))
        )
        after = {id(site.statement): site for site in function.sites if site.kind != "arguments"}
        labels.update((base + site.number, site.labels) for site in after.values())
        _look_below(function.node, after, base, is_module=is_module)
        if not is_module:
            _ask_at_entry(function, base)
            placed.append(function.node.lineno)
    return placed or [1]


def _ask_at_entry(function: Function, base: int) -> None:
    """Begin a function with the question whether this call is looked at."""
    place = lines.entry(function.node)
    index = place.index + int(place.after)
    beside = place.block[min(index, len(place.block) - 1)]
    values = [_load(name) for name in function.sites[0].labels]
    begin = _ast.Call(_ours("entered"), [_ast.Constant(base + function.number), *values], [])
    nobody = _ast.Assign([_ast.Name(CALL, _ast.Store())], _ast.Constant(None))
    ask = _ast.If(
        _ast.UnaryOp(_ast.Not(), _ast.Call(_ours("compiling"), [], [])),
        [_ast.Assign([_ast.Name(CALL, _ast.Store())], begin)],
        [],
    )
    place.block[index:index] = [_at(nobody, beside), _at(ask, beside)]


def _look_below(node: Any, after: dict[int, Site], base: int, *, is_module: bool) -> None:
    """Put the calls behind the statements of a function that have a site."""
    for block in lines.blocks(node):
        new: list[Any] = []
        for statement in block:
            if not isinstance(statement, (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)):
                _look_below(statement, after, base, is_module=is_module)
            site = after.get(id(statement))
            new += [statement] if site is None else _looked_at(site, base, is_module=is_module)
        block[:] = new


def _looked_at(site: Site, base: int, *, is_module: bool) -> list[Any]:
    """Return the statements that stand for one with a site."""
    statement = site.statement
    if site.kind == "loop":
        look = _look(site, [_load(name) for name in site.labels], base, is_module=is_module)
        statement.body.insert(0, _at(look, statement.body[0]))
        return [statement]
    if site.kind not in ("return", "attribute"):
        look = _look(site, [_load(name) for name in site.labels], base, is_module=is_module)
        return [statement, _at(look, statement)]
    # The value is seen on its way: to ask for an attribute may run code of the user.
    value = statement.value
    keep = _ast.Assign([_ast.Name(_VALUE, _ast.Store())], value)
    _only(keep, statement)
    _only(keep.targets[0], value)
    statement.value = _only(_load(_VALUE), value)
    look = _at(_look(site, [_load(_VALUE)], base, is_module=is_module), statement)
    if site.kind == "return":
        return [keep, look, statement]
    forget: Any = _ast.Assign([_ast.Name(_VALUE, _ast.Store())], _ast.Constant(None))
    if is_module:
        forget = _ast.Delete([_ast.Name(_VALUE, _ast.Del())])
    return [keep, statement, look, _at(forget, statement)]


def _look(site: Site, values: list[Any], base: int, *, is_module: bool) -> Any:
    if is_module:
        given = [_ast.Constant(base), _ast.Constant(base + site.number), *values]
        return _ast.Expr(_ast.Call(_ours("at"), given, []))
    asked = _ast.Compare(_load(CALL), [_ast.IsNot()], [_ast.Constant(None)])
    call = _ast.Call(_load(CALL), [_ast.Constant(base + site.number), *values], [])
    return _ast.If(asked, [_ast.Expr(call)], [])


def _ours(name: str) -> Any:
    return _ast.Attribute(_load(RUNTIME), name, _ast.Load())


def _load(name: str) -> Any:
    return _ast.Name(name, _ast.Load())


def _at(new: Any, beside: Any) -> Any:
    """Give a node and all below it the position of another."""
    for node in walk(new):
        _only(node, beside)
    return new


def _only(node: Any, beside: Any) -> Any:
    if "lineno" in node._attributes:
        node.lineno, node.col_offset = beside.lineno, beside.col_offset
        node.end_lineno, node.end_col_offset = beside.end_lineno, beside.end_col_offset
    return node
