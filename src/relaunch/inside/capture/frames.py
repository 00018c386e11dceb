"""Chooses the frames of a traceback that are worth keeping, and reads what each of them holds."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FrameType, TracebackType
    from typing import Any

    from relaunch.inside.capture.own import Own

OUTERMOST, INNERMOST = 10, 20
"""So many frames are kept at each end of a deep traceback."""
_VARARGS, _VARKEYWORDS, _OPTIMIZED = 4, 8, 1
_MOST_CODES = 3000
_FUNCTION = type(lambda: 0)
_CODE = type((lambda: 0).__code__)
_MODULE = type(sys)
_METHOD = type(len)
_NOT_DATA = (_FUNCTION, _MODULE, _METHOD, type)
_STORES = ("STORE_FAST", "DELETE_FAST", "STORE_DEREF", "DELETE_DEREF")
_PAIRS = {"STORE_FAST_STORE_FAST": (4, 0), "STORE_FAST_LOAD_FAST": (4,)}


class Kept:
    """One frame that is kept: where it stood, and its variables."""

    def __init__(self, frame: FrameType, line: int, depth: int) -> None:
        """Read the frame; `line` is where the exception passed, as the `depth`-th frame of all."""
        code = frame.f_code
        self.depth = depth
        self.frame, self.code, self.line = frame, code, line
        self.globals = frame.f_globals
        self.module = str(frame.f_globals.get("__name__", ""))
        self.file = file_of(code.co_filename, frame.f_globals)
        self.is_module = code.co_name == "<module>"
        self.variables = {} if self.is_module else _variables(frame)

    @property
    def kind(self) -> str:
        """Say what can be done with it: `function`s are called, of the rest only a statement."""
        if self.is_module:
            return "module"
        if not self.code.co_flags & _OPTIMIZED:
            return "class"
        inner = self.code.co_name.startswith("<") and self.code.co_name != "<lambda>"
        return "expression" if inner else "function"

    def facts(self) -> dict[str, Any]:
        """Return what a replay needs to know besides the values."""
        code = self.code
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames
        at = count + bool(code.co_flags & _VARARGS)
        arguments = names[: at + bool(code.co_flags & _VARKEYWORDS)]
        rebound = _rebound(code)
        return {
            "depth": self.depth,
            "file": self.file,
            "name": code.co_name,
            "qualname": code.co_qualname,
            "first": code.co_firstlineno,
            "line": self.line,
            "module": self.module,
            "kind": self.kind,
            "flags": code.co_flags,
            "positional": list(names[: code.co_argcount]),
            "keywords": list(names[code.co_argcount : count]),
            "star": names[count] if code.co_flags & _VARARGS else "",
            "stars": names[at] if code.co_flags & _VARKEYWORDS else "",
            "free": list(code.co_freevars),
            "rebound": [name for name in arguments if name in rebound],
            "lost": [name for name in arguments if name not in self.variables],
        }


def _variables(frame: FrameType) -> dict[str, Any]:
    try:
        return dict(frame.f_locals)
    except Exception:  # a class body may have a mapping of the user's for them
        return {}


def chosen(tb: TracebackType | None, own: Own) -> list[Kept]:
    """Return the frames of the user's code, outermost first; of a library's if there is none."""
    mine: list[tuple[FrameType, int, int]] = []
    others: list[tuple[FrameType, int, int]] = []
    depth = 0
    while tb is not None:
        file = file_of(tb.tb_frame.f_code.co_filename, tb.tb_frame.f_globals)
        (mine if own.has(file) else others).append((tb.tb_frame, tb.tb_lineno, depth))
        depth, tb = depth + 1, tb.tb_next
    found = mine or [one for one in others if one[0].f_code.co_filename[:1] != "<"]
    if len(found) > OUTERMOST + INNERMOST:
        found = found[:OUTERMOST] + found[-INNERMOST:]
    return [Kept(frame, line, at) for frame, line, at in found]


def depth_of(tb: TracebackType | None) -> int:
    """Count the frames of a traceback."""
    count = 0
    while tb is not None:
        count, tb = count + 1, tb.tb_next
    return count


def file_of(name: str, names: dict[str, Any]) -> str:
    """Return the path of a code's file; one that the program gave as a relative path, as well."""
    if name[:1] in ("/", "<"):
        return name
    own = names.get("__file__")
    if isinstance(own, str) and own[:1] == "/" and own.endswith(name.lstrip("./")):
        return own
    try:
        return f"{sys.modules['posix'].getcwd()}/{name}"
    except OSError:
        return name


def _rebound(code: CodeType) -> set[str]:
    """Name the variables that the code assigns or deletes: they may not be as they were passed."""
    opmap = _opmap()
    single = {opmap[name] for name in _STORES if name in opmap}
    pairs = {opmap[name]: shifts for name, shifts in _PAIRS.items() if name in opmap}
    name_of = code._varname_from_oparg  # type: ignore[attr-defined]  # 3.11 and later
    found = set()
    for op, arg in _instructions(code.co_code, opmap.get("EXTENDED_ARG", -1)):
        if op in single:
            found.add(name_of(arg))
        elif op in pairs:
            found.update(name_of(arg >> shift & 15) for shift in pairs[op])
    return found


def _opmap() -> dict[str, int]:
    import opcode

    return dict(getattr(opcode, "opmap", {}))


def _instructions(code: bytes, extended: int) -> Iterator[tuple[int, int]]:
    more = 0
    for at in range(0, len(code), 2):
        arg = code[at + 1] | more
        more = arg << 8 if code[at] == extended else 0
        yield code[at], arg


# --- globals


def globals_read(frames: list[Kept], own: Own) -> dict[tuple[str, str], Any]:
    """Return the data in modules of the user that the frames may read, and what they may call.

    Functions, classes and modules are none of it: a replay takes them from the source.
    """
    found: dict[tuple[str, str], Any] = {}
    todo = [(kept.code, kept.globals) for kept in reversed(frames)]
    for kept in frames:  # what an object's own methods read
        todo += [pair for value in kept.variables.values() for pair in _methods(type(value), own)]
    seen: set[CodeType] = set()
    while todo and len(seen) < _MOST_CODES:
        code, names = todo.pop(0)
        if code in seen:
            continue
        seen.add(code)
        todo += [(const, names) for const in code.co_consts if type(const) is _CODE]
        for name in code.co_names:
            if name in names:
                todo += _look_at(name, names, code, own, found)
    return found


def _look_at(
    name: str, names: dict[str, Any], code: CodeType, own: Own, found: dict[tuple[str, str], Any]
) -> list[tuple[CodeType, dict[str, Any]]]:
    """Note a global if it is data; return the code behind it if it is code of the user."""
    value = names[name]
    if isinstance(value, _MODULE):
        if not own.has_module(value):
            return []
        inner = vars(value)
        below = [one for one in code.co_names if one in inner and inner[one] is not value]
        return [
            pair
            for one in below
            if not isinstance(inner[one], _MODULE)
            for pair in _look_at(one, inner, code, own, found)
        ]
    if isinstance(value, type):
        return _methods(value, own)
    wrapped = value
    for _ in range(10):
        if isinstance(wrapped, _FUNCTION) or not hasattr(wrapped, "__wrapped__"):
            break
        wrapped = wrapped.__wrapped__
    if isinstance(wrapped, _FUNCTION):
        return _code_of(wrapped, own)
    module = str(names.get("__name__", ""))
    is_module = getattr(sys.modules.get(module), "__dict__", None) is names
    if is_module and not name.startswith("__") and not isinstance(value, _NOT_DATA):
        found.setdefault((module, name), value)
    return _methods(type(value), own)


def _methods(kind: type, own: Own) -> list[tuple[CodeType, dict[str, Any]]]:
    """Return the code of a class of the user, and of those that it inherits from."""
    found = []
    for base in kind.__mro__ if kind.__module__ != "builtins" else ():
        if not own.has_module(sys.modules.get(base.__module__)):
            continue
        for member in list(vars(base).values()):
            member = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(member, _FUNCTION):
                found += _code_of(member, own)
    return found


def _code_of(function: Any, own: Own) -> list[tuple[CodeType, dict[str, Any]]]:
    """Return the code of a function of the user, and of the functions that it closes over."""
    found = []
    names = function.__globals__
    if own.has(file_of(function.__code__.co_filename, names)):
        found.append((function.__code__, names))
    for cell in function.__closure__ or ():
        try:
            inner = cell.cell_contents
        except ValueError:
            continue
        if isinstance(inner, _FUNCTION) and inner is not function:
            found.append((inner.__code__, inner.__globals__))
    return found
