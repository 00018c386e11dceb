"""Which look a value gets, by its type; chosen once per type."""

from __future__ import annotations

from relaunch.inside.looks.plain import cut, integer, one_line, raw, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Above = tuple[int, ...]
    """The ids of the containers that a value is in."""
    Look = Callable[[Any, int, Above], str]
    """Takes a value, the room for its text, and what it is in."""

KINDS = 512
"""Types whose look is remembered; a program may make types without end."""
_mro = type.__dict__["__mro__"].__get__
_own = type.__dict__["__dict__"].__get__
_title = type.__dict__["__name__"].__get__
_module = type.__dict__["__module__"].__get__
_FUNCTION = type(cut)

_LIBRARIES: dict[str, dict[str, tuple[str, str]]] = {
    "torch": {
        "Tensor": ("tensors", "tensor"),
        "Size": ("nested", "sequence"),
        "Module": ("training", "module"),
        "Optimizer": ("training", "optimizer"),
        "DataLoader": ("training", "loader"),
    },
    "numpy": {
        "MaskedArray": ("arrays", "masked"),
        "ndarray": ("arrays", "array"),
        "generic": ("arrays", "scalar"),
    },
    "jaxlib": {"ArrayImpl": ("arrays", "jax_array")},
    "scipy": {"_spbase": ("arrays", "sparse"), "spmatrix": ("arrays", "sparse")},
    "pandas": {
        "DataFrame": ("tables", "frame"),
        "Series": ("tables", "column"),
        "Index": ("tables", "column"),
    },
    "polars": {
        "DataFrame": ("tables", "polars_frame"),
        "Series": ("tables", "polars_column"),
        "LazyFrame": ("objects", "only_name"),
    },
}
"""By library and name of a class: the module here and the function that shows it."""
_STANDARD: dict[str, dict[str, tuple[str, str]]] = {
    "builtins": {
        "type": ("objects", "a_class"),
        "BaseException": ("objects", "exception"),
        "dict": ("nested", "mapping"),
        "mappingproxy": ("nested", "mapping"),
        "tuple": ("nested", "sequence"),
        "list": ("nested", "sequence"),
        "set": ("nested", "a_set"),
        "frozenset": ("nested", "a_set"),
        "dict_keys": ("nested", "sequence"),
        "dict_values": ("nested", "sequence"),
        "dict_items": ("nested", "sequence"),
        "module": ("objects", "a_module"),
        "function": ("objects", "function"),
        "builtin_function_or_method": ("objects", "function"),
        "method": ("objects", "method"),
        "generator": ("objects", "generator"),
        "coroutine": ("objects", "generator"),
        "async_generator": ("objects", "generator"),
    },
    "collections": {"deque": ("nested", "sequence"), "OrderedDict": ("nested", "mapping")},
    "array": {"array": ("nested", "sequence")},
    "enum": {"Enum": ("objects", "an_enum")},
    "types": {"SimpleNamespace": ("objects", "fields")},
    "argparse": {"Namespace": ("objects", "fields")},
    "functools": {"partial": ("objects", "partial")},
}
"""Likewise in Python itself; `builtins.type` stands for every class."""


def inner(value: object, room: int, above: Above) -> str:
    """Show a value that is inside others."""
    kind = type(value)
    try:
        found = (looks.get(kind) or look_for(kind))(value, room, above)
        return found if len(found) <= room else cut(found, room)
    except Exception:
        return hardly(kind, room)


def hardly(kind: type, room: int) -> str:
    """Say the type, when not even its look could be taken."""
    return cut(f"<{name_of(kind)}>", room)


def name_of(kind: type) -> str:
    """Return the name of a class, whatever its metaclass does."""
    try:
        return one_line(_title(kind), 80)
    except Exception:
        return "?"


def look_for(kind: type) -> Look:
    """Choose the look of a type that is seen for the first time."""
    look = _chosen(kind)
    if len(looks) >= KINDS:
        looks.clear()
        looks.update(_PLAIN)
    looks[kind] = look
    return look


def in_class(kind: type, name: str) -> Any:
    """Return what a class or its bases have under this name, without asking anybody; or None."""
    for base in _mro(kind):
        names = _own(base)
        if name in names:
            return names[name]
    return None


def _chosen(kind: type) -> Look:
    bases = _mro(kind)
    for table in (_LIBRARIES, _STANDARD):
        for base in bases:
            module = _module(base)
            if type(module) is str:
                found = table.get(module.partition(".")[0], {}).get(_title(base))
                if found is not None:
                    return _load(*found)
    if type(in_class(kind, "__repr__")) is not _FUNCTION:
        for base in bases:
            if base in _PLAIN:
                return _PLAIN[base]
    return _load(*_by_parts(kind))


def _by_parts(kind: type) -> tuple[str, str]:
    """Choose for a class that is known by what it has."""
    written = in_class(kind, "__repr__")
    if in_class(kind, "__dataclass_fields__") is not None and _generated(written):
        return "objects", "dataclass"
    if in_class(kind, "__attrs_attrs__") is not None and _generated(written):
        return "objects", "attrs"
    if in_class(kind, "shape") is not None and in_class(kind, "dtype") is not None:
        return "arrays", "like_array"
    return "objects", "fields" if written is object.__repr__ else "foreign"


def _generated(method: object) -> bool:
    """Tell whether a method was made by a decorator, not written by a person."""
    code = getattr(getattr(method, "__wrapped__", method), "__code__", None)
    return getattr(code, "co_filename", "").startswith(("<string>", "<attrs generated"))


def _load(module: str, name: str) -> Look:
    """Take a look from its module, which is read when it is first needed."""
    found = __import__(f"relaunch.inside.looks.{module}", fromlist=(name,))
    look: Look = getattr(found, name)
    return look


_PLAIN: dict[type, Look] = {
    int: integer,
    float: lambda value, *_: float.__repr__(value),
    str: text,
    bytes: raw,
    bytearray: raw,
    bool: lambda value, *_: "True" if value else "False",
    complex: lambda value, *_: complex.__repr__(value),
    type(None): lambda *_: "None",
}
looks: dict[type, Look] = dict(_PLAIN)
"""The look of each type seen so far."""
