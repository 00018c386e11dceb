"""What the bytecode of a call tells: whether a source text still fits, or without one, a text."""

from __future__ import annotations

import os
import sys

from relaunch.inside.label.rebuild import CALLS, rebuilt, unmangled
from relaunch.inside.label.written import unescaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from relaunch.inside.label.written import Call, Place

    Step = tuple[str, Any]
    """What an instruction does, in words that do not depend on where a variable is kept."""

_SILENT = {
    "CACHE", "RESUME", "PUSH_NULL", "PRECALL", "NOP", "EXTENDED_ARG", "MAKE_CELL",
    "COPY_FREE_VARS", "RETURN_GENERATOR", "KW_NAMES",
}  # fmt: skip
"""Instructions that do not say what is computed."""
_WAYS = ("jump", "COPY", "TO_BOOL", "POP_TOP", "RETURN_VALUE", "RETURN_CONST")
_NONE = ("const", (type(None), "None"))
"""Steps that choose a way or end it; a function ends with None."""
_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_CODE = type((lambda: None).__code__)


def fits(code: CodeType, at: int, place: Place, text: str, call: Call) -> bool:
    """Tell whether the call at this instruction does what the text says."""
    if call.is_odd:
        return True  # to compile it again might make Python warn again
    plain = "\\" not in text
    try:
        known = list(_dis().get_instructions(code))
        real = _behind(_steps(_up_to(known, at, place), plain), call)
        made = _behind(_steps(_made(text if plain else unescaped(text)), plain), call)
    except Exception:
        return True  # nothing speaks against it
    if real == made or _is_rewritten(code, real):
        return True
    # A branch may end in a call of its own, and what an inner scope takes from around it is spelled
    # in many ways: then all that is spoken of must be there, somewhere.
    around = _steps([one for one in known if _is_inside(one.positions, place)], plain)
    if call.has_scope:
        return _names(made) <= _names(around)
    said = {one for one in made if one[0] not in _WAYS and one != _NONE}
    return call.has_branch and said <= {*around}


def _is_rewritten(code: CodeType, steps: list[Step]) -> bool:
    """Tell code of pytest's `assert` and of torch.compile: it cannot be compared, but is right."""
    if any(kind == "load" and name[0] == "@" for kind, name in steps):
        return True
    compiled = ("__compiled_fn", "__resume_at")
    return code.co_name.startswith("torch_dynamo") or any(
        name.startswith(compiled) for name in code.co_names
    )


def order_of(code: CodeType, at: int, place: Place, name: str) -> int:
    """Return how many calls of that name are made at one place before this one."""
    same = [one for one in _dis().get_instructions(code) if one.offset <= at]
    loads = [_steps([one]) for one in same if tuple(one.positions or ()) == place]
    return max(0, loads.count([("load", name)]) + loads.count([("attr", name)]) - 1)


def built(code: CodeType, at: int, place: Place) -> tuple[str, list[str]]:
    """Return who is called and the arguments, put together from the instructions."""
    found = _up_to(list(_dis().get_instructions(code)), at, place)
    return rebuilt(found, code.co_consts)


def _dis() -> Any:
    """Return `dis` of the standard library, never a file of the user of that name."""
    found = sys.modules.get("dis")
    if found is None:
        finder: Any = sys.modules["_frozen_importlib_external"]
        for name in ("dis", "opcode"):
            spec = finder.PathFinder.find_spec(name)
            if spec is None or not str(spec.origin).startswith(os.path.dirname(os.__file__)):
                raise ImportError(name)
        import dis as found
    return found


def _up_to(known: list[Any], at: int, place: Place) -> list[Any]:
    """List the instructions of the expression at a place, up to the one that calls."""
    found = [one for one in known if one.offset <= at]
    start = len(found)
    while start and _is_inside(found[start - 1].positions, place):
        start -= 1
    return found[start:]


def _is_inside(one: Any, place: Place) -> bool:
    first, last, start, end = place
    if one is None or one.lineno is None:
        return True
    if start is None or one.col_offset is None:
        return bool(one.lineno == first)
    begins, ends = (one.lineno, one.col_offset), (one.end_lineno, one.end_col_offset)
    return (first, start) <= begins and ends <= (last, end)


def _made(text: str) -> list[Any]:
    """Return the instructions of a text, up to its last call."""
    try:
        code = compile(f"def made():\n (\n{text}\n)", "<peek>", "exec", dont_inherit=True)
    except SyntaxError:  # it waits for something
        code = compile(f"async def made():\n (\n{text}\n)", "<peek>", "exec", dont_inherit=True)
    inner = next(one for one in code.co_consts if type(one) is _CODE)
    found = list(_dis().get_instructions(inner))
    last = max(at for at, one in enumerate(found) if one.opname in CALLS)
    return found[: last + 1]


def _steps(found: list[Any], plain: bool = True) -> list[Step]:
    """Tell what instructions do; constants by their types alone if the text is not `plain`."""
    steps: list[Step] = []
    for one in found:
        name, value = one.opname, one.argval
        if name in _SILENT:
            continue
        if name in _ATTRIBUTES:
            steps.append(("attr", unmangled(value)))
        elif name == "LOAD_CONST":
            is_code = type(value) is _CODE
            constant = (type(value), repr(value) if plain or value is None else "")
            steps.append(("code", value) if is_code else ("const", constant))
        elif name.startswith(("LOAD_", "STORE_")) and type(value) in (str, tuple):
            steps += _of_names(name, value if type(value) is tuple else (value,))
        elif "JUMP" in name:
            steps.append(("jump", None))
        else:
            steps.append((name, "" if one.argrepr.startswith("to ") else one.argrepr))
    return steps


def _of_names(name: str, names: tuple[str, ...]) -> list[Step]:
    """Tell what is loaded and stored; two at once is a thing of 3.13."""
    does = ["load" if word == "LOAD" else "store" for word in name.split("_") if word in _WORDS]
    does += does[-1:] * (len(names) - len(does))
    return [(one, unmangled(each)) for one, each in zip(does, names, strict=False)]


_WORDS = ("LOAD", "STORE")


def _behind(steps: list[Step], call: Call) -> list[Step]:
    """Return what comes after the function is loaded."""
    name = unmangled(call.callee[-1]) if call.callee else None
    for at, one in enumerate(steps):
        if one[0] in ("load", "attr") and one[1] == name:
            return steps[at + 1 :]
    return steps


def _names(steps: list[Step]) -> set[str]:
    """Return all names that are spoken of, in inner scopes too."""
    found: set[str] = set()
    for kind, value in steps:
        if kind in ("load", "store", "attr"):
            found.add(value)
        elif kind == "code":
            found |= _names_of(value)
    return found


def _names_of(code: CodeType) -> set[str]:
    found = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    for one in code.co_consts:
        if type(one) is _CODE:
            found |= _names_of(one)
    return {unmangled(one) for one in found}
