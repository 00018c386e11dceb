"""Functions and classes of a failed call: by name, or by their place in the source.

Never by value where there is a source, so that a replay runs the code as it was edited since.
"""

from __future__ import annotations

import sys

from relaunch.inside.capture import rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.capture.keeper import Keeper, Reduced

_MEMBER = type(type("_", (), {"__slots__": ("x",)}).x)  # type: ignore[attr-defined]  # the slot
_NOT_MEMBERS = frozenset(
    ("__dict__", "__weakref__", "__module__", "__qualname__", "__slots__", "_abc_impl")
)
_MODULE = type(sys)


def by_name(thing: Any, module: Any, qualname: Any) -> bool:
    """Tell whether a name in a module leads to this very thing."""
    if not isinstance(module, str) or not isinstance(qualname, str):
        return False
    found: Any = sys.modules.get(module)
    if found is None or "<locals>" in qualname:
        return False
    for part in qualname.split("."):
        try:
            inner = vars(found)
        except TypeError:
            return False
        if part not in inner:
            return _inherited(thing, found, part)
        found = inner[part]
    return found is thing or getattr(found, "__func__", None) is thing


def _inherited(thing: Any, found: Any, name: str) -> bool:
    return isinstance(found, (type, _MODULE)) and getattr(found, name, None) is thing


def function(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a function."""
    if thing.__module__ == rebuild.NAME:
        return NotImplemented
    if by_name(thing, thing.__module__, thing.__qualname__):
        return rebuild.named, (thing.__module__, thing.__qualname__)
    code, names = thing.__code__, thing.__globals__
    cells: dict[str, int] = {}
    contents: dict[int, Any] = {}
    for name, cell in zip(code.co_freevars, thing.__closure__ or (), strict=False):
        cells[name] = id(cell)
        keeper.alive.append(cell)
        try:
            contents[id(cell)] = cell.cell_contents
        except ValueError:
            pass
    module = str(names.get("__name__", ""))
    is_module = getattr(sys.modules.get(module), "__dict__", None) is names
    state = (
        contents,
        thing.__defaults__,
        thing.__kwdefaults__,
        dict(thing.__dict__),
        {} if is_module else _globals_of(code, names),
    )
    file = keeper.source_of(code, names)
    if file and is_module:
        place = (module, file, code.co_qualname, where(code), thing.__name__, cells)
        return rebuild.function, place, state, None, None, rebuild.set_function
    data = _marshalled(code)
    by_value = (data, module if is_module else "", thing.__name__, cells)
    return rebuild.function_by_value, by_value, state, None, None, rebuild.set_function


def where(code: Any) -> tuple[int, int, tuple[str, ...], bytes]:
    """Say where in its file a function begins, and what tells it from others there: two lambdas
    on a line have one name.
    """
    first = code.co_firstlineno
    columns = [at for line, _, at, _ in code.co_positions() if line == first and at is not None]
    count = code.co_argcount + code.co_kwonlyargcount
    return first, min(columns, default=0), code.co_varnames[:count], code.co_code


def _marshalled(code: Any) -> bytes:
    import marshal

    return marshal.dumps(code)


def _globals_of(code: Any, names: dict[str, Any]) -> dict[str, Any]:
    """Return the globals that code without a module reads."""
    found = {name: names[name] for name in code.co_names if name in names}
    for const in code.co_consts:
        if type(const) is type(code):
            found |= _globals_of(const, names)
    return found


def a_class(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a class."""
    if by_name(thing, thing.__module__, thing.__qualname__):
        if thing.__module__ == "builtins":
            return NotImplemented
        return rebuild.named, (thing.__module__, thing.__qualname__)
    if thing.__module__ in ("builtins", "types") or thing is type(None):
        return NotImplemented  # pickle knows NoneType, NotImplementedType and ellipsis itself
    begin = {"__module__": thing.__module__, "__qualname__": thing.__qualname__}
    members = dict(vars(thing))
    if "__slots__" in members:
        begin["__slots__"] = members["__slots__"]
    kept = {
        name: value
        for name, value in members.items()
        if name not in _NOT_MEMBERS and type(value) is not _MEMBER
    }
    args = (type(thing), thing.__name__, thing.__bases__, begin)
    return rebuild.new_class, args, kept, None, None, rebuild.set_class


def generator(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a generator or coroutine: one that has not begun is made anew, others are named."""
    prefix = next(p for p in ("gi", "cr", "ag") if hasattr(thing, f"{p}_frame"))
    frame, code = getattr(thing, f"{prefix}_frame"), getattr(thing, f"{prefix}_code")
    word = {"gi": "generator", "cr": "coroutine", "ag": "async generator"}[prefix]
    if frame is None:
        return keeper.missing(thing, f"{word} {code.co_qualname}, which had ended")
    if not getattr(thing, f"{prefix}_suspended", False) and not getattr(thing, f"{prefix}_running"):
        function = _function_of(code, frame)
        if function is not None:
            values = dict(frame.f_locals)
            return rebuild.started, (function, values)
    what = f"{word} {code.co_qualname}, stopped at line {frame.f_lineno}"
    return keeper.missing(thing, what)


def _function_of(code: Any, frame: Any) -> Any:
    """Find the function whose code this is, by name."""
    found = frame.f_globals
    for part in code.co_qualname.split("."):
        found = found.get(part) if isinstance(found, dict) else vars(found).get(part)
        found = getattr(found, "__func__", found)
        if found is None:
            return None
    for _ in range(10):
        if getattr(found, "__code__", None) is code:
            return found
        found = getattr(found, "__wrapped__", None)
    return None
