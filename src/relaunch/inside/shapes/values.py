"""What a value is, as far as shapes go: a whole number, an array of a shape, or several arrays.

Known by its type alone; nothing is read but the shape, so nothing is computed, waited for or
recorded in a graph. Not a line of a stranger's code is run.
"""

from __future__ import annotations

import sys

from relaunch.inside.looks.choose import in_class, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Spec = Any
    """A whole number; a shape as a tuple; ("list", shape, ...), ("tuple", ...) or
    ("dict", (key, shape), ...); the name of a type for all else."""

MANY = 64
"""So many elements of a list are looked at; a longer one is no list of arrays."""
_KEYS = 16
_KINDS = 1024
_mro = type.__dict__["__mro__"].__get__
_module = type.__dict__["__module__"].__get__
_title = type.__dict__["__name__"].__get__
_LIBRARIES = {
    "numpy": ("ndarray", "generic"),
    "jax": ("Tracer",),
    "jaxlib": ("ArrayImpl",),
    "tensorflow": ("Tensor", "Variable"),
}


def spec_of(value: object) -> Spec:
    """Return what a value is."""
    kind = type(value)
    return (_readers.get(kind) or _reader_for(kind))(value)


def is_shape(spec: Spec) -> bool:
    """Tell the shape of one array from all else."""
    return type(spec) is tuple and not (spec and type(spec[0]) is str)


def has_arrays(spec: Spec) -> bool:
    """Tell whether there is an array in it."""
    return type(spec) is tuple


def _reader_for(kind: type) -> Callable[[Any], Spec]:
    """Choose how a type is read that is seen for the first time."""
    reader = _chosen(kind)
    if len(_readers) >= _KINDS:
        _readers.clear()
        _readers.update(_PLAIN)
    _readers[kind] = reader
    return reader


def _chosen(kind: type) -> Callable[[Any], Spec]:
    for base in _mro(kind):
        module = _module(base)
        library = module.partition(".")[0] if type(module) is str else ""
        if library == "torch" and _title(base) == "Tensor":
            return _tensor_reader(kind)
        if _title(base) in _LIBRARIES.get(library, ()):
            return _array
        if base is list:
            return lambda value: _several("list", list.__iter__(value), list.__len__(value))
        if base is tuple:
            return lambda value: _several("tuple", tuple.__iter__(value), tuple.__len__(value))
        if base is dict:
            return _mapping
    if _has(kind, "shape") and _has(kind, "dtype"):
        return _array
    name = name_of(kind)
    if in_class(kind, "__dict__") is None:
        return lambda value: name
    return lambda value: _instance(value, name)


def _has(kind: type, name: str) -> bool:
    found = in_class(kind, name)
    return found is not None and not callable(found)


def _instance(value: Any, name: str) -> Spec:
    """Read an array that has its shape as plain data of its own; others have none."""
    own = object.__getattribute__(value, "__dict__")
    if "shape" in own and ("dtype" in own or in_class(type(value), "dtype") is not None):
        return _plain(own["shape"])
    return name


def _array(value: Any) -> Spec:
    try:
        return _plain(value.shape)
    except Exception:  # it is being made, or has none
        return name_of(type(value))


def _plain(shape: Any) -> Spec:
    """Return a shape as a tuple; a side that is no plain number, as of a symbol, is None."""
    return tuple([one if type(one) is int else None for one in shape])


def _tensor_reader(kind: type) -> Callable[[Any], Spec]:
    torch: Any = sys.modules["torch"]
    native: Any = torch._C
    tracing = getattr(native, "_get_tracing_state", lambda: None)
    watching = getattr(native, "_len_torch_function_stack", lambda: 0)
    is_plain = kind in (torch.Tensor, torch.nn.Parameter)
    quietly = native.DisableTorchFunction

    def read(value: Any) -> Spec:
        if tracing() is not None:  # to ask for a shape would be a step of what is traced
            return "Tensor"
        if is_plain and not watching():
            return tuple(value.shape)
        with quietly():  # neither a mode of the user nor the class sees our question
            try:
                return _plain(value.shape)
            except Exception:  # of a nested tensor there is none
                return "Tensor"

    return read


def _several(kind: str, values: Any, count: int) -> Spec:
    if not 0 < count <= MANY:
        return kind
    found: list[Spec] = [kind]
    for value in values:
        spec = spec_of(value) if type(value) not in _PLAIN else None
        if not is_shape(spec):
            return kind
        found.append(spec)
    return tuple(found)


def _mapping(value: Any) -> Spec:
    if not 0 < dict.__len__(value) <= _KEYS:
        return "dict"
    found: list[Spec] = ["dict"]
    for key, one in dict.items(value):
        spec = spec_of(one) if type(key) is str and type(one) not in _PLAIN else None
        if is_shape(spec):
            found.append((key, spec))
    return tuple(found) if len(found) > 1 else "dict"


def _named(name: str) -> Callable[[Any], Spec]:
    return lambda value: name


_PLAIN: dict[type, Callable[[Any], Spec]] = {
    int: lambda value: value,
    **{kind: _named(kind.__name__) for kind in (bool, float, str, bytes, type(None), complex, set)},
}
_readers: dict[type, Callable[[Any], Spec]] = dict(_PLAIN)
