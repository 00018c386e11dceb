"""safetensors by hand: a JSON header with offsets, then the tensors."""

from __future__ import annotations

import json

from relaunch.inside.payload.dtypes import dtype_of
from relaunch.inside.payload.values import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
    "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16",
    "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
    "complex64": "C64",
}  # fmt: skip
_LONGEST_HEAD = 100 << 20


def write_safetensors(tensors: Mapping[str, Array]) -> bytes:
    """Write named arrays."""
    head: dict[str, Any] = {}
    at = 0
    for name, array in tensors.items():
        if array.dtype.name not in _NAMES:
            raise ValueError(
                f"safetensors has no {array.dtype.name}: -o payload.npy, or payload.pt"
            )
        head[name] = {"dtype": _NAMES[array.dtype.name], "shape": list(array.shape),
                      "data_offsets": [at, at + len(array.data)]}  # fmt: skip
        at += len(array.data)
    said = json.dumps(head, separators=(",", ":")).encode()
    said += b" " * (-len(said) % 8)
    return len(said).to_bytes(8, "little") + said + b"".join(one.data for one in tensors.values())


def read_safetensors(path: str) -> dict[str, Array]:
    """Read the shapes and types; never the tensors."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if not 2 <= size <= _LONGEST_HEAD:
            raise ValueError("not safetensors")
        head = json.loads(file.read(size))
    kinds = {code: name for name, code in _NAMES.items()}
    return {
        name: Array(tuple(one["shape"]), dtype_of(kinds.get(one["dtype"], one["dtype"])), b"")
        for name, one in head.items()
        if name != "__metadata__"
    }
