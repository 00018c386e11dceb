"""The first layers of a real model: its safetensors cut by byte ranges, never loaded whole.

Standard library only. What stands outside of the layers (embeddings, norms, heads) stays as it is.
"""

from __future__ import annotations

import json
import os
import re

from relaunch.errors import RelaunchError, UsageError
from relaunch.record import Record
from relaunch.tiny.models.names import kind_of
from relaunch.tiny.models.shrunk import Change, is_ints, parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, BinaryIO

_NUMBERED = re.compile(r"^(.*?\.|)(\d+)\.(.*)$")
_BLOCK = 1 << 22


class Tensor(Record):
    """Where a tensor lies."""

    name: str
    file: str
    begin: int
    end: int
    dtype: str
    shape: tuple[int, ...]


def tensors(folder: str) -> list[Tensor]:
    """Return every tensor of a folder's safetensors, from their headers alone."""
    index = os.path.join(folder, "model.safetensors.index.json")
    if os.path.exists(index):
        try:
            with open(index, encoding="utf-8") as file:
                names = sorted(set(json.load(file)["weight_map"].values()))
        except (ValueError, KeyError, AttributeError) as error:
            raise RelaunchError(f"{index} is no index of weights: {error}") from None
    elif os.path.exists(os.path.join(folder, "model.safetensors")):
        names = ["model.safetensors"]
    else:
        raise UsageError(
            f"{folder} has no model.safetensors, so no real layers to keep",
            hint=f"rl tiny model {folder} -o OUT",
        )
    return [one for name in names for one in header(os.path.join(folder, name))]


def header(path: str) -> list[Tensor]:
    """Return the tensors that a file's header tells of."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = os.fstat(file.fileno()).st_size
            if not 2 <= length <= size - 8:
                raise ValueError(f"its header would have {length:,} bytes")
            told = json.loads(file.read(length))
        found = [
            _tensor(path, name, one, 8 + length) for name, one in told.items() if name[:2] != "__"
        ]
        if any(one.end > size for one in found):
            raise ValueError(f"it ends at byte {size:,} but tensors go on")
    except FileNotFoundError:
        raise RelaunchError(f"{path} is named by the index and is not there") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RelaunchError(f"{path} is no whole safetensors file: {error}") from None
    return found


def _tensor(path: str, name: str, told: Mapping[str, Any], base: int) -> Tensor:
    begin, end = told["data_offsets"]
    return Tensor(
        name=name, file=path, begin=base + begin, end=base + end, dtype=told["dtype"],
        shape=tuple(told["shape"]),
    )  # fmt: skip


def stacks(found: list[Tensor], config: Mapping[str, Any]) -> dict[str, int]:
    """Return where layers are numbered and how many there are: `model.layers.` -> 32.

    A numbered place is a stack of layers when the configuration has its number as one of layers.
    """
    highest: dict[str, int] = {}
    for one in found:
        match = _NUMBERED.match(one.name)
        if match:
            highest[match[1]] = max(highest.get(match[1], 0), int(match[2]))
    told = {value for _, value in _layer_numbers(config).items()}
    return {place: top + 1 for place, top in highest.items() if top + 1 in told}


def _layer_numbers(config: Mapping[str, Any]) -> dict[tuple[str, ...], int]:
    return {
        (*path, name): value
        for path, part in parts(config)
        for name, value in part.items()
        if type(value) is int and kind_of(name) == "layers"
    }


def fewer(config: Mapping[str, Any], cut: set[int], layers: int) -> list[Change]:
    """Return what a configuration must say of the first layers alone."""
    found = []
    for path, part in parts(config):
        here = [
            value for name, value in part.items()
            if type(value) is int and value in cut and kind_of(name) == "layers" and value > layers
        ]  # fmt: skip
        for name, value in part.items():
            new: Any = value
            if type(value) is int and kind_of(name) == "layers" and value in here:
                new = layers
            elif is_ints(value) and kind_of(name) == "index" and here:
                new = [one for one in value if -layers <= one < layers]
            elif isinstance(value, list) and len(value) in here:
                new = value[:layers]
            elif name == "max_window_layers" and type(value) is int and here:
                new = min(value, layers)
            if new != value:
                found.append(Change(path=(*path, name), old=value, new=new))
    return found


def kept(found: list[Tensor], places: Mapping[str, int], layers: int) -> list[Tensor]:
    """Return the tensors that stay."""
    stay = []
    for one in found:
        match = _NUMBERED.match(one.name)
        if not (match and match[1] in places and int(match[2]) >= layers):
            stay.append(one)
    return stay


def write(path: str, stay: list[Tensor]) -> int:
    """Copy the tensors' bytes into one file; return its size."""
    told: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for one in stay:
        size = one.end - one.begin
        told[one.name] = {
            "dtype": one.dtype,
            "shape": list(one.shape),
            "data_offsets": [at, at + size],
        }
        at += size
    head = json.dumps(told, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    with open(path, "wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        for one in stay:
            with open(one.file, "rb") as file:
                _copy(file, out, one.begin, one.end)
        return out.tell()


def _copy(file: BinaryIO, out: BinaryIO, begin: int, end: int) -> None:
    file.seek(begin)
    left = end - begin
    while left:
        block = file.read(min(left, _BLOCK))
        if not block:
            raise RelaunchError(f"{file.name} ended while it was read")
        out.write(block)
        left -= len(block)
