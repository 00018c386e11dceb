"""Puts calls of ours into a module's tree; every other node keeps its place and its meaning.

Each call stands at the position of the statement beside it, so that tracebacks, `inspect` and
coverage see the lines they always see. What a probe asks is evaluated in the scope of that
statement, closures and private names included. An expression that fails is told, never raised.
"""

from __future__ import annotations

import _ast

from relaunch.inside.probe import lines, spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

RUNTIME = "__rl__"
"""The one name of ours in `builtins`; the function behind it has what the others need."""
RETURNED = "@rl"
"""A variable that no program can have: what is about to be returned."""
RESULT = "__result__"
"""How an expression names what is about to be returned."""
_LEAVING = (_ast.Raise, _ast.Break, _ast.Continue)
_DEFINING = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef)
_SHOWING = ("peek", "log")


class Placed:
    """Where the probes of a file went: number of the probe to its lines, or why it has none."""

    def __init__(self) -> None:
        """Begin with none."""
        self.lines: dict[int, list[int]] = {}
        self.refused: dict[int, str] = {}


def inject(tree: Any, probes: Sequence[tuple[int, Mapping[str, Any]]]) -> Placed:
    """Put the probes, given with their numbers, into the tree of their file."""
    placed = Placed()
    found: dict[int, tuple[list[Any], dict[int, list[tuple[int, Any, bool]]]]] = {}
    _look_at_shapes(tree, [one for one in probes if one[1]["kind"] == "shapes"], placed)
    sections: list[tuple[int, spans.Span]] = []
    known = lines.by_name(tree) if any(probe.get("function") for _, probe in probes) else {}
    for number, probe in probes:
        if number in placed.lines:
            continue
        try:
            if probe["kind"] == "section":
                covered = spans.find_spans(tree, known, probe)
                placed.lines[number] = [span.line for span in covered]
                sections += [(number, span) for span in covered]
                continue
            places = _find(tree, known, probe)
        except lines.NoPlace as error:
            placed.refused[number] = error.why
            continue
        placed.lines[number] = [place.statement.lineno for place in places]
        for place in places:
            _, beside = found.setdefault(id(place.block), (place.block, {}))
            beside.setdefault(place.index, []).append((number, probe, place.after))
    for block, beside in found.values():
        block[:] = _with_calls(block, beside)
    placed.refused.update(spans.wrap(sections))
    return placed


def _look_at_shapes(tree: Any, asked: list[tuple[int, Mapping[str, Any]]], placed: Placed) -> None:
    if asked:
        from relaunch.inside.shapes.inject import add_sites

        wanted = [str(probe["function"]) for _, probe in asked]
        at = add_sites(tree, asked[0][0], wanted, asked[0][1]["exprs"])
        placed.lines.update((number, at) for number, _ in asked)


def _find(tree: Any, known: Mapping[str, list[Any]], probe: Mapping[str, Any]) -> list[lines.Place]:
    """Return the places of one probe; raises NoPlace."""
    after = bool(probe.get("after"))
    if not probe.get("function") and not probe["line"]:
        return lines.find_beginning(tree)
    if probe.get("function"):
        return lines.find_function(known, probe["function"], after=after)
    return lines.find_line(tree, probe["line"], after=after)


def _with_calls(
    block: list[Any], beside: Mapping[int, list[tuple[int, Any, bool]]]
) -> Iterator[Any]:
    """Go through a block with the calls in it."""
    held: list[tuple[int, Any]] = []
    for index, statement in enumerate(block):
        here = beside.get(index, [])
        before = [(number, probe) for number, probe, after in here if not after]
        after = [(number, probe) for number, probe, after in here if after]
        if _must_be_first(block, index):  # then what was to come before it comes after
            yield statement
            held += before + after
            continue
        yield from _calls(held + before, statement)
        held = []
        if after and isinstance(statement, _ast.Return):
            yield from _returning(statement, after)
        elif isinstance(statement, _LEAVING):
            yield from _calls(after, statement)
            yield statement
        elif after:
            yield from _watched(statement, after)
        else:
            yield statement
    yield from _calls(held, block[-1])


def _must_be_first(block: list[Any], index: int) -> bool:
    statement = block[index]
    if isinstance(statement, (_ast.Global, _ast.Nonlocal)):
        return True
    return lines.is_prelude(block, index)


def _returning(statement: Any, probes: list[tuple[int, Any]]) -> Iterator[Any]:
    """Return a value in three steps: work it out, let it be seen, return it."""
    if statement.value is None:
        yield from _calls(probes, statement)
        yield statement
        return
    value = statement.value
    name = at(_ast.Name(RETURNED, _ast.Store()), value)
    work_out = at(_ast.Assign([name], value), statement)
    yield from _watched(work_out, probes, RETURNED)
    statement.value = at(_ast.Name(RETURNED, _ast.Load()), value)
    yield statement


def _watched(statement: Any, probes: list[tuple[int, Any]], result: str = "") -> Iterator[Any]:
    """Run a statement, then the probes; those that show values do so too where it raises."""
    showing = [(number, probe) for number, probe in probes if probe["kind"] in _SHOWING]
    if not showing or isinstance(statement, _DEFINING):
        yield statement
        yield from _calls(probes, statement, result)
        return
    rescue = [*_calls(showing, statement, raised=True), at(_ast.Raise(), statement)]
    watched = _try([statement], rescue)
    for node in (watched, *watched.handlers, *walk(watched.handlers[0].type)):
        at(node, statement)
    yield watched
    yield from _calls(probes, statement, result)


def _calls(
    probes: list[tuple[int, Any]], statement: Any, result: str = "", *, raised: bool = False
) -> Iterator[Any]:
    for number, probe in probes:
        call = _call(number, probe, result, raised=raised)
        place(call, statement)
        yield call


def _call(number: int, probe: Mapping[str, Any], result: str, *, raised: bool = False) -> Any:
    """Return the statement that runs a probe."""
    asked = [_expression(text, result) for text in probe.get("exprs", ())]
    if result and probe.get("result"):
        asked.append(_load(result))
    run: Any = _ast.Expr(_ast.Call(_load(RUNTIME), [_ast.Constant(number), *asked], []))
    if raised:
        run = _ast.Expr(_told("raised", number, *asked))
    if probe.get("sparse"):  # asked before anything is evaluated
        run = _ast.If(_told("due", number), [run], [])
    if asked:
        parts = [_part(number, index, one) for index, one in enumerate(asked)]
        whole = _told("whole_raised" if raised else "whole", number)
        run = _try([run], [*parts, _ast.Expr(whole)])
    if probe.get("if"):
        passed: Any = _ast.Expr(_told("passed", number))
        test = _ast.If(_expression(probe["if"], result), [run], [passed])
        run = _try([test], [_ast.Expr(_told("doubt", number))])
    return run


def _part(number: int, index: int, expression: Any) -> Any:
    """Evaluate one of several expressions alone, after they failed together."""
    call = _told("part", number, _ast.Constant(index), expression)
    failed = _told("failed", number, _ast.Constant(index))
    return _try([_ast.Expr(call)], [_ast.Expr(failed)])


def _try(body: list[Any], rescue: list[Any]) -> Any:
    # The class is asked of our function: `Exception` may be another thing in the user's scope.
    kind = _ast.Attribute(_load(RUNTIME), "Failure", _ast.Load())
    return _ast.Try(body, [_ast.ExceptHandler(kind, None, rescue)], [], [])


def guarded_call(what: str, words: list[Any]) -> Any:
    """Return the statement that calls a function of ours, or does nothing if a name is not set."""
    function = _ast.Attribute(_load(RUNTIME), what, _ast.Load())
    return _try([_ast.Expr(_ast.Call(function, words, []))], [_ast.Pass()])


def _told(what: str, number: int, *more: Any) -> Any:
    function = _ast.Attribute(_load(RUNTIME), what, _ast.Load())
    return _ast.Call(function, [_ast.Constant(number), *more], [])


def _load(name: str) -> Any:
    return _ast.Name(name, _ast.Load())


def _expression(text: str, result: str) -> Any:
    """Return the tree of an expression, in which `__result__` is what is about to be returned."""
    whole: Any = compile(f"({text}\n)", "<probe>", "eval", lines.ONLY_AST, dont_inherit=True)
    tree = whole.body
    if result:
        for node in walk(tree):
            if isinstance(node, _ast.Name) and node.id == RESULT:
                node.id = result
    return tree


def walk(node: Any) -> Iterator[Any]:
    """Go through a node and all below it."""
    todo = [node]
    while todo:
        node = todo.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, _ast.AST):
                todo.append(value)
            elif isinstance(value, list):
                todo += [one for one in value if isinstance(one, _ast.AST)]


def place(new: Any, beside: Any) -> None:
    """Give a node and all below it the position of another."""
    for node in walk(new):
        at(node, beside)


def at(node: Any, beside: Any) -> Any:
    """Give a node the position of another."""
    if "lineno" in node._attributes:
        node.lineno, node.col_offset = beside.lineno, beside.col_offset
        node.end_lineno, node.end_col_offset = beside.end_lineno, beside.end_col_offset
    return node
