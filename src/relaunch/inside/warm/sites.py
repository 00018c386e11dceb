"""Puts a cheap question between the statements of a program: does somebody want to stop here?

Each place is a *site* with a number and a byte. `if <byte>: stop(<number>)` costs a few nanoseconds
while the byte is zero, and the program cannot see any of it: byte and function are constants of the
code object, put there after compiling in place of names. A site that was passed can be closed: then
a jump stands there, which costs next to nothing.

What is compiled is a *stencil* at first, with holes in its constants, which can be kept and used
for any process; `bound` fills them in.
"""

from __future__ import annotations

import ast
import copy
import sys
from opcode import opmap
from types import CodeType

from .morph import PADDING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

STOP = "__rl_stop__"
CAUGHT = (1 << 20) - 1
"""The one number of all places where an exception was caught that somebody may look into."""
_FLAG = "__rl_flag_%d__"
_HOLE = chr(0) + "rl "  # which no file says, not even this one
_FLAG_HOLE, _STOP_HOLE, _NUMBER_HOLE = (f"{_HOLE}{kind} %d" for kind in ("flag", "stop", "number"))
_DEEP, _PASSED = "__rl_deep__", "__rl_passed__"
"""What says that a frame is too deep for a call of ours, and where it is then noted."""
_OTHER_HOLES = {STOP: _STOP_HOLE % 0, _DEEP: f"{_HOLE}deep 0", _PASSED: f"{_HOLE}passed 0"}
_CACHE, _CALL, _EXTENDED, _JUMP, _LOAD_CONST, _LOAD_GLOBAL, _LOAD_NAME, _NOP, _PUSH_NULL = (
    opmap[name]
    for name in ("CACHE", "CALL", "EXTENDED_ARG", "JUMP_FORWARD", "LOAD_CONST", "LOAD_GLOBAL",
                 "LOAD_NAME", "NOP", "PUSH_NULL")
)  # fmt: skip
_JUMP_BACK = opmap["JUMP_BACKWARD"]
_IF_FALSE = {
    opmap[name]: way
    for name, way in (("POP_JUMP_IF_FALSE", 1), ("POP_JUMP_FORWARD_IF_FALSE", 1),
                      ("POP_JUMP_BACKWARD_IF_FALSE", -1))
    if name in opmap
}  # fmt: skip
_IF_TRUE = frozenset(
    opmap[name]
    for name in ("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
    if name in opmap
)
_SMALL = (_LOAD_CONST, opmap.get("LOAD_SMALL_INT", -1))
_NOTHING = bytes((_PUSH_NULL, 0))
_NULL_LAST = sys.version_info >= (3, 13)
_CALL_UNITS = {(3, 11): 5, (3, 12): 4}.get(sys.version_info[:2], 4)
"""A call and its caches."""
_LOAD = ast.Load()
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


class Block:
    """A list of statements of a file, in which each place before, between and after has a site."""

    def __init__(
        self, first: int, path: tuple[Any, ...], body: list[ast.stmt], repeats: bool
    ) -> None:
        """`first` is the number of its first site, `path` the way to it from the file's top."""
        self.first = first
        self.path = path
        self.body = body
        self.repeats = repeats
        """It is the body of a function or a loop."""

    @property
    def end(self) -> int:
        """The site after the last statement."""
        return self.first + len(self.body)


def blocks(tree: ast.Module) -> list[Block]:
    """List the blocks of a file that have sites, numbered in the order of the text."""
    found: list[Block] = []
    count = 0
    for path, body, repeats in _walk(tree):
        found.append(Block(count, path, body, repeats))
        count += len(body) + 1
    return found


def _walk(
    node: ast.AST, path: tuple[Any, ...] = (), dead: bool = False
) -> Iterator[tuple[tuple[Any, ...], list[ast.stmt], bool]]:
    """Give path and statements of every block below a node, outer ones first."""
    for field, body in bodies(node):
        inner = (*path, field)
        still = dead or not _can_stop(field)
        if body and not still and not isinstance(node, ast.ClassDef):
            yield inner, body, field == "body" and isinstance(node, (*FUNCTIONS, *LOOPS))
        for number, statement in enumerate(body):
            below = still and not isinstance(statement, FUNCTIONS)
            yield from _walk(statement, (*inner, number), below)


def bodies(node: ast.AST) -> Iterator[tuple[Any, list[ast.stmt]]]:
    """Give the blocks of one statement with the names of their places in it."""
    if isinstance(node, ast.Match):
        for number, case in enumerate(node.cases):
            yield ("case", number), case.body
        return
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
            yield field, body
    for number, handler in enumerate(getattr(node, "handlers", ())):
        yield ("handler", number), handler.body
    if getattr(node, "finalbody", None):
        yield "finalbody", node.finalbody  # type: ignore[attr-defined]


def _can_stop(field: Any) -> bool:
    """Tell whether one can stop there: not on top of an exception, and not in `finally`.

    The bytecode of `finally` stands several times in the code, once for each way into it.
    """
    return bool(field != "finalbody" and field[0] != "handler")


def instrument(tree: ast.Module, found: list[Block]) -> ast.Module:
    """Return the file with a question at each site of its blocks; the tree stays as it is."""
    return _Rewriter(found).file(tree)


class _Rewriter:
    def __init__(self, found: list[Block]) -> None:
        self.numbers = {id(block.body): block.first for block in found}
        self.questions = _questions(found[-1].end + 1 if found else 0)
        self.after_handlers = False
        """Whether this function may have caught an exception before it comes here."""

    def file(self, tree: ast.Module) -> ast.Module:
        new = copy.copy(tree)
        new.body = self.block(tree.body)
        return new

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Copy a block, with a question before, between and after its statements."""
        first = self.numbers.get(id(body))
        if first is None:
            return [self.statement(one) for one in body]
        out: list[ast.stmt] = []
        for number, statement in enumerate(body):
            if not is_prelude(number, statement):
                out.append(_at(self.question(first + number), _start_of(statement)))
            out.append(self.statement(statement))
        out.append(_at(self.question(first + len(body)), _end_of(body[-1])))
        return out

    def question(self, number: int) -> ast.stmt:
        """Return the question of a site, guarded where the first to come may be as deep as can be.

        That is who caught a RecursionError: others came there before, in a call of less depth.
        """
        return _guarded(number) if self.after_handlers else self.questions[number]

    def statement(self, statement: ast.stmt) -> ast.stmt:
        """Copy a statement with questions in its blocks."""
        below = list(bodies(statement))
        if not below:
            return statement
        outside = self.after_handlers
        if isinstance(statement, FUNCTIONS):
            self.after_handlers = False
        new: Any = self._copied(statement, below)
        if isinstance(statement, FUNCTIONS):
            self.after_handlers = outside
        return new  # type: ignore[no-any-return]

    def _copied(self, statement: ast.stmt, below: list[tuple[Any, list[ast.stmt]]]) -> Any:
        new: Any = copy.copy(statement)
        for field, body in below:
            asked = self.block(body)
            if isinstance(field, str):
                setattr(new, field, asked)
            elif field[0] == "case":
                new.cases = _replaced(new.cases, field[1], asked)
            else:
                if _looks_into(statement.handlers[field[1]]):  # type: ignore[attr-defined]
                    asked.insert(0, _at(_guarded(CAUGHT), _start_of(body[0])))
                new.handlers = _replaced(new.handlers, field[1], asked)
        self.after_handlers = self.after_handlers or bool(getattr(new, "handlers", ()))
        return new


def _looks_into(handler: ast.ExceptHandler) -> bool:
    """Tell whether a handler may keep the exception, or show it with its lines."""
    return bool(handler.name) or any(isinstance(node, ast.Call) for node in ast.walk(handler))


def _replaced(parts: list[Any], number: int, body: list[ast.stmt]) -> list[Any]:
    part = copy.copy(parts[number])
    part.body = body
    return [*parts[:number], part, *parts[number + 1 :]]


def is_docstring(statement: ast.stmt) -> bool:
    """Tell whether a statement is a text and nothing else."""
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def is_prelude(index: int, statement: ast.stmt) -> bool:
    """Tell whether a statement must stay at the very top of its block, before any site."""
    return (index == 0 and is_docstring(statement)) or _is_future(statement)


def past_imports(body: list[ast.stmt]) -> int:
    """Return the index after the last import at the top level of a script."""
    imports = (ast.Import, ast.ImportFrom)
    return max((n + 1 for n, one in enumerate(body) if isinstance(one, imports)), default=0)


def _is_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _start_of(statement: ast.stmt) -> tuple[int, int]:
    for decorator in getattr(statement, "decorator_list", ()):
        return decorator.lineno, decorator.col_offset
    return statement.lineno, statement.col_offset


def _end_of(statement: ast.stmt) -> tuple[int, int]:
    return statement.end_lineno or statement.lineno, statement.end_col_offset or 0


def _questions(count: int) -> list[ast.stmt]:
    """Return `if flag.x: stop.x(number)` for each of so many sites.

    The attributes make room for what will stand there. Parsed, for that is the quickest way.
    """
    text = "".join(map(_written, range(count)))
    return ast.parse(text).body


def _written(number: int) -> str:
    return f"if {_FLAG % number}.x: {STOP}.x({_NUMBER_HOLE % number!r})\n"


def _guarded(number: int) -> ast.stmt:
    """Return a question that notes, without a call, that no call of ours is possible here."""
    site = repr(_NUMBER_HOLE % number)
    text = (
        f"if {_FLAG % number}.x:\n try: {STOP}.x({site})\n"
        f" except {_DEEP}.x: {_PASSED}.x[{site}] = 1\n"
    )
    return ast.parse(text).body[0]


def _at(question: Any, where: tuple[int, int]) -> ast.stmt:
    """Give a question its place in the file."""
    line, column = where
    at = {"lineno": line, "end_lineno": line, "col_offset": column, "end_col_offset": column}
    flag, told = question.test, question.body[0]
    call: Any = getattr(told, "value", None)
    if call is None:
        every = [node for node in ast.walk(question) if "lineno" in node._attributes]
    else:
        every = [question, flag, flag.value, told, call, call.func, call.func.value, call.args[0]]
    for node in every:
        vars(node).update(at)
    return question  # type: ignore[no-any-return]


# --- after compiling


Skips = dict[int, "tuple[int, bytes, bytes] | None"]
"""Of sites: where the question begins, how it does, and the jump in its place."""
Stencil = tuple[CodeType, Skips, "tuple[int, ...]", "tuple[int, ...]"]
"""The code of a file, how its sites are closed, their lines, and those that are doors."""


def stencil(tree: ast.Module, found: list[Block], file: str) -> Stencil:
    """Compile a file with questions, and learn how each site can be closed; None if it cannot be.

    That is so where it stands several times. The frames have some room more than they need.
    """
    skips: Skips = {}
    code = _with_holes(compile(tree, file, "exec", dont_inherit=True), skips)
    lines = [
        line
        for block in found
        for line in (*(one.lineno for one in block.body), block.body[-1].end_lineno or 0)
    ]
    doors = [block.first + is_prelude(0, block.body[0]) for block in found if block.repeats]
    return code, skips, tuple(lines), tuple(doors)


def _with_holes(code: CodeType, skips: Skips) -> CodeType:
    """Put holes in the place of the names of flags and `stop`, here and in all code below."""
    consts = [_with_holes(c, skips) if isinstance(c, CodeType) else c for c in code.co_consts]
    ours = {n: name for n, name in enumerate(code.co_names) if name.startswith("__rl_")}
    raw = bytearray(code.co_code)
    others: dict[str, int] = {}
    for start, end, index, skip in _loads(raw, ours) if ours else ():
        name = ours[index]
        if name not in _OTHER_HOLES:
            number = int(name[len(_FLAG) - 4 : -2])
            _write(raw, start, end, len(consts), called=False)
            question = bytes(raw[start : start + len(skip)])
            skips[number] = None if number in skips else (start, question, skip)
            consts.append(_FLAG_HOLE % number)
            continue
        if name not in others:
            others[name] = len(consts)
            consts.append(_OTHER_HOLES[name])
        _write(raw, start, end, others[name], called=name == STOP)
    names = tuple("" if n in ours else name for n, name in enumerate(code.co_names))
    return code.replace(
        co_code=bytes(raw),
        co_consts=tuple(consts),
        co_names=names,
        co_stacksize=code.co_stacksize + PADDING,
    )


def bound(
    one: Stencil, file: str, base: int, flag_of: Callable[[int], object], *others: object
) -> tuple[CodeType, Skips]:
    """Put flags, `stop`, what notes that a site is too deep, and the numbers into the holes.

    Their file is this very text: in a traceback, Python knows equal files by their address.
    """
    code, skips, *_ = one
    return (
        _filled(code, file, base, flag_of, *others),
        {_absolute(number, base): skip for number, skip in skips.items()},
    )


def _filled(
    const: Any, file: str, base: int, flag_of: Callable[[int], object], stop: object, deep: object
) -> Any:
    """Return a constant, or what belongs into its hole; no closure, which would be garbage."""
    if isinstance(const, CodeType):
        consts = [_filled(one, file, base, flag_of, stop, deep) for one in const.co_consts]
        return const.replace(co_consts=tuple(consts), co_filename=file)
    if not isinstance(const, str) or not const.startswith(_HOLE):
        return const
    kind, number = const.split()[1:]
    if kind in ("stop", "deep", "passed"):
        return {"stop": stop, "deep": RecursionError, "passed": deep}[kind]
    site = _absolute(int(number), base)
    return site if kind == "number" else flag_of(site)


def _absolute(number: int, base: int) -> int:
    return number if number == CAUGHT else base + number


def _instructions(raw: bytes | bytearray) -> Iterator[tuple[int, int, int, int]]:
    """Give start (with prefixes), end (with caches), operation and argument of each instruction."""
    at, start, extended = 0, 0, 0
    size = len(raw)
    while at < size:
        op, arg = raw[at], raw[at + 1] | extended
        at += 2
        if op == _EXTENDED:
            extended = arg << 8
            continue
        while at < size and raw[at] == _CACHE:
            at += 2
        yield start, at, op, arg
        start, extended = at, 0


def _loads(raw: bytearray, ours: dict[int, str]) -> Iterator[tuple[int, int, int, bytes]]:
    """Give the room of each load of one of our names and its attribute, the name, and its skip."""
    found = -1
    first = 0
    every = list(_instructions(raw))
    for at, (start, end, op, arg) in enumerate(every):
        if found >= 0:
            yield first, end, found, _skip(first, every[at + 1 : at + 3])
            found = -1
        elif op in (_LOAD_GLOBAL, _LOAD_NAME):
            index = arg >> 1 if op == _LOAD_GLOBAL else arg
            if index in ours:
                found, first = index, start


def _skip(start: int, following: list[tuple[int, int, int, int]]) -> bytes:
    """Return the jump that goes where the question goes while its byte is zero; empty if none."""
    for _, end, op, arg in following:
        if op in _IF_FALSE:
            return _jump(start, end + 2 * arg * _IF_FALSE[op])
        if op in _IF_TRUE:
            return _jump(start, end)
    return b""


def _jump(start: int, target: int) -> bytes:
    op = _JUMP if target > start else _JUMP_BACK
    units = abs(target - start - 2) // 2
    if units > 0xFF:  # a prefix moves the place from which is counted
        units = abs(target - start - 4) // 2
        return bytes((_EXTENDED, units >> 8, op, units & 0xFF)) if units <= 0xFFFF else b""
    return bytes((op, units))


def _write(raw: bytearray, start: int, end: int, index: int, *, called: bool) -> None:
    """Write the load of a constant, and a jump over what is left of the room."""
    load = bytes((_LOAD_CONST, index & 0xFF))
    for shift in (8, 16, 24):
        if index >> shift:
            load = bytes((_EXTENDED, index >> shift & 0xFF)) + load
    if called:  # a function that is called has a nothing beside it
        load = load + _NOTHING if _NULL_LAST else _NOTHING + load
    left = (end - start - len(load)) // 2
    if left:
        load += bytes((_JUMP, left - 1)) + bytes((_NOP, 0)) * (left - 1)
    raw[start:end] = load


def stop_calls(code: CodeType) -> dict[int, int]:
    """Find where code calls `stop`: site to the offset of that call."""
    found: dict[int, int] = {}
    ours = {n for n, c in enumerate(code.co_consts) if getattr(c, "__name__", "") == STOP}
    waiting, number = False, -1
    for _, end, op, arg in _instructions(code.co_code) if ours else ():
        if op == _LOAD_CONST and arg in ours:
            waiting, number = True, -1
        elif waiting and op in _SMALL and number < 0:
            number = code.co_consts[arg] if op == _LOAD_CONST else arg
        elif waiting and op == _CALL:
            found[number] = end - 2 * _CALL_UNITS
            waiting = False
    return found


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Give a code object and all below it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, CodeType):
            yield from codes_of(const)
