"""Arrays of numpy and what is like them: `ndarray (4, 128) float32 -1.2..3.4 mean 0.01`."""

from __future__ import annotations

import sys

from relaunch.inside.looks.choose import inner, name_of
from relaunch.inside.looks.nested import ALONE, joined
from relaunch.inside.looks.numbers import WHOLE, facts_line, pieces
from relaunch.inside.looks.plain import cut, one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.inside.looks.choose import Above

MOST = 1 << 21
"""Elements that are read at the most."""
PIECES = 128
"""Of a larger array as many pieces are read, spread over it."""
MAPPED = 1 << 16
"""Elements that are read of a file in memory: each page of it may come from a disk far away."""
TRANSFER = 1 << 22
"""Bytes that are fetched from another device."""

np: Any = sys.modules.get("numpy")  # there, as somebody has an array


def array(value: Any, room: int, above: Above) -> str:
    """Show an array; a large one that is inside something else by its shape and type."""
    if above and value.size > WHOLE:
        return facts_line(_head(value))
    if value.dtype.kind in "OSUV" and not _is_number(value.dtype):
        return _of_things(value, room, above)
    return facts_line(facts(value))


def facts(value: Any) -> dict[str, Any]:
    """Return what is known of an array by name."""
    found = _head(value)
    _try(found, value)
    return found


array.facts = facts  # type: ignore[attr-defined]  # for `summary`


def scalar(value: Any, room: int, above: Above) -> str:
    """Show a number of numpy, and its type."""
    kind = value.dtype.kind
    if kind in "SUO":
        return inner(value.item(), room, above)
    if kind in "fciub":
        return facts_line({"shape": (), "dtype": str(value.dtype), "values": value.item()})
    return one_line(f"{value!s} {value.dtype}", room)


def masked(value: Any, room: int, above: Above) -> str:
    """Show an array of which some elements do not count."""
    found = _head(value)
    hidden = int(np.count_nonzero(value.mask)) if np.ndim(value.mask) else 0
    found["marks"] = (f"masked {hidden:,}",)
    if not (above and value.size > WHOLE) and value.size <= MOST:
        _try(found, value.compressed() if hidden else value.data, whole=not hidden)
    return facts_line(found)


def sparse(value: Any, room: int, above: Above) -> str:
    """Show a sparse array of scipy, with the numbers that it keeps."""
    found = _head(value)
    found["marks"] = (f"{value.nnz:,} kept",)
    if not above and type(getattr(value, "data", None)) is np.ndarray:
        _try(found, value.data, whole=False)
    return facts_line(found)


def jax_array(value: Any, room: int, above: Above) -> str:
    """Show an array of jax; its numbers only if they are here or few."""
    found = {**_head(value), "class": "jax"}
    if value.is_deleted():
        found["marks"] = ("deleted",)
        return facts_line(found)
    devices = sorted(f"{one.platform}:{one.id}" for one in value.devices())
    found["device"] = devices[0] if len(devices) == 1 else f"{len(devices)} devices"
    near = len(devices) == 1 and (devices[0].startswith("cpu") or value.nbytes <= TRANSFER)
    if near and not (above and value.size > WHOLE):
        _try(found, np.asarray(value))
    return facts_line(found)


def like_array(value: Any, room: int, above: Above) -> str:
    """Show something of another library that has a shape and a type of its elements."""
    shape = value.shape
    head = shape if isinstance(shape, tuple) else one_line(str(shape), 60)
    dtype = one_line(str(value.dtype), 60)
    return facts_line({"class": name_of(type(value)), "shape": head, "dtype": dtype})


def _head(value: Any) -> dict[str, Any]:
    names = getattr(value.dtype, "names", None)
    dtype = f"{len(names)} fields" if names else cut(str(value.dtype), 40)
    return {"class": name_of(type(value)), "shape": tuple(value.shape), "dtype": dtype}


def _of_things(value: Any, room: int, above: Above) -> str:
    """Show what is no number: texts, objects, records."""
    head = facts_line(_head(value))
    names = value.dtype.names
    elements: Iterable[tuple[str, object]] = (("", one) for one in np.asarray(value).flat)
    size, around = value.size, (f"{head} [", "]")
    if names:
        elements = ((f"{name} {value.dtype[name]}", ALONE) for name in names)
        size, around = len(names), (f"{head} {{", "}")
    return joined(value, elements, size, room, above, around)


def _is_number(dtype: Any) -> bool:
    """Tell whether a type that numpy does not know is a number all the same, as bfloat16 is."""
    numbers = ("bfloat", "float", "int", "uint")
    return bool(dtype.kind == "V" and not dtype.names and dtype.name.startswith(numbers))


def _try(found: dict[str, Any], value: Any, *, whole: bool = True) -> None:
    try:
        _add(found, value, whole)
    except Exception as error:
        found["unread"] = one_line(f"{name_of(type(error))}: {error}", 60)


def _add(found: dict[str, Any], value: Any, whole: bool) -> None:
    """Add what is read of an array to its facts."""
    mapped = isinstance(value, np.memmap)
    value = np.asarray(value)
    size = value.size
    if whole and size <= WHOLE:
        found["values"] = (value.astype(np.float32) if _is_number(value.dtype) else value).tolist()
        if value.dtype.kind in "Mm":
            found["values"] = value.astype(str).tolist()
        return
    if not size:
        return
    parts = [value]
    if mapped and size > MAPPED:
        parts = pieces(value, size, 1, MAPPED, _flat)
    elif size > MOST:
        parts = pieces(value, size, PIECES, MOST // PIECES, _flat)
    read = sum([part.size for part in parts])
    _add_parts(found, parts, value.dtype)
    if read < size:
        found["sampled"], found["size"] = read, size


def _add_parts(found: dict[str, Any], parts: list[Any], dtype: Any) -> None:
    kind = dtype.kind
    if kind == "c":
        found["marks"] = (*found.get("marks", ()), "abs")
        parts, kind = [np.absolute(part) for part in parts], "f"
    elif kind == "V":
        parts, kind = [part.astype(np.float32) for part in parts], "f"
    if kind == "f":
        _add_floats(found, parts)
    elif kind in "iu":
        _add_range(found, parts)
    elif kind == "b":
        found["true"] = sum([int(np.count_nonzero(part)) for part in parts])
    elif kind in "Mm":
        _add_times(found, parts)


def _add_floats(found: dict[str, Any], parts: list[Any]) -> None:
    with np.errstate(all="ignore"):
        low = min([float(np.minimum.reduce(part, axis=None)) for part in parts])
        high = max([float(np.maximum.reduce(part, axis=None)) for part in parts])
        if low - low == 0 == high - high:  # `min` may pass over a nan that comes second
            total = sum([float(np.add.reduce(part, axis=None, dtype=np.float64)) for part in parts])
            if total - total == 0:
                found["min"], found["max"] = low, high
                found["mean"] = total / sum([part.size for part in parts])
                return
        counts = {
            "nan": sum([int(np.count_nonzero(np.isnan(part))) for part in parts]),
            "inf": sum([int(np.count_nonzero(part == np.inf)) for part in parts]),
            "-inf": sum([int(np.count_nonzero(part == -np.inf)) for part in parts]),
        }
        found.update((key, count) for key, count in counts.items() if count)
        finite = [part[np.isfinite(part)] for part in parts]
        _add_range(found, [part for part in finite if part.size])


def _add_range(found: dict[str, Any], parts: list[Any]) -> None:
    if not parts:
        return
    found["min"] = min([part.min().item() for part in parts])
    found["max"] = max([part.max().item() for part in parts])
    total = sum([float(np.add.reduce(part, axis=None, dtype=np.float64)) for part in parts])
    found["mean"] = total / sum([part.size for part in parts])


def _add_times(found: dict[str, Any], parts: list[Any]) -> None:
    known = [part[~np.isnat(part)] for part in parts]
    missing = sum([part.size for part in parts]) - sum([part.size for part in known])
    known = [part for part in known if part.size]
    if known:
        first, last = min([part.min() for part in known]), max([part.max() for part in known])
        found["marks"] = (*found.get("marks", ()), f"{first!s}..{last!s}")
    if missing:
        found["NaT"] = missing


def _flat(value: Any) -> Any:
    """Turn an array as it lies in memory, and take away its shape where that copies nothing."""
    order = sorted(range(value.ndim), key=[-abs(one) for one in value.strides].__getitem__)
    value = value.transpose(order)
    return value.reshape(-1) if value.flags.c_contiguous else value
