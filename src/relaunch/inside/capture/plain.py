"""How plain data is kept: by the name of its kind in a closed table, never by a class to import.

A file of plain data calls only what is in `rebuild.PLAIN`. Whatever is not exactly of such a kind,
a subclass of one too, is kept as it says itself: then the file needs a pickle.
"""

from __future__ import annotations

import sys

from relaunch.inside.capture import rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.inside.capture.keeper import Keeper, Reduced

    Handler = Callable[[Keeper, Any], Reduced]

_CLOCK = ("hour", "minute", "second", "microsecond", "tzinfo", "fold")
_PARTS: tuple[tuple[str, str, Callable[[Any], tuple[Any, ...]]], ...] = (
    ("builtins", "complex", lambda one: (one.real, one.imag)),
    ("builtins", "range", lambda one: (one.start, one.stop, one.step)),
    ("builtins", "slice", lambda one: (one.start, one.stop, one.step)),
    ("builtins", "ellipsis", lambda one: ()),
    ("builtins", "NotImplementedType", lambda one: ()),
    ("decimal", "Decimal", lambda one: (str(one),)),
    ("fractions", "Fraction", lambda one: (one.numerator, one.denominator)),
    ("uuid", "UUID", lambda one: (one.hex,)),
    ("datetime", "date", lambda one: (one.year, one.month, one.day)),
    ("datetime", "time", lambda one: tuple(getattr(one, name) for name in _CLOCK)),
    (
        "datetime",
        "datetime",
        lambda one: (
            *(one.year, one.month, one.day),
            *(getattr(one, name) for name in _CLOCK),
        ),
    ),
    ("datetime", "timedelta", lambda one: (one.days, one.seconds, one.microseconds)),
    ("datetime", "timezone", lambda one: one.__getinitargs__()),
    ("pathlib", "PosixPath", lambda one: (str(one),)),
    ("pathlib", "PurePosixPath", lambda one: (str(one),)),
    ("pathlib", "PureWindowsPath", lambda one: (str(one),)),
)
"""Of each kind, what makes it again."""


def exact() -> dict[type, Handler]:
    """Return how each kind of plain value is kept, as far as the program has loaded it."""
    found: dict[type, Handler] = {}
    for module, name, parts in _PARTS:
        kind = _SINGLE.get(name) or getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            found[kind] = _value(name, parts)
    for module, name, handler in (
        ("collections", "OrderedDict", _ordered),
        ("collections", "Counter", _counter),
        ("collections", "defaultdict", _default),
        ("collections", "deque", _deque),
        ("pandas", "DataFrame", _frame),
        ("pandas", "Series", _series),
        ("pandas", "Index", _index),
        ("pandas", "RangeIndex", _range),
        ("torch", "dtype", _of_torch),
        ("torch", "device", _of_torch),
    ):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type):
            found[kind] = handler
    return found


_SINGLE: dict[str, type] = {"ellipsis": type(...), "NotImplementedType": type(NotImplemented)}


def _value(name: str, parts: Callable[[Any], tuple[Any, ...]]) -> Handler:
    return lambda keeper, thing: (rebuild.value, (name, *parts(thing)))


# --- containers


def _ordered(keeper: Keeper, thing: Any) -> Reduced:
    return _container(keeper, thing, None, pairs=list(thing.items()))


def _counter(keeper: Keeper, thing: Any) -> Reduced:
    return _container(keeper, thing, None, pairs=list(dict.items(thing)))


def _default(keeper: Keeper, thing: Any) -> Reduced:
    for name, made in ((None, None), *rebuild.FACTORIES.items()):
        if made is thing.default_factory:
            return _container(keeper, thing, name, pairs=list(thing.items()))
    return keeper.as_it_says(thing)


def _deque(keeper: Keeper, thing: Any) -> Reduced:
    return _container(keeper, thing, thing.maxlen, items=list(thing))


def _container(
    keeper: Keeper, thing: Any, more: Any, *, items: Any = None, pairs: Any = None
) -> Reduced:
    if getattr(thing, "__dict__", None):  # attributes of the user's
        return keeper.as_it_says(thing)
    items, pairs = (None if one is None else iter(one) for one in (items, pairs))
    return rebuild.container, (type(thing).__name__, more), None, items, pairs


# --- numpy


def dtype(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a type of numpy to words, where words say all of it."""
    words = _words(sys.modules["numpy"], thing)
    return keeper.as_it_says(thing) if words is None else (rebuild.dtype, (words,))


def _words(numpy: Any, thing: Any) -> Any:
    if thing.metadata:
        return None
    if thing.subdtype is not None:
        inner = _words(numpy, thing.subdtype[0])
        return None if inner is None else ("sub", inner, thing.subdtype[1])
    if thing.names is None:
        return thing.str if rebuild.is_named(numpy, thing) else None
    if thing.type is not numpy.void:  # as of a record
        return None
    fields = [thing.fields[name] for name in thing.names]
    inner = [_words(numpy, field[0]) for field in fields]
    if any(words is None for words in inner) or any(len(field) > 2 for field in fields):
        return None
    offsets = tuple(field[1] for field in fields)
    return "fields", thing.names, tuple(inner), offsets, thing.itemsize, thing.isalignedstruct


def scalar(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a number of numpy to its bytes."""
    if type(thing) is not thing.dtype.type or thing.dtype.hasobject:
        return keeper.as_it_says(thing)
    return rebuild.scalar, (thing.dtype, thing.tobytes())


def objects(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce an array of objects to these."""
    if thing.dtype.kind != "O" or thing.dtype.metadata:
        return keeper.as_it_says(thing)
    order = "F" if thing.flags.f_contiguous and not thing.flags.c_contiguous else "C"
    items = thing.ravel(order).tolist()
    return rebuild.objects, (thing.shape, order), items, None, None, rebuild.set_objects


# --- torch and pandas


def _of_torch(keeper: Keeper, thing: Any) -> Reduced:
    return rebuild.of_torch, (type(thing).__name__, str(thing).removeprefix("torch."))


def _frame(keeper: Keeper, thing: Any) -> Reduced:
    columns = [_column(thing.iloc[:, at]) for at in range(thing.shape[1])]
    if any(one is None for one in columns) or not thing.flags.allows_duplicate_labels:
        return keeper.as_it_says(thing)
    return rebuild.frame, (columns, thing.index, thing.columns, dict(thing.attrs))


def _series(keeper: Keeper, thing: Any) -> Reduced:
    column = _column(thing)
    if column is None or not thing.flags.allows_duplicate_labels:
        return keeper.as_it_says(thing)
    return rebuild.series, (column, thing.index, thing.name, dict(thing.attrs))


def _index(keeper: Keeper, thing: Any) -> Reduced:
    column = _column(thing)
    return keeper.as_it_says(thing) if column is None else (rebuild.index, (column, thing.name))


def _range(keeper: Keeper, thing: Any) -> Reduced:
    return rebuild.range_index, (thing.start, thing.stop, thing.step, thing.name)


def _column(values: Any) -> Any:
    """Return a series of pandas as an array of numpy, or its texts; None for any other kind."""
    kind = values.dtype
    if isinstance(kind, sys.modules["numpy"].dtype):
        return values.to_numpy()
    if type(kind) is not sys.modules["pandas"].StringDtype:
        return None
    texts = values.to_numpy(object, na_value=None).tolist()
    return kind.storage, kind.na_value is sys.modules["pandas"].NA, texts
