"""Lets a running function go on in edited code, from the very place at which it stopped.

A frame is a piece of memory: its code, the instruction it is at, its variables and the values that
loops and `with` blocks keep. When Python returns into a frame, it reads all of that anew. So while
the function below waits in a call, its frame can be given other code: same place, same variables.
Everything else about it stays native: closures, `finally`, `locals()`, tracebacks.

CPython 3.11, 3.12 and 3.13; `works()` proves it on this very interpreter before it is used.
"""

from __future__ import annotations

import opcode  # now: a program that ends can import nothing any more
import sys
from ctypes import (
    PyDLL,
    c_bool,
    c_int,
    c_short,
    c_ubyte,
    c_void_p,
    cast,
    memmove,
    py_object,
    sizeof,
    string_at,
)  # fmt: skip
from types import CodeType, FrameType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Offsets in the interpreter's frame: code, function, caller, instruction, height, variables.
_LAYOUTS = {
    (3, 11): (32, 0, 48, 56, 64, 72),
    (3, 12): (0, 16, 8, 56, 64, 72),
    (3, 13): (0, 16, 8, 56, 64, 72),
}
_CODE, _FUNCTION, _CALLER, _AT, _HEIGHT, _VARIABLES = _LAYOUTS.get(
    sys.version_info[:2], _LAYOUTS[3, 13]
)
_IS_ENTRY = 68
"""In 3.11 only: the frame was entered from C."""
_OWNER, _OF_C = 70, 3
"""Since 3.12: where a frame says whose it is, and what those say by which C enters."""
_BEHIND = {(3, 11): 8, (3, 12): 6}.get(sys.version_info[:2], 0)
"""How far its pointer is behind the call in which a frame waits."""
_WARMUP = 52
"""In 3.11 only: where code counts up to zero until it is optimised, behind its flags."""
_PAIRS = (
    "LOAD_FAST__LOAD_FAST",
    "LOAD_FAST__LOAD_CONST",
    "LOAD_CONST__LOAD_FAST",
    "STORE_FAST__LOAD_FAST",
    "STORE_FAST__STORE_FAST",
)
_FRAME = 24
"""Where a frame object keeps the address of its frame."""
_CONTENTS = 16
"""Where a cell keeps its contents."""
_WORD = sizeof(c_void_p)
_BYTECODE = CodeType.__basicsize__
PADDING = 64
"""Room in each frame for what an edit brings to a running function: variables, a deeper stack."""

_api = PyDLL(None)  # our own, for types that are declared on ctypes.pythonapi are everybody's
_take = _api.Py_IncRef
_drop = _api.Py_DecRef
_new_cell = _api.PyCell_New
_take.argtypes = _drop.argtypes = _new_cell.argtypes = [c_void_p]
_take.restype = _drop.restype = None
_new_cell.restype = c_void_p


class CannotMorph(Exception):
    """This frame has to go on as it is."""


def padded(code: CodeType) -> CodeType:
    """Return code whose frames have room for variables that an edit brings, with all below it."""
    consts = tuple(padded(c) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_consts=consts, co_stacksize=code.co_stacksize + PADDING)


def _word(address: int) -> Any:
    return c_void_p.from_address(address)


def _address(frame: FrameType) -> int:
    return int(_word(id(frame) + _FRAME).value)


def function_of(frame: FrameType) -> FunctionType | None:
    """Return the function that a frame runs."""
    address = _word(_address(frame) + _FUNCTION).value
    if not address:
        return None
    found = cast(address, py_object).value
    return found if isinstance(found, FunctionType) else None


class Caller:
    """Who called a function, be it one that nobody sees."""

    def __init__(self, callee: FrameType) -> None:
        at = _word(_address(callee) + _CALLER).value
        while at and _is_of_c(at):
            at = _word(at + _CALLER).value
        self._at = at or 0
        self.code: CodeType | None = cast(_word(at + _CODE).value, py_object).value if at else None

    def variable(self, place: int) -> Any:
        """Return the value of one of its variables."""
        return cast(_word(self._at + _VARIABLES + _WORD * place).value, py_object).value


def _is_of_c(frame: int) -> bool:
    """Tell whether a frame only says that C called the interpreter."""
    return sys.version_info >= (3, 12) and c_ubyte.from_address(frame + _OWNER).value == _OF_C


def is_called_by(callee: FrameType, caller: FrameType) -> bool:
    """Tell whether Python returns straight into `caller` from what it called on the way to here.

    Then there is no C between the two.
    """
    below, at, end = 0, _address(callee), _address(caller)
    while at and at != end:
        below, at = at, _word(at + _CALLER).value
    if not at or not below or _is_of_c(below):
        return False
    return sys.version_info >= (3, 12) or not c_bool.from_address(below + _IS_ENTRY).value


def variables(code: CodeType) -> tuple[list[str], frozenset[str]]:
    """Return a frame's variables in their order, and which of them are cells."""
    names = [*code.co_varnames]
    names += [name for name in code.co_cellvars if name not in code.co_varnames]
    return [*names, *code.co_freevars], frozenset((*code.co_cellvars, *code.co_freevars))


def fits(old: CodeType, new: CodeType) -> str:
    """Say why a frame of `old` cannot go on as `new`; empty if it can."""
    if set(old.co_freevars) != set(new.co_freevars):
        return "it uses other variables of the function around it"
    kind = 0x2A0 | 0x0C  # generators, coroutines, *args and **kwargs
    if old.co_flags & kind != new.co_flags & kind:
        return "it became a generator, or is none any more"
    room = len(variables(old)[0]) + old.co_stacksize
    if len(variables(new)[0]) + new.co_stacksize - PADDING > room:
        return "too many new variables"
    return ""


def morph(frame: FrameType, new: CodeType, call: int) -> None:
    """Make a frame that waits in a call of a Python function go on after the call at `call`."""
    old = frame.f_code
    why = fits(old, new)
    if why:
        raise CannotMorph(why)
    at = _address(frame)
    instruction = _word(at + _AT)
    height = c_int.from_address(at + _HEIGHT)
    old_names, old_cells = variables(old)
    new_names, new_cells = variables(new)
    depth = height.value - len(old_names)
    if depth < 0 or _word(at + _CODE).value != id(old):
        raise CannotMorph("the frame is not where it was thought to be")
    new = new.replace(co_stacksize=len(old_names) + old.co_stacksize - len(new_names))
    warm_up(new, old)
    base = at + _VARIABLES
    values = [_word(base + _WORD * n).value for n in range(len(old_names) + depth)]
    held = dict(zip(old_names, values, strict=False))
    moved = [_moved(name, held, old_cells, new_cells) for name in new_names]
    for value in held.values():
        if value:
            _drop(value)
    for n, value in enumerate((*moved, *values[len(old_names) :])):
        _word(base + _WORD * n).value = value
    height.value = len(new_names) + depth
    _take(id(new))
    _word(at + _CODE).value = id(new)
    instruction.value = id(new) + _BYTECODE + call + _BEHIND
    _drop(id(old))


def waits_at(frame: FrameType) -> int:
    """Return the offset of the call of a Python function in which a frame waits."""
    return frame.f_lasti - _BEHIND


def _moved(
    name: str, held: dict[str, int | None], old_cells: frozenset[str], new_cells: frozenset[str]
) -> int | None:
    """Return what a variable's place holds in the new code: the value, or a cell around it."""
    was_known = name in held
    value = held.pop(name, None)
    if name in new_cells and not (was_known and name in old_cells):
        cell = _new_cell(value)
        if value:
            _drop(value)
        return int(cell)
    if was_known and name in old_cells and name not in new_cells and value:
        inner: int | None = _word(value + _CONTENTS).value
        if inner:
            _take(inner)
        _drop(value)
        return inner
    return value


def warm_up(new: CodeType, old: CodeType) -> None:
    """Let Python 3.11 optimise code as soon as the code that it stands for.

    It does so when code was used a few times; errors then point at other places in a line.
    """
    at = id(old) + _WARMUP
    if sys.version_info < (3, 12) and c_int.from_address(at - 4).value == old.co_flags:
        count = c_short.from_address(at).value
        c_short.from_address(id(new) + _WARMUP).value = min(count, -1)
        if count == 0:
            _fuse(new)


def _fuse(code: CodeType) -> None:
    """Make one instruction of two, as Python 3.11 does when it optimises; it will do the rest."""
    free = (number for number, name in enumerate(opcode.opname) if name[0] == "<")
    special = dict(zip(vars(opcode)["_specialized_instructions"], free, strict=False))
    pairs = {
        tuple(opcode.opmap[name] for name in names.split("__")): number
        for names, number in special.items()
        if names in _PAIRS
    }
    units = (c_ubyte * len(code.co_code)).from_address(id(code) + _BYTECODE)
    for at in range(0, len(units) - 2, 2):
        units[at] = pairs.get((units[at], units[at + 2]), units[at])


def show(code: CodeType, at: int, data: bytes) -> None:
    """Have `co_code` say what was rewritten: Python keeps what it answered once."""
    memmove(id(code.co_code) + bytes.__basicsize__ - 1 + at, data, len(data))


def rewrite(code: CodeType, at: int, old: bytes, new: bytes) -> bool:
    """Write instructions over others of the same length, in place; False if those are not there.

    No frame may be in the middle of them.
    """
    address = id(code) + _BYTECODE + at
    if string_at(address, len(old)) != old:
        return False
    memmove(address, new, len(new))
    return True


# --- proof


_OLD = """
def spin(stop, log):
    total = 0
    for n in range(3):
        with log:
            total += n
            stop(n)
            log.note(("old", n, total))
    return total
"""
_NEW = """
def spin(stop, log):
    total = 0
    for n in range(3):
        with log:
            total += n
            stop(n)
            more = [total * k for k in range(2)]
            peek = lambda: total
            log.note(("new", n, peek(), more, sorted(locals())))
    return total, more
"""


class _Log:
    def __init__(self) -> None:
        self.lines: list[Any] = []

    def __enter__(self) -> None:
        self.note("in")

    def __exit__(self, *_: object) -> None:
        self.note("out")

    def note(self, line: Any) -> None:
        self.lines.append(line)


def works() -> bool:
    """Edit a function while it runs, and see whether it did what it should."""
    if sys.implementation.name != "cpython" or sys.version_info[:2] not in _LAYOUTS:
        return False
    names: dict[str, Any] = {}
    codes = []
    for text in (_OLD, _NEW):
        exec(text, names)
        codes.append(padded(names["spin"].__code__))
    old, new = codes

    def stop(n: int) -> None:
        caller = sys._getframe(1)
        if n == 1:
            morph(caller, new, _calls_of(new, "stop"))

    spin = FunctionType(old, {})
    log = _Log()
    try:
        result = spin(stop, log)
    except (CannotMorph, TypeError, ValueError):
        return False
    seen: list[Any] = ["in", ("old", 0, 0), "out"]
    known = ["log", "more", "n", "peek", "stop", "total"]
    seen += ["in", ("new", 1, 1, [0, 1], known), "out", "in", ("new", 2, 3, [0, 3], known), "out"]
    return result == (3, [0, 3]) and log.lines == seen


def _calls_of(code: CodeType, name: str) -> int:
    """Find the call of a local variable."""
    import dis

    waiting = False
    for op in dis.get_instructions(code):
        if name in (op.argval if isinstance(op.argval, tuple) else (op.argval,)):
            waiting = True
        elif waiting and op.opname == "CALL":
            return op.offset
    raise CannotMorph(name)
