"""Makes a kept frame callable again: the whole function with its arguments, or one statement."""

from __future__ import annotations

import types

from relaunch.inside.capture.rebuild import Missing
from relaunch.inside.replay import statement

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType
    from typing import Any

    from relaunch.inside.replay.edits import Edits
    from relaunch.inside.replay.loaded import Capture

_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


class Unready(Exception):
    """A frame cannot be replayed; says why."""


def ready(capture: Capture, number: int, how: str, edits: dict[str, Edits]) -> Callable[[], Any]:
    """Return what runs the frame, all that it needs loaded; `how` is `call` or `statement`."""
    frame = capture.facts["frames"][number]
    if not frame["kept"]:
        raise Unready("its variables were not kept")
    module = capture.module(frame["module"])
    capture.set_globals(edits)
    source = capture.source(frame["file"])
    line = capture.line_now(frame["file"], frame["line"])
    if frame["kind"] == "module":
        code = statement.module_code(source, line)
        return lambda: exec(code, vars(module))
    variables = capture.variables(number)
    if how == "statement":
        first = capture.line_now(frame["file"], frame["first"])
        code = statement.function_code(source, frame, first, line, [*variables])
        values = {name: variables[name] for name in _parameters(code) if name in variables}
        return _running(_function(code, vars(module), variables, None), [], values)
    code = _current(capture, frame)
    function = _function(code, vars(module), variables, _defaults(module, frame["qualname"], code))
    return _running(function, *_arguments(code, frame, variables, function))


def _current(capture: Capture, frame: dict[str, Any]) -> CodeType:
    code = capture.code(frame["file"], frame["qualname"], frame["first"])
    if code is None:
        raise Unready(f"{frame['qualname']} is no longer in {frame['file']}")
    return code


def _function(code: CodeType, names: dict[str, Any], variables: dict[str, Any], like: Any) -> Any:
    cells = tuple(
        types.CellType(variables[name]) if name in variables else types.CellType()
        for name in code.co_freevars
    )
    made = types.FunctionType(code, names, code.co_name, getattr(like, "__defaults__", None), cells)
    made.__kwdefaults__ = getattr(like, "__kwdefaults__", None)
    return made


def _defaults(module: Any, qualname: str, code: CodeType) -> Any:
    """Find the function itself, for the defaults of arguments that it did not have then."""
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    for _ in range(10):
        if getattr(getattr(found, "__code__", None), "co_qualname", "") == code.co_qualname:
            return found
        found = getattr(found, "__wrapped__", None)
    return None


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _arguments(
    code: CodeType, frame: dict[str, Any], variables: dict[str, Any], function: Any
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as the function takes them now."""
    count = code.co_argcount
    names, positional = code.co_varnames, []
    optional = count - len(function.__defaults__ or ())
    for number, name in enumerate(names[:count]):
        if name in variables:
            positional.append(variables[name])
        elif name in frame["lost"]:
            raise Unready(f"its argument `{name}` was deleted before it failed")
        elif number < optional:
            raise Unready(f"it has a new argument, `{name}`")
        else:
            break
    keywords = {name: variables[name] for name in _parameters(code)[count:] if name in variables}
    if code.co_flags & 4 and len(positional) == count:
        positional += variables.get(frame["star"], ())
    if code.co_flags & 8:
        keywords |= variables.get(frame["stars"], {})
    if frame["name"] == "__init__" and positional:
        positional[0] = _blank(positional[0])
    return positional, keywords


def _blank(made: Any) -> Any:
    """Return an object of the same class before its `__init__`."""
    if isinstance(made, Missing):
        return made
    kind = type(made)
    try:
        return kind.__new__(kind)  # type: ignore[call-overload]  # any class
    except TypeError:
        return made


def _running(function: Any, positional: list[Any], keywords: dict[str, Any]) -> Callable[[], Any]:
    flags = function.__code__.co_flags

    def run() -> Any:
        made = function(*positional, **keywords)
        if flags & _COROUTINE:
            return _loop().run(made)
        if flags & _ASYNC_GENERATOR:
            return _loop().run(_exhausted(made))
        if flags & _GENERATOR:
            for _ in made:
                pass
        return made

    return run


def _loop() -> Any:
    import asyncio

    return asyncio


async def _exhausted(made: Any) -> None:
    async for _ in made:
        pass
