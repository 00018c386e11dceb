"""What a capture calls when it is loaded: each function here makes one kind of thing again.

The names are in the captures, so they stay. Nothing here raises for one object that cannot be made:
it becomes `NotKept`, which says so when the replay uses it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CellType, CodeType
    from typing import Any

NAME = "_relaunch_rebuild"
"""The module by which captures name these functions."""
_FUNCTION: Any = type(lambda: 0)
_CELL: Any = type((lambda x: lambda: x)(0).__closure__[0])  # type: ignore[index]  # it has one
_USES = (
    "call", "iter", "next", "len", "getitem", "setitem", "delitem", "contains", "bool", "int",
    "float", "index", "enter", "exit", "add", "sub", "mul", "matmul", "truediv", "floordiv", "mod",
    "pow", "and", "or", "xor", "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge", "radd",
    "rsub", "rmul", "rmatmul", "rtruediv", "rfloordiv", "rmod", "rpow", "await", "aiter", "anext",
    "aenter", "aexit", "fspath", "bytes", "array",
)  # fmt: skip


class NotKept(RuntimeError):
    """A replay came to something that the capture does not have."""


class Missing:
    """Stands for something that was not kept; any use of it says so."""

    def __init__(self, what: str) -> None:
        """Remember what it was."""
        self.__dict__["_what"] = what

    def __repr__(self) -> str:
        """Show it in a debugger."""
        return f"<not kept: {self.__dict__['_what']}>"

    def __getattr__(self, name: str) -> Any:
        """Refuse, but for what Python itself asks any object."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotKept(f"the replay needs .{name} of {self._what}, which was not kept")

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse."""
        raise NotKept(f"the replay sets .{name} of {self._what}, which was not kept")


def _refuse(self: Missing, *_: object) -> Any:
    raise NotKept(f"the replay needs {self._what}, which was not kept")


for _use in _USES:
    setattr(Missing, f"__{_use}__", _refuse)


class Session:
    """What the functions here need to know while one capture is loaded."""

    def __init__(self) -> None:
        """Know nothing; a replay fills it in."""
        self.cells: dict[int, CellType] = {}
        self.alive: list[Any] = []
        """What is only weakly referred to must live all the same."""
        self.memory: Any = None
        self.notes: list[str] = []
        self.code: Any = None
        """Finds the code of a function in the source as it is now."""
        self.module: Any = None
        """Imports a module, also the one that was the program."""


session = Session()


def missing(what: str) -> Missing:
    """Stand for something that was not kept."""
    return Missing(what)


def built(make: Any, args: tuple[Any, ...]) -> Any:
    """Make an object as its own `__reduce__` says."""
    if isinstance(make, Missing):
        return Missing(f"something made by {make!r}")
    try:
        return make(*args)
    except Exception as error:
        return _built_bare(make, args, error)


def _built_bare(make: Any, args: tuple[Any, ...], error: Exception) -> Any:
    """Make an exception whose `__init__` wants other arguments than it keeps."""
    if isinstance(make, type) and issubclass(make, BaseException):
        try:
            return make.__new__(make, *args)
        except Exception:
            pass
    name = getattr(make, "__qualname__", repr(make))
    return Missing(f"{name}{_shape(args)} ({type(error).__name__}: {error})")


def _shape(args: tuple[Any, ...]) -> str:
    names = [getattr(arg, "__qualname__", "") for arg in args if isinstance(arg, type)]
    return f"({', '.join(names)})" if names else ""


def set_state(made: Any, whole: tuple[Any, ...]) -> None:
    """Give an object its state and items."""
    state, items, pairs, setter = whole
    if isinstance(made, Missing):
        return
    try:
        for item in items or ():
            made.append(item)
        for key, value in pairs or ():
            made[key] = value
        if setter is not None:
            setter(made, state)
        elif state is not None:
            _set_attributes(made, state)
    except Exception as error:
        kind = type(made).__qualname__
        session.notes.append(f"a {kind} has not all of its state ({type(error).__name__}: {error})")


def _set_attributes(made: Any, state: Any) -> None:
    setstate = getattr(made, "__setstate__", None)
    if setstate is not None:
        setstate(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


# --- by reference


def module(name: str) -> Any:
    """Return a module as it is now."""
    try:
        return session.module(name)
    except Exception as error:
        return Missing(f"module {name} ({type(error).__name__}: {error})")


def named(module_name: str, qualname: str) -> Any:
    """Return a function or class as it is in the source now."""
    found = module(module_name)
    for part in qualname.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            return Missing(f"{module_name}.{qualname}, which is no longer there")
    return found


def of_module(module_name: str, name: str) -> Any:
    """Return an object that is a global of a module, or belongs to a class in it."""
    return named(module_name, name)


def stream(name: str) -> Any:
    """Return a standard stream."""
    return {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}[name]


def environ() -> Any:
    """Return the environment."""
    import os

    return os.environ


# --- functions, classes, cells


def function(
    module_name: str, file: str, qualname: str, where: Any, name: str, cells: dict[str, int]
) -> Any:
    """Make a function of the code that is in the source now, its cells empty."""
    home = module(module_name)
    code = session.code(file, qualname, *where)
    if code is None or isinstance(home, Missing):
        return Missing(f"{qualname}, which is no longer in {file}")
    return _made(code, vars(home), name, cells)


def function_by_value(code: bytes, module_name: str, name: str, cells: dict[str, int]) -> Any:
    """Make a function that has no source: code that a program made itself."""
    import marshal

    names = {} if not module_name else vars(module(module_name))
    if module_name and isinstance(module(module_name), Missing):
        return module(module_name)
    return _made(marshal.loads(code), names, name, cells)


def _made(code: CodeType, names: dict[str, Any], name: str, cells: dict[str, int]) -> Any:
    closure = tuple(_cell(cells.get(one)) for one in code.co_freevars)
    names.setdefault("__builtins__", __import__("builtins"))
    return _FUNCTION(code, names, name, None, closure)


def _cell(number: int | None) -> CellType:
    made: CellType = _CELL()
    return made if number is None else session.cells.setdefault(number, made)


def cell(number: int) -> CellType:
    """Make a cell, the same for all who shared it."""
    return _cell(number)


def set_cell(made: CellType, contents: tuple[Any, ...]) -> None:
    """Fill a cell, if it was."""
    if contents:
        made.cell_contents = contents[0]


def set_function(made: Any, state: tuple[Any, ...]) -> None:
    """Give a function its cells, defaults, attributes and, if it has no module, its globals."""
    if isinstance(made, Missing):
        return
    contents, defaults, keyword_defaults, attributes, names = state
    for number, value in contents.items():
        _cell(number).cell_contents = value
    made.__defaults__ = defaults
    made.__kwdefaults__ = keyword_defaults
    made.__dict__.update(attributes or {})
    made.__globals__.update(names or {})


def new_class(meta: Any, name: str, bases: tuple[Any, ...], begin: dict[str, Any]) -> Any:
    """Make a class that has no name of its own in its module."""
    if any(isinstance(one, Missing) for one in (meta, *bases)):
        return Missing(f"class {name}")
    try:
        return meta(name, bases, dict(begin))
    except Exception as error:
        return Missing(f"class {name} ({type(error).__name__}: {error})")


def set_class(made: Any, members: dict[str, Any]) -> None:
    """Give a class its members."""
    if isinstance(made, Missing):
        return
    for name, value in members.items():
        try:
            setattr(made, name, value)
        except (AttributeError, TypeError):
            continue


def code(data: bytes) -> Any:
    """Make a code object."""
    import marshal

    return marshal.loads(data)


def cached(maxsize: int | None, typed: bool, inner: Any) -> Any:
    """Make a function with an empty cache around it."""
    from functools import lru_cache

    return lru_cache(maxsize, typed)(inner)


def started(make: Any, values: dict[str, Any]) -> Any:
    """Make a generator or coroutine that had not begun: its function, called."""
    if isinstance(make, Missing):
        return make
    try:
        return _called(make, values)
    except Exception as error:
        return Missing(f"{make.__qualname__}() ({type(error).__name__}: {error})")


def _called(make: Any, values: dict[str, Any]) -> Any:
    shape = make.__code__
    count = shape.co_argcount + shape.co_kwonlyargcount
    names = shape.co_varnames
    positional = [values[name] for name in names[: shape.co_argcount]]
    keywords = {name: values[name] for name in names[shape.co_argcount : count]}
    if shape.co_flags & 4:
        positional += values[names[count]]
        count += 1
    if shape.co_flags & 8:
        keywords |= values[names[count]]
    return make(*positional, **keywords)


# --- small things


def lock(kind: str) -> Any:
    """Make a lock that nobody holds."""
    import threading

    return {"Lock": threading.Lock, "RLock": threading.RLock}[kind]()


def thread(kind: Any) -> Any:
    """Make a thread that was never started, without the `__init__` of its own class."""
    if isinstance(kind, Missing):
        return kind
    return kind.__new__(kind)


def set_thread(made: Any, state: tuple[Any, ...]) -> None:
    """Give a thread its name, its work, and the attributes that are the user's."""
    import threading

    name, own = state
    if not isinstance(made, Missing):
        threading.Thread.__init__(made, name=name)
        made.__dict__.update(own)


def proxy(mapping: dict[Any, Any]) -> Any:
    """Make a read-only view of a dictionary."""
    from types import MappingProxyType

    return MappingProxyType(mapping)


def view_of(kind: str, mapping: dict[Any, Any]) -> Any:
    """Make the keys, values or items of a dictionary."""
    return {"keys": dict.keys, "values": dict.values, "items": dict.items}[kind](mapping)


def view(data: bytes | bytearray) -> memoryview:
    """Make a view of bytes."""
    return memoryview(data)


def weak(thing: Any) -> Any:
    """Make a weak reference to something that lives on."""
    import weakref

    try:
        session.alive.append(thing)
        return weakref.ref(thing)
    except TypeError:
        return lambda: thing


def nothing() -> None:
    """Stand for what no replay has: a frame, a traceback."""


# --- files


def file(facts: dict[str, Any]) -> Any:
    """Open a file again as it was; one that was written to is a copy that goes away."""
    from relaunch.inside.capture.files import opened

    return opened(facts)


def database(data: bytes, isolation_level: Any, row_factory: Any) -> Any:
    """Open a database of SQLite in memory that holds what the other one held."""
    import sqlite3

    made = sqlite3.connect(":memory:", isolation_level=isolation_level, check_same_thread=False)
    if data:
        made.deserialize(data)
    made.row_factory = row_factory
    return made


# --- arrays


def array(piece: int, dtype: Any, shape: Any, strides: Any, writeable: bool) -> Any:
    """Make an array of numpy on memory that was kept."""
    return session.memory.array(piece, dtype, shape, strides, writeable)


def tensor(piece: int, facts: dict[str, Any]) -> Any:
    """Make a tensor of torch on memory that was kept."""
    return session.memory.tensor(piece, facts)


def set_tensor(made: Any, state: tuple[Any, ...]) -> None:
    """Give a tensor its gradient and attributes."""
    if not isinstance(made, module("torch").Tensor):
        return
    grad, attributes = state
    if grad is not None and not isinstance(grad, Missing):
        made.grad = grad
    made.__dict__.update(attributes or {})


def mapped(facts: dict[str, Any], dtype: Any, shape: Any) -> Any:
    """Map an array's file again; what the replay writes stays its own."""
    try:
        return module("numpy").memmap(
            facts["file"], dtype, "c", facts["offset"], shape, order=facts["order"]
        )
    except (OSError, ValueError) as error:
        return Missing(f"the array in {facts['file']} ({error})")


def generator(device: str, state: Any) -> Any:
    """Make a generator of random numbers of torch."""
    torch = module("torch")
    made = torch.Generator(device if device == "cpu" or torch.cuda.is_available() else "cpu")
    try:
        made.set_state(state)
    except (RuntimeError, TypeError):
        pass
    return made


# --- plain data


def value(kind: str, *parts: Any) -> Any:
    """Make a value of a kind that is named here; no other can be made by a name."""
    if kind in ("ellipsis", "NotImplementedType"):
        return ... if kind == "ellipsis" else NotImplemented
    home = __import__(_HOMES[kind])
    if kind == "Fraction" and any(type(one) is not int for one in parts):
        raise ValueError("a fraction is of two whole numbers")  # of a text it may take all memory
    if kind in ("time", "datetime"):
        return getattr(home, kind)(*parts[:-1], fold=parts[-1])
    return getattr(home, kind)(*parts)


_HOMES = {
    **dict.fromkeys(("complex", "range", "slice"), "builtins"),
    **dict.fromkeys(("date", "time", "datetime", "timedelta", "timezone"), "datetime"),
    **dict.fromkeys(("PosixPath", "PurePosixPath", "PureWindowsPath"), "pathlib"),
    "Decimal": "decimal",
    "Fraction": "fractions",
    "UUID": "uuid",
}
FACTORIES: dict[str, Any] = {
    one.__name__: one for one in (bool, bytes, dict, float, int, list, set, str, tuple)
}
"""What a dictionary may make for a key that is not there."""


def container(kind: str, more: Any) -> Any:
    """Make an empty container; `more` is the length it cannot exceed, or what it makes."""
    import collections

    if kind == "deque":
        return collections.deque(maxlen=more)
    if kind == "defaultdict":
        return collections.defaultdict(None if more is None else FACTORIES[more])
    return {"OrderedDict": collections.OrderedDict, "Counter": collections.Counter}[kind]()


def is_named(numpy: Any, thing: Any) -> bool:
    """Tell whether a type of numpy is what its own name says."""
    try:
        again = numpy.dtype(thing.str)
    except TypeError:
        return False
    return type(again) is type(thing) and bool(again == thing)


def dtype(words: Any) -> Any:
    """Make a type of numpy."""
    numpy = module("numpy")
    if isinstance(words, str):
        made = numpy.dtype(words)
        if made.fields is not None or made.subdtype is not None:
            raise ValueError(f"{words} is not one type")
        return made
    if words[0] == "sub":
        return numpy.dtype((dtype(words[1]), words[2]))
    _, names, inner, offsets, size, is_aligned = words
    told = {"names": names, "formats": [dtype(one) for one in inner], "offsets": offsets}
    return numpy.dtype({**told, "itemsize": size}, align=is_aligned)


def scalar(kind: Any, data: bytes) -> Any:
    """Make a number of numpy."""
    numpy = module("numpy")
    if not isinstance(kind, numpy.dtype) or kind.hasobject:
        raise ValueError("a number of numpy has no objects in it")
    if len(data) < kind.itemsize:
        raise ValueError("a number of numpy has the bytes of its type")
    return numpy.ndarray((), kind, bytearray(data) if data else None)[()]


def objects(shape: tuple[int, ...], order: str) -> Any:
    """Make an array of objects, each of them None."""
    return module("numpy").empty(shape, "O", order)


def set_objects(made: Any, items: list[Any]) -> None:
    """Fill an array of objects."""
    if isinstance(made, Missing):
        return
    flat = made.ravel("K")  # a view: it was made without gaps
    for number, item in enumerate(items):
        flat[number] = item


def of_torch(kind: str, name: str) -> Any:
    """Return a type of numbers of torch, or a device."""
    torch = module("torch")
    made = torch.device(name) if kind == "device" else getattr(torch, name)
    if not isinstance(made, (torch.device, torch.dtype)):
        raise ValueError(f"torch.{name} is no type of numbers")
    return made


def _column(kept: Any) -> Any:
    if not isinstance(kept, tuple):
        return module("numpy").asarray(kept)
    pandas = module("pandas")
    storage, is_na, texts = kept
    kind = pandas.StringDtype(storage, **({} if is_na else {"na_value": float("nan")}))
    return pandas.array(texts, dtype=kind)


def frame(columns: list[Any], rows: Any, names: Any, attrs: dict[Any, Any]) -> Any:
    """Make a frame of pandas of its columns."""
    values = [series(one, rows, None, {}) for one in columns]
    made = module("pandas").DataFrame(dict(enumerate(values)), index=rows)
    made.columns = names
    made.attrs.update(attrs)
    return made


def series(column: Any, rows: Any, name: Any, attrs: dict[Any, Any]) -> Any:
    """Make a series of pandas."""
    values = _column(column)
    made = module("pandas").Series(values, index=rows, name=name, dtype=values.dtype)
    made.attrs.update(attrs)
    return made


def index(column: Any, name: Any) -> Any:
    """Make an index of pandas."""
    values = _column(column)
    return module("pandas").Index(values, name=name, dtype=values.dtype)


def range_index(start: int, stop: int, step: int, name: Any) -> Any:
    """Make an index of pandas that counts."""
    return module("pandas").RangeIndex(start, stop, step, name=name)


PLAIN: frozenset[Any] = frozenset(
    (
        *(missing, nothing, weak, lock, stream, proxy, view, view_of),
        *(value, container, dtype, scalar, objects, set_objects, array),
        *(tensor, set_tensor, generator, of_torch),
        *(frame, series, index, range_index),
    )
)
"""All that a file of plain data may call: none of it imports or calls what the data name."""

for _made_here in list(vars().values()):
    if isinstance(_made_here, _FUNCTION):
        _made_here.__module__ = NAME
