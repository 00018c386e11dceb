"""Which statements a range of lines is, and how a section is put around them.

`with` is what does it: whichever way the statements are left, the section is. It begins on the line
of the first statement and ends on that of the last (3.13: of the first), so that tracebacks and
coverage see no line that was not there. A `yield` inside ends one run of the section, and what is
sent back begins the next: the consumer's time is its own.
"""

from __future__ import annotations

import _ast

from relaunch.inside.probe import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

RUNTIME = "__rl__"
_SCOPES = (_ast.FunctionDef, _ast.AsyncFunctionDef, _ast.ClassDef, _ast.Lambda)
_DECLARING = (_ast.Global, _ast.Nonlocal)


class Span:
    """Statements next to each other in one block, from the first to the last."""

    def __init__(self, block: list[Any], first: int, last: int) -> None:
        """Name them by their places; the block may change before they are wrapped."""
        self.block = block
        self.statements = block[first : last + 1]

    @property
    def line(self) -> int:
        """Return the line of the first."""
        return lines.first_line(self.statements[0])


def find_spans(tree: Any, known: Mapping[str, list[Any]], probe: Mapping[str, Any]) -> list[Span]:
    """Return what a section covers: a range of lines, or a function; raises NoPlace."""
    if probe.get("function"):
        return [_body(node) for node in lines.named(known, probe["function"])]
    return [find_range(tree, probe["line"], probe["end"])]


def _body(function: Any) -> Span:
    block = function.body
    first = 0
    while first < len(block) and _comes_before(block, first):
        first += 1
    if first == len(block):  # a docstring alone: it must stay what it is
        block.append(_at(_ast.Pass(), function))
    return Span(block, first, len(block) - 1)


def _comes_before(block: list[Any], index: int) -> bool:
    return lines.is_prelude(block, index) or isinstance(block[index], _DECLARING)


def find_range(tree: Any, first: int, last: int) -> Span:
    """Return the statements from one line to another; raises NoPlace where that cuts one."""
    if last < first:
        raise lines.NoPlace(f"lines {first}-{last} go backwards", (f"{last}-{first}",))
    block = _innermost(tree, first, last)
    inside = [
        n
        for n, one in enumerate(block)
        if lines.first_line(one) <= last and _last_line(one) >= first
    ]
    while inside and _comes_before(block, inside[0]):
        del inside[0]
    if not inside:
        raise lines.NoPlace(f"lines {first}-{last} have no code", near(tree, first))
    begin = lines.first_line(block[inside[0]])
    end = _last_line(block[inside[-1]])
    if begin < first or end > last:
        cut = block[inside[0]] if begin < first else block[inside[-1]]
        where = f"{lines.first_line(cut)}-{_last_line(cut)}"
        whole = f"{min(begin, first)}-{max(end, last)}"
        raise lines.NoPlace(f"lines {first}-{last} cut the statement of lines {where}", (whole,))
    return Span(block, inside[0], inside[-1])


def find_end(tree: Any, line: int) -> int:
    """Return the last line of the statement that begins at a line; raises NoPlace."""
    for statement in lines.statements(tree):
        if lines.first_line(statement) == line:
            return _last_line(statement)
    raise lines.NoPlace(f"line {line} begins no statement", near(tree, line))


def near(tree: Any, line: int) -> tuple[str, ...]:
    """Return the lines around this one at which statements begin."""
    known = lines.lines_with_code(tree)
    above = [one for one in known if one < line][-1:]
    return tuple(map(str, above + [one for one in known if one > line][:1]))


def _innermost(node: Any, first: int, last: int) -> list[Any]:
    """Return the smallest block that all lines of the range with code lie in."""
    for one in lines.blocks(node):
        for statement in one:
            if lines.first_line(statement) < first and _last_line(statement) >= last:
                for inner in lines.blocks(statement):
                    if lines.first_line(inner[0]) <= last and _last_line(inner[-1]) >= first:
                        found = _innermost(statement, first, last)
                        if found:
                            return found
    for block in lines.blocks(node):
        touched = [
            one for one in block if lines.first_line(one) <= last and _last_line(one) >= first
        ]
        if touched:
            return block
    return []


def _last_line(statement: Any) -> int:
    return int(statement.end_lineno or statement.lineno)


def wrap(found: Sequence[tuple[int, Span]]) -> dict[int, str]:
    """Put the sections, given with their numbers, around their statements: the inner ones first.

    Returns those that cannot be: two sections that cut each other.
    """
    refused: dict[int, str] = {}
    around: dict[int, Any] = {}
    """What a statement is in by now."""
    for number, span in sorted(found, key=lambda one: len(one[1].statements)):
        first, last = (_outermost(span.statements[n], around, n) for n in (0, -1))
        places = [n for n, one in enumerate(span.block) if one is first or one is last]
        if first is None or last is None or not places:
            refused[number] = "it begins or ends inside another section"
            continue
        begin, end = places[0], places[-1]
        body = span.block[begin : end + 1]
        node = _with(number, body)
        for one in body:
            around[id(one)] = node
        span.block[begin : end + 1] = [node]
    return refused


def _outermost(statement: Any, around: Mapping[int, Any], end: int) -> Any:
    """Return what a statement is in by now, if it is that one's first (`end` 0) or last (-1)."""
    while id(statement) in around:
        outer = around[id(statement)]
        if outer.body[end] is not statement:
            return None
        statement = outer
    return statement


def _with(number: int, body: list[Any]) -> Any:
    first, last = body[0], body[-1]
    waits = [_pause_at_yields(number, statement) for statement in body]
    flag = [_at(_ast.Constant(True, None), first)] if any(waits) else []
    call = _placed(_told("section", number, *flag), first)
    return _at(_ast.With([_ast.withitem(call, None)], body, None), last)


def _pause_at_yields(number: int, node: Any) -> bool:
    """Have each `yield` of this scope leave the section, and enter it again when it goes on.

    Tells whether there is one.
    """
    found = False
    for field, value in _fields(node):
        if isinstance(value, list):
            for n, one in enumerate(value):
                value[n], waits = _paused(number, one)
                found = found or waits
        else:
            new, waits = _paused(number, value)
            setattr(node, field, new)
            found = found or waits
    return found


def _fields(node: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(node, _SCOPES):
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, (_ast.AST, list)):
                yield field, value


def _paused(number: int, node: Any) -> tuple[Any, bool]:
    if not isinstance(node, _ast.AST):
        return node, False
    found = _pause_at_yields(number, node)
    if not isinstance(node, _ast.Yield):
        return node, found
    value = node.value if node.value is not None else _at(_ast.Constant(None, None), node)
    node.value = _placed(_told("pause", number, value), node)
    return _placed(_told("resume", number, node), node), True


def _placed(call: Any, beside: Any) -> Any:
    for node in (call, call.func, call.func.value, call.args[0]):
        _at(node, beside)
    return call


def _told(what: str, number: int, *more: Any) -> Any:
    function = _ast.Attribute(_ast.Name(RUNTIME, _ast.Load()), what, _ast.Load())
    return _ast.Call(function, [_ast.Constant(number, None), *more], [])


def _at(node: Any, beside: Any) -> Any:
    """Place a node where another begins: Python has a call over many lines happen at its last."""
    node.lineno = node.end_lineno = beside.lineno
    node.col_offset = node.end_col_offset = beside.col_offset
    return node
