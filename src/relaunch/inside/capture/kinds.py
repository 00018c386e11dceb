"""How each kind of object is kept that `pickle` would refuse, inflate or take too literally."""

from __future__ import annotations

import sys

from relaunch.inside.capture import code, files, memory, plain, rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from relaunch.inside.capture.keeper import Keeper, Reduced

    Handler = Callable[[Keeper, Any], Reduced]

_NEVER = (
    ("asyncio.events", "AbstractEventLoop"),
    ("subprocess", "Popen"),
    ("multiprocessing.process", "BaseProcess"),
    ("multiprocessing.pool", "Pool"),
    ("concurrent.futures._base", "Executor"),
    ("concurrent.futures._base", "Future"),
    ("selectors", "BaseSelector"),
    ("socketserver", "BaseServer"),
    ("http.client", "HTTPConnection"),
)
"""Things that are tied to this process: a copy of what is in them would only mislead."""


_WORK = ("_target", "_args", "_kwargs")


def module(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a module to its name."""
    name = getattr(thing, "__name__", "")
    if sys.modules.get(name) is not thing:
        return keeper.missing(thing, f"module {name}, which nobody imported")
    return rebuild.module, (name,)


def cell(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a cell; those who shared it will."""
    keeper.alive.append(thing)
    try:
        contents = (thing.cell_contents,)
    except ValueError:
        contents = ()  # type: ignore[assignment]  # an empty cell
    return rebuild.cell, (id(thing),), contents, None, None, rebuild.set_cell


def stream(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce an open file."""
    for name in ("stdin", "stdout", "stderr"):
        if thing is getattr(sys, name) or thing is getattr(sys, f"__{name}__"):
            return rebuild.stream, (name,)
    facts, words = files.facts_of(thing)
    if facts is None:
        return keeper.missing(thing, f"a {type(thing).__name__} that is no file")
    keeper.note(thing, words)
    return rebuild.file, (facts,)


def a_lock(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a lock to a new one."""
    kind = "RLock" if "RLock" in type(thing).__name__ else "Lock"
    keeper.note(thing, f"{kind.lower()}: a new one")
    return rebuild.lock, (kind,)


def a_view(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a view of memory."""
    data: Any = bytes(thing)
    return rebuild.view, (data if thing.readonly else bytearray(data),)


def a_proxy(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a read-only dictionary."""
    return rebuild.proxy, (dict(thing),)


def keys_or_values(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce the keys, values or items of a dictionary."""
    kind = type(thing).__name__.removeprefix("odict_").removeprefix("dict_")
    return rebuild.view_of, (kind, dict(thing.mapping))


def weak(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a weak reference."""
    target = thing()
    if target is None:
        return keeper.missing(thing, "a weak reference to something that was gone")
    return rebuild.weak, (target,)


def nothing(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce what only this process has."""
    return rebuild.nothing, ()


def a_code(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce code."""
    import marshal

    return rebuild.code, (marshal.dumps(thing),)


def a_property(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a property."""
    return property, (thing.fget, thing.fset, thing.fdel, thing.__doc__)


def a_method(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a static or class method."""
    return type(thing), (thing.__func__,)


def cached(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a function with a cache."""
    if code.by_name(thing, thing.__module__, thing.__qualname__):
        return rebuild.named, (thing.__module__, thing.__qualname__)
    settings = thing.cache_parameters()
    return rebuild.cached, (settings["maxsize"], settings["typed"], thing.__wrapped__)


def environ(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce the environment to that of the replay."""
    return rebuild.environ, ()


def never(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce what cannot be anywhere else."""
    return keeper.missing(thing, f"a {type(thing).__module__}.{type(thing).__qualname__}")


def a_thread(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a thread to one that was never started; what is the user's own in it stays."""
    keeper.note(thing, "thread: not started")
    own = {name: value for name, value in vars(thing).items() if name[:1] != "_"}
    work = {name: vars(thing)[name] for name in _WORK if name in vars(thing)}
    state = (thing.name, own | work)
    return rebuild.thread, (type(thing),), state, None, None, rebuild.set_thread


def database(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a connection of SQLite to a copy of what is in it."""
    cursor = thing.cursor()
    cursor.row_factory = None
    is_empty = not cursor.execute("pragma schema_version").fetchone()[0]
    data = b"" if is_empty else thing.serialize()  # which refuses one without a page
    keeper.note(thing, "database: a copy in memory")
    return rebuild.database, (data, thing.isolation_level, thing.row_factory)


# --- arrays and tensors


def array(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce an array of numpy."""
    if thing.dtype.hasobject:
        return plain.objects(keeper, thing)
    return rebuild.array, memory.array(keeper.memory, thing)


def mapped(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce an array that is a file, to that file."""
    name = getattr(thing, "filename", None)
    base: Any = thing
    while getattr(base, "base", None) is not None and type(base.base) is type(thing):
        base = base.base
    if name is None or thing.dtype.hasobject:
        return keeper.as_it_says(thing)
    offset = thing.offset + (
        thing.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    )
    order = "F" if thing.flags.f_contiguous and not thing.flags.c_contiguous else "C"
    if not thing.flags.contiguous and order == "C":
        return rebuild.array, memory.array(keeper.memory, thing)
    keeper.note(thing, f"array in {name}: mapped again")
    facts = {"file": str(name), "offset": offset, "order": order}
    return rebuild.mapped, (facts, thing.dtype, thing.shape)


def tensor(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a tensor of torch."""
    torch = sys.modules["torch"]
    if thing.layout is not torch.strided or thing.is_quantized or thing.is_nested:
        return keeper.as_it_says(thing)
    if thing.is_conj() or thing.is_neg():
        torch.set_num_threads(1)
        thing = thing.resolve_conj().resolve_neg()
    device = thing.device.type
    facts: dict[str, Any] = {
        "dtype": str(thing.dtype).removeprefix("torch."),
        "device": str(thing.device),
        "kind": type(thing).__name__,
        "requires_grad": bool(thing.requires_grad),
    }
    if device == "cpu":
        number = memory.tensor(keeper.memory, thing, facts)
    else:
        number = keeper.far_tensor(thing, facts)
    if thing.grad_fn is not None:
        facts["is_leaf"] = False
    grad = thing.grad if thing.is_leaf else None
    attributes = dict(getattr(thing, "__dict__", None) or {})
    if grad is None and not attributes:
        return rebuild.tensor, (number, facts)
    state = (grad, attributes)
    return rebuild.tensor, (number, facts), state, None, None, rebuild.set_tensor


def generator_of_torch(keeper: Keeper, thing: Any) -> Reduced:
    """Reduce a generator of random numbers."""
    return rebuild.generator, (str(thing.device), thing.get_state())


# --- which


def exact() -> dict[type, Handler]:
    """Return how each type is kept that is known here, as far as the program has loaded it."""
    import _io
    import _thread
    import _weakref

    def made(x: int) -> Any:
        return lambda: x

    async def asynchronous() -> Any:
        yield

    found: dict[type, Handler] = {
        **plain.exact(),
        type(made): code.function,
        type(sys): module,
        type(made(0).__closure__[0]): cell,
        type(made.__code__): a_code,
        type(_ for _ in ()): code.generator,
        type(asynchronous()): code.generator,
        _thread.LockType: a_lock,
        _thread.RLock: a_lock,
        memoryview: a_view,
        type(vars(int)): a_proxy,
        type({}.keys()): keys_or_values,
        type({}.values()): keys_or_values,
        type({}.items()): keys_or_values,
        _weakref.ReferenceType: weak,
        property: a_property,
        staticmethod: a_method,
        classmethod: a_method,
        _io.TextIOWrapper: stream,
        _io.BufferedReader: stream,
        _io.BufferedWriter: stream,
        _io.BufferedRandom: stream,
        _io.FileIO: stream,
    }
    coroutine = _coroutine_type()
    found[coroutine] = code.generator
    for where, name, handler in (
        ("types", "FrameType", nothing),
        ("types", "TracebackType", nothing),
        ("functools", "_lru_cache_wrapper", cached),
        ("sqlite3", "Connection", database),
        ("numpy", "ndarray", array),
        ("numpy", "memmap", mapped),
        ("torch", "Tensor", tensor),
        ("torch.nn", "Parameter", tensor),
        ("torch.nn", "Buffer", tensor),
        ("torch", "Generator", generator_of_torch),
    ):
        kind = getattr(sys.modules.get(where), name, None)
        if isinstance(kind, type):
            found[kind] = handler
    environment = getattr(sys.modules.get("os"), "environ", None)
    if environment is not None and type(environment) is not dict:
        found[type(environment)] = environ
    return found


def _coroutine_type() -> type:
    async def made() -> None: ...

    one = made()
    try:
        return type(one)
    finally:
        one.close()


def bases() -> list[tuple[type, Handler]]:
    """Return how whatever inherits from a type is kept."""
    found: list[tuple[type, Handler]] = [(type, code.a_class), (type(sys), module)]
    threading = sys.modules.get("threading")
    if threading is not None:
        found.append((threading.Thread, a_thread))
    for name, handler in (("dtype", plain.dtype), ("generic", plain.scalar)):
        kind = getattr(sys.modules.get("numpy"), name, None)
        if isinstance(kind, type):
            found.append((kind, handler))
    for where, name in _NEVER:
        kind = getattr(sys.modules.get(where), name, None)
        if isinstance(kind, type):
            found.append((kind, never))
    return found
