"""Reads the numbers of a tensor: least, greatest, mean; how many are nan or inf, if any are.

In pieces, so small that torch starts no thread for them: a process whose torch has started its
threads hangs in forked children. Of a very large tensor only some pieces are read, which is said.
"""

from __future__ import annotations

import sys

from relaunch.inside.looks.numbers import WHOLE, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GRAIN = 32_000
"""Elements of a piece; from 32,768 on torch takes its threads."""
PIECES = 128
"""Pieces that are read at the most, spread over the tensor."""
DEVICE_GRAIN, DEVICE_PIECES = 1 << 24, 16
"""Likewise on a GPU, where each piece is waited for."""
FEW, _ALL = 1 << 21, 1 << 30
"""Elements among which nan is looked for at a time, in each piece."""
_INF = float("inf")
_EXACT = 1 << 62

torch: Any = sys.modules.get("torch")  # there, as somebody has a tensor
_aminmax: Any = getattr(torch, "aminmax", None)
_float64: Any = getattr(torch, "float64", None)
_FLOATS = {getattr(torch, name, None) for name in ("float32", "float64")}
_HALVES = {getattr(torch, name, None) for name in ("float16", "bfloat16")}
_INTS = {getattr(torch, name, None) for name in ("uint8", "int8", "int16", "int32", "int64")}


def add_numbers(found: dict[str, Any], value: Any) -> None:
    """Add to its facts what is read of a tensor that needs no gradient."""
    size = value.numel()
    if size <= WHOLE and "kept" not in found:
        found["values"] = (value.dequantize() if value.is_quantized else value).tolist()
        return
    parts = _pieces(value, size)
    read = sum([piece.numel() for piece in parts])
    if size:
        _add(found, parts, value.dtype)
    if read < size:
        found["sampled"], found["size"] = read, size


def _add(found: dict[str, Any], parts: list[Any], dtype: Any) -> None:
    if dtype in _FLOATS:
        _add_floats(found, parts, None)
    elif dtype in _INTS:
        _add_ints(found, parts)
    elif dtype is torch.bool:
        found["true"] = sum([piece.sum().item() for piece in parts])
    elif dtype in _HALVES:
        _add_floats(found, parts, torch.float32)
    elif dtype.is_complex:
        found["marks"] = (*found.get("marks", ()), "abs")
        _add_floats(found, [piece.abs() for piece in parts], None)
    elif parts[0].is_quantized:
        _add_floats(found, [piece.dequantize() for piece in parts], None)
    elif dtype.is_floating_point:  # eight bits or fewer: too few to compute with
        _add_floats(found, [piece.to(torch.float32) for piece in parts], None)
    elif dtype is getattr(torch, "uint64", None):
        _add_floats(found, [piece.to(_float64) for piece in parts], None)
    else:
        _add_ints(found, [piece.to(torch.int64) for piece in parts])


def _add_floats(found: dict[str, Any], parts: list[Any], wide: Any) -> None:
    low, high, total, count = _INF, -_INF, 0.0, 0
    for piece in parts:
        least, greatest, part = _three(piece, wide)
        if least - least != 0 or greatest - greatest != 0:
            _add_broken(found, parts)
            return
        low, high = min(low, least), max(high, greatest)
        total += part
        count += piece.numel()
    if total - total != 0:  # the sum was too large for the type, the mean is not
        total = sum([piece.sum(dtype=_float64).item() for piece in parts])
    found["min"], found["max"], found["mean"] = low, high, total / count


def _three(piece: Any, wide: Any) -> Any:
    """Return the least, the greatest and the sum; from a GPU in one go, for each waits for it."""
    least, greatest = _aminmax(piece)
    if piece.is_cuda:
        both = least.to(_float64), greatest.to(_float64), piece.sum(dtype=_float64)
        return torch.stack(both).tolist()
    total = piece.sum() if wide is None else piece.sum(dtype=wide)
    return least.item(), greatest.item(), total.item()


def _add_broken(found: dict[str, Any], parts: list[Any]) -> None:
    """Count what is no finite number, and take the range of the rest."""
    counts = {"nan": 0, "inf": 0, "-inf": 0}
    low, high, total, finite = _INF, -_INF, 0.0, 0
    # It takes memory: of a GPU, which may be nearly full, only a little.
    for piece in [one for part in parts for one in pieces(part, part.numel(), _ALL, FEW, _flat)]:
        counts["nan"] += torch.isnan(piece).sum().item()
        counts["inf"] += (piece == _INF).sum().item()
        counts["-inf"] += (piece == -_INF).sum().item()
        rest = piece[torch.isfinite(piece)]
        if rest.numel():
            least, greatest = _aminmax(rest)
            low, high = min(low, least.item()), max(high, greatest.item())
            total += rest.sum(dtype=_float64 if rest.device.type != "mps" else None).item()
            finite += rest.numel()
    if finite:
        found["min"], found["max"], found["mean"] = low, high, total / finite
    found.update((key, count) for key, count in counts.items() if count)


def _add_ints(found: dict[str, Any], parts: list[Any]) -> None:
    low = high = None
    total, count = 0, 0
    for piece in parts:
        size = piece.numel()
        least, greatest = [one.item() for one in _aminmax(piece)]
        low = least if low is None else min(low, least)
        high = greatest if high is None else max(high, greatest)
        fits = max(abs(least), abs(greatest)) * size < _EXACT
        total += piece.sum(dtype=None if fits else _float64).item()
        count += size
    found["min"], found["max"], found["mean"] = low, high, total / count


def _pieces(value: Any, size: int) -> list[Any]:
    if size <= GRAIN:
        return [value]
    if value.is_cpu:
        return pieces(value, size, PIECES, GRAIN, _flat)
    return pieces(value, size, DEVICE_PIECES, DEVICE_GRAIN, _flat)


def _flat(value: Any) -> Any:
    """Turn a tensor as it lies in memory, and take away its shape where that copies nothing."""
    order = sorted(range(value.dim()), key=[-one for one in value.stride()].__getitem__)
    value = value.permute(order)
    return value.view(-1) if value.is_contiguous() else value
