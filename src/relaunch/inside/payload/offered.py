"""`payload((2, 3), "float32")`: arrays whose values tell who they are, in the library at hand."""

from __future__ import annotations

import sys
from collections import OrderedDict
from itertools import cycle

from relaunch.inside.payload.dtypes import dtype_of
from relaunch.inside.payload.spec import DEFAULT, read_spec
from relaunch.inside.payload.values import KINDS, STRINGS, Array, made, sentinel_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

LIBRARIES = ("torch", "numpy", "jax", "list")


def payload(
    shape: Sequence[int] | int | str | None = None,
    dtype: Any = None,
    kind: str = "count",
    *,
    sentinel: int | str | None = None,
    like: Any = None,
    seed: int = 0,
    to: str | None = None,
) -> Any:
    """Return an array of this shape, or a structure like another one.

    `kind` is count (1, 2, 3, ...), coded (digits are the index), random or adversarial (nan, inf,
    -0, denormals, ends of the range). A `sentinel` such as 0xDEADBEEF fills the memory of any type.
    The result is of torch or numpy where one is imported, else lists; `to` says torch, numpy, jax
    or list. With `like`, each array stays of its library.
    """
    if kind not in KINDS:
        raise ValueError(f"no kind `{kind}`; there are {', '.join(KINDS)}")
    if to is not None and to not in LIBRARIES:
        raise ValueError(f"no library `{to}`; there are {', '.join(LIBRARIES)}")
    mark = sentinel_bytes(sentinel) if sentinel is not None else b""
    if like is not None:

        def again(array: Array, before: Any) -> Any:
            return turned(array, to or library_of(before))

        return resembling(like, kind, seed=seed, sentinel=mark, turned=again)
    library = to or at_hand()
    if shape is None and kind == "adversarial" and not mark:
        return {name: turned(one, library) if isinstance(one, Array) else one
                for name, one in _adversarial_for(library, dtype).items()}  # fmt: skip
    sizes, element = _sizes(shape, dtype)
    return turned(made(sizes, element, kind, seed=seed, sentinel=mark), library)


def _adversarial_for(library: str, dtype: Any) -> dict[str, Any]:
    whole = "int64"
    if library == "jax" and not _imported("jax").config.jax_enable_x64:
        whole = "int32"
    return adversarial(dtype_of(dtype or DEFAULT).name, whole)


def _sizes(shape: Sequence[int] | int | str | None, dtype: Any) -> tuple[tuple[int, ...], Any]:
    if isinstance(shape, str):
        sizes, element = read_spec(shape)
        return sizes, dtype_of(dtype) if dtype is not None else element
    element = dtype_of(dtype if dtype is not None else DEFAULT)
    sizes = (shape,) if isinstance(shape, int) else tuple(int(one) for one in shape or ())
    if any(size < 0 for size in sizes):
        raise ValueError(f"a shape has no negative sizes: {sizes}")
    return sizes, element


def adversarial(dtype: str = DEFAULT, whole: str = "int64") -> dict[str, Any]:
    """Return what to try when no shape is given: edges, none, one, and texts."""
    one = dtype_of(dtype)
    edges = len((one.part if one.family == "complex" else one).edges())
    return {
        "edges": made((edges,), one, "adversarial"),
        "empty": made((0, 3), one, "count"),
        "scalar": made((), one, "count"),
        "many_dimensions": made((1,) * 8, one, "count"),
        "integers": made((6,), dtype_of(whole), "adversarial"),
        "strings": list(STRINGS),
    }


def resembling(
    like: Any,
    kind: str,
    *,
    seed: int = 0,
    sentinel: bytes = b"",
    turned: Callable[[Array, Any], Any] | None = None,
) -> Any:
    """Return the same structure with other values; what is no array stays, but for odd texts."""
    texts = cycle(STRINGS)
    number = seed

    def visit(value: Any) -> Any:
        nonlocal number
        if hasattr(value, "shape") and hasattr(value, "dtype"):
            try:
                element = dtype_of(value.dtype)
            except ValueError:
                return value  # texts or objects in an array
            array = made(
                tuple(map(int, value.shape)), element, kind, seed=number, sentinel=sentinel
            )
            number += 1
            return turned(array, value) if turned is not None else array
        if isinstance(value, dict):
            items = [(key, visit(one)) for key, one in value.items()]
            return OrderedDict(items) if isinstance(value, OrderedDict) else dict(items)
        if isinstance(value, tuple):
            inner = [visit(one) for one in value]
            return type(value)(*inner) if hasattr(value, "_fields") else tuple(inner)
        if isinstance(value, list):
            return [visit(one) for one in value]
        if isinstance(value, str) and kind == "adversarial" and not sentinel:
            return next(texts)
        return value

    return visit(like)


def at_hand() -> str:
    """Return the library that the program has imported."""
    return next((name for name in ("torch", "numpy", "jax") if name in sys.modules), "list")


def library_of(value: Any) -> str:
    """Return the library that an array is of."""
    name = type(value).__module__.partition(".")[0]
    return "jax" if name.startswith("jax") else name if name in LIBRARIES else at_hand()


def turned(array: Array, library: str) -> Any:
    """Make an array one of a library."""
    return {"torch": _torch, "numpy": _numpy, "jax": _jax, "list": Array.nested}[library](array)


def _torch(array: Array) -> Any:
    torch: Any = _imported("torch")
    element = getattr(torch, array.dtype.name, None)
    if element is None:
        raise ValueError(f"this torch has no {array.dtype.name}")
    if not array.data:
        return torch.empty(array.shape, dtype=element)
    raw = torch.frombuffer(bytearray(array.data), dtype=torch.uint8)
    return raw.view(element).reshape(array.shape)


def _numpy(array: Array) -> Any:
    numpy: Any = _imported("numpy")
    try:
        element = numpy.dtype(array.dtype.name)
    except TypeError:
        try:
            element = numpy.dtype(getattr(_imported("ml_dtypes"), array.dtype.name))
        except (ValueError, AttributeError):
            said = f"numpy has no {array.dtype.name}: pip install ml_dtypes, or to='torch'"
            raise ValueError(said) from None
    return numpy.frombuffer(array.data, dtype=element).reshape(array.shape).copy()


def _jax(array: Array) -> Any:
    new = _imported("jax.numpy").asarray(_numpy(array))
    if str(new.dtype) != array.dtype.name:  # other values too: the greatest int64 becomes -1
        said = f"jax makes {new.dtype} of {array.dtype.name}"
        raise ValueError(f"{said}: jax.config.update('jax_enable_x64', True)")
    return new


def _imported(name: str) -> Any:
    try:
        __import__(name)
    except ImportError:
        raise ValueError(f"{name} cannot be imported: pip install {name.split('.')[0]}") from None
    return sys.modules[name]
