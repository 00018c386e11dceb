"""Objects, classes, functions and other single things on one line.

An object that nobody gave a `__repr__`, or that holds tensors or much data, is shown by its fields:
its own words would be an address, or megabytes.
"""

from __future__ import annotations

from relaunch.inside.looks.choose import hardly, in_class, inner, look_for, looks, name_of
from relaunch.inside.looks.nested import joined, named
from relaunch.inside.looks.patience import ask, is_slow
from relaunch.inside.looks.plain import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.inside.looks.choose import Above

_MUCH, _MUCH_TEXT = 1_000, 1_000_000
"""Elements and characters from which a field is too much for somebody else's `__repr__`."""
_ASKED = 64
"""Fields and elements that are looked at to see whether there is much."""
_HEAVY = {
    f"relaunch.inside.looks.{module}" for module in ("tensors", "arrays", "tables", "training")
}
_SIZED = (str, bytes, list, tuple, dict, set, frozenset)
_SLOT, _GETTER = type(slice.start), type(type.__dict__["__dict__"])
_mro = type.__dict__["__mro__"].__get__
_own = type.__dict__["__dict__"].__get__


def foreign(value: Any, room: int, above: Above) -> str:
    """Show what the object says of itself, if that is no trouble."""
    kind = type(value)
    if is_slow(kind) or (id(value) not in above and _holds_much(_parts(value))):
        return fields(value, room, above)
    said = ask(value)
    return one_line(said, room) if said is not None else fields(value, room, above)


def fields(value: Any, room: int, above: Above) -> str:
    """Show an object by its class and what it holds: `Point(x=1, y=2)`."""
    parts = _parts(value)
    if not parts:
        return hardly(type(value), room)
    shown = sorted(parts.items(), key=lambda pair: pair[0].startswith("_"))  # public names first
    return named(value, shown, len(shown), room, above)


def only_name(value: Any, room: int, above: Above) -> str:
    """Show the class of a thing that must not be looked into, as it would do its work then."""
    return hardly(type(value), room)


def dataclass(value: Any, room: int, above: Above) -> str:
    """Show a dataclass as its own `__repr__` does, without its length."""
    described = in_class(type(value), "__dataclass_fields__").values()
    parts = _parts(value)
    pairs = [(one.name, parts[one.name]) for one in described if one.repr and one.name in parts]
    return named(value, pairs, len(pairs), room, above)


def attrs(value: Any, room: int, above: Above) -> str:
    """Show a class made by attrs likewise."""
    described = in_class(type(value), "__attrs_attrs__")
    parts = _parts(value)
    pairs = [(one.name, parts[one.name]) for one in described if one.repr and one.name in parts]
    return named(value, pairs, len(pairs), room, above)


def exception(value: BaseException, room: int, above: Above) -> str:
    """Show an exception by its class and arguments; its own words may be long and slow."""
    arguments = BaseException.__dict__["args"].__get__(value)
    elements = (("", one) for one in arguments)
    around = (f"{name_of(type(value))}(", ")")
    return joined(value, elements, len(arguments), room, above, around)


def a_class(value: type, room: int, above: Above) -> str:
    """Show a class by its full name."""
    return one_line(
        f"class {_full_name(value, type.__dict__['__qualname__'].__get__(value))}", room
    )


def a_module(value: Any, room: int, above: Above) -> str:
    """Show a module by its name and file."""
    names = _parts(value)
    file = names.get("__file__")
    place = f" {file}" if type(file) is str else ""
    return one_line(f"module {names.get('__name__')}{place}", room)


def function(value: Any, room: int, above: Above) -> str:
    """Show a function by its full name and the line it begins at."""
    code = getattr(value, "__code__", None)
    place = f" line {code.co_firstlineno}" if code is not None else ""
    return one_line(f"function {_full_name(value, value.__qualname__)}{place}", room)


def method(value: Any, room: int, above: Above) -> str:
    """Show a bound method, and the class of what it is bound to."""
    name = getattr(value.__func__, "__qualname__", None) or hardly(type(value.__func__), room)
    return one_line(f"method {name} of {name_of(type(value.__self__))}", room)


def generator(value: Any, room: int, above: Above) -> str:
    """Show a generator or coroutine, and where it waits."""
    kind = type(value)
    prefix = {"coroutine": "cr", "async_generator": "ag"}.get(kind.__name__, "gi")
    frame = getattr(value, f"{prefix}_frame")
    if frame is None:
        state = "has ended"
    elif getattr(value, f"{prefix}_running"):
        state = f"runs line {frame.f_lineno}"
    elif frame.f_lasti < 0 or not getattr(value, f"{prefix}_suspended", True):
        state = "has not begun"
    else:
        state = f"waits at line {frame.f_lineno}"
    name = kind.__name__.replace("_", " ")
    return one_line(f"{name} {value.__qualname__}, {state}", room)


def partial(value: Any, room: int, above: Above) -> str:
    """Show a call that is half made."""
    elements: list[tuple[str, object]] = [("", value.func)]
    elements += [("", one) for one in value.args]
    elements += [(f"{name}=", one) for name, one in value.keywords.items()]
    around = (f"{name_of(type(value))}(", ")")
    return joined(value, elements, len(elements), room, above, around)


def an_enum(value: Any, room: int, above: Above) -> str:
    """Show a member as a program names it."""
    parts = _parts(value)
    name = parts.get("_name_")
    if type(name) is str:
        return one_line(f"{name_of(type(value))}.{name}", room)
    return f"{name_of(type(value))}({inner(parts.get('_value_'), room, above)})"


def _full_name(value: object, name: object) -> str:
    module = getattr(value, "__module__", None)
    if type(module) is not str or module in ("builtins", "__main__"):
        return str(name)
    return f"{module}.{name}"


def _parts(value: object) -> dict[str, Any]:
    """Return what an object holds by name, without running code of its class."""
    found: dict[str, Any] = {}
    for base in reversed(_mro(type(value))):
        names = _own(base)
        for name, one in names.items() if "__slots__" in names else ():
            if type(one) is _SLOT and name[:2] != "__":
                try:
                    found[name] = one.__get__(value)
                except AttributeError:  # an empty slot
                    pass
    getter = in_class(type(value), "__dict__")
    if type(getter) in (_SLOT, _GETTER):
        own = getter.__get__(value)
        if type(own) is dict:
            found.update((name, one) for name, one in own.copy().items() if type(name) is str)
    return found


def _holds_much(parts: dict[str, Any]) -> bool:
    """Tell whether there are tensors or long things among the fields or right under them."""
    return any(_is_much(one) or _has_much(one) for one in _first(parts.values()))


def _has_much(value: object) -> bool:
    if issubclass(type(value), dict):
        return any(_is_much(one) for one in _first(dict.values(value)))  # type: ignore[arg-type]
    if type(value) in (list, tuple):
        return any(_is_much(one) for one in _first(value))  # type: ignore[arg-type]
    return False


def _is_much(value: object) -> bool:
    kind = type(value)
    for base in _SIZED:
        if issubclass(kind, base):
            most = _MUCH_TEXT if base in (str, bytes) else _MUCH
            return base.__len__(value) > most  # type: ignore[arg-type]  # it is one of these
    return (looks.get(kind) or look_for(kind)).__module__ in _HEAVY


def _first(values: Iterable[object]) -> Iterable[object]:
    return (one for one, _ in zip(values, range(_ASKED), strict=False))
