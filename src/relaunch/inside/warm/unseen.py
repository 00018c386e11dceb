"""Keeps our own functions out of the program's sight.

Python leaves a frame out wherever it shows frames (tracebacks, `f_back`, `sys._getframe`, what a
handler of a signal gets, tracing) as long as the function has not come to the first `RESUME` of its
code: it has not begun. So ours have that instruction as their very last, where they never come to.
At their entry, Python looks for no signals then either.

Who traces or profiles would hear how they end, though: Python tells of that without a look at where
they are. Once somebody does, they therefore begin with a shelter: no thread that is told to be
traced already tells of anything, and what tells it so is let go together with their variables, when
they are over.

CPython 3.11, 3.12 and 3.13; `works()` proves it on this very interpreter before it is used.
"""

from __future__ import annotations

import sys
from ctypes import c_void_p, pythonapi
from functools import partial
from opcode import opmap
from types import CodeType, FunctionType

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

FORM = b"rl unseen 2"
"""To be counted up when `unseen` makes other code than before: what it made is kept."""
_RESUME, _NOP = opmap["RESUME"], opmap["NOP"]
_GENERATORS = 0x2A0
_IS_FUNCTION = 0x2
_NOWHERE = b"\xf8"
"""In a table of lines: one instruction that belongs to no line."""
_OURS = __file__.rpartition("/")[0] + "/"


def unseen(code: CodeType) -> CodeType:
    """Return code whose functions nobody sees; generators, and the code around them, are seen."""
    consts = code.co_consts
    if any(isinstance(one, CodeType) for one in consts):
        consts = tuple(unseen(one) if isinstance(one, CodeType) else one for one in consts)
    if not code.co_flags & _IS_FUNCTION or code.co_flags & _GENERATORS:
        return code.replace(co_consts=consts)
    return never_begun(code.replace(co_consts=consts))


def never_begun(code: CodeType) -> CodeType:
    """Return code whose frames seem not to have begun, wherever in it they are."""
    instructions = bytearray(code.co_code)
    at = instructions[::2].index(_RESUME) * 2
    instructions[at : at + 2] = bytes((_NOP, 0))
    instructions += bytes((_RESUME, 0))
    return code.replace(
        co_code=bytes(instructions),
        co_linetable=code.co_linetable + _NOWHERE,
    )


def user(frame: FrameType) -> FrameType:
    """Return the innermost frame that is not of ours: this one, if ours are not seen."""
    while frame.f_code.co_filename.startswith(_OURS) and frame.f_back is not None:
        frame = frame.f_back
    return frame


# --- from who traces

_IS_WATCHED, _SHELTER, _ENTER = "__rl_watched__", "__rl_shelter__", "__rl_enter__"
_thread = pythonapi.PyThreadState_Get
_tell_nothing = pythonapi.PyThreadState_EnterTracing
_tell_again = pythonapi.PyThreadState_LeaveTracing
_thread.restype = c_void_p
_tell_nothing.argtypes = _tell_again.argtypes = [c_void_p]
_shelters: dict[int, type] = {}
_watched: list[bool] = []
"""Has something as soon as somebody traces."""


def sheltered(tree: ast.Module) -> ast.Module:
    """Have the functions of a module of ours begin with a shelter, where somebody traces."""
    import ast

    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef) and not _is_generator(one):
            (line,) = ast.parse(f"if {_IS_WATCHED}: {_SHELTER} = {_ENTER}()").body
            for part in ast.walk(line):
                ast.copy_location(part, one.body[0])
            one.body.insert(ast.get_docstring(one, clean=False) is not None, line)
    return tree


def _is_generator(function: ast.FunctionDef) -> bool:
    """Tell whether it yields: it would be sheltered while it waits."""
    import ast

    todo: list[ast.AST] = [*function.body]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(one, ast.FunctionDef | ast.Lambda | ast.GeneratorExp):
            todo += ast.iter_child_nodes(one)
    return False


def names() -> dict[str, Any]:
    """Return what sheltered functions look for among their builtins."""
    return {_IS_WATCHED: _watched, _ENTER: _enter}


def shelter() -> None:
    """Somebody traces, from now on."""
    _watched[:] = [True]


def _enter() -> object:
    """Have nothing told of this thread until what is returned is let go."""
    thread = _thread()
    if thread not in _shelters:
        ends = staticmethod(partial(_tell_again, thread))
        _shelters[thread] = type("Shelter", (), {"__slots__": (), "__del__": ends})
    _tell_nothing(thread)
    return _shelters[thread]()


def in_sight(call: Callable[..., Any], *args: Any) -> Any:
    """Call for a sheltered function what is not ours: that is traced."""
    if not _watched:
        return call(*args)
    thread = _thread()
    _tell_again(thread)
    try:
        return call(*args)
    finally:
        _tell_nothing(thread)


for _one in (user, shelter, _enter, in_sight):  # this file is loaded before it can be used
    _one.__code__ = unseen(_one.__code__)


# --- proof


def _passing(call: Any, *args: Any) -> Any:
    found = [sys._getframe(1).f_code, [call(one) for one in args]]
    return found[::-1]


def _failing(call: Any) -> None:
    try:
        call()
    finally:
        call = None


def _looking(_: int) -> Any:
    back = sys._getframe().f_back
    return back and back.f_code, sys._getframe(1).f_code


def _names(error: BaseException) -> list[str]:
    """List the functions in a traceback."""
    found = []
    trace = error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return found


def works() -> bool:
    """Call through functions that nobody should see, and look for them; keeps no frame."""
    passing, failing = (
        FunctionType(unseen(one.__code__), globals()) for one in (_passing, _failing)
    )
    here = works.__code__
    try:
        ((back, direct),), caller = passing(_looking, 0)
        if any(one is not here for one in (back, direct, caller)):
            return False
        failing(lambda: opmap[""])
    except KeyError as error:
        return _names(error) == ["works", "<lambda>"]
    except (TypeError, ValueError):
        pass
    return False
