"""npy files by hand: their header is a line of Python, the rest is the array."""

from __future__ import annotations

import ast
from math import prod

from relaunch.inside.payload.dtypes import dtype_of
from relaunch.inside.payload.values import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAGIC = b"\x93NUMPY"
_CODES = {"bool": "|b1", "int8": "|i1", "uint8": "|u1", "complex64": "<c8", "complex128": "<c16"}


def write_npy(array: Array) -> bytes:
    """Write an array as numpy would."""
    dtype = array.dtype
    code = _CODES.get(dtype.name)
    if code is None:
        if not dtype.code:
            raise ValueError(f"npy has no {dtype.name}: -o payload.safetensors, or payload.pt")
        code = f"<{ {'float': 'f', 'int': 'i', 'uint': 'u'}[dtype.family] }{dtype.size}"
    return _head(code, array.shape) + array.data


def _head(code: str, shape: tuple[int, ...], *, is_fortran: bool = False) -> bytes:
    said = f"{{'descr': {code!r}, 'fortran_order': {is_fortran}, 'shape': {shape!r}, }}"
    length = -(len(MAGIC) + 4 + len(said) + 1) % 64
    said += " " * length + "\n"
    return MAGIC + b"\1\0" + len(said).to_bytes(2, "little") + said.encode()


def read_head(data: bytes) -> tuple[dict[str, Any], int]:
    """Return what the header says, and where the elements begin."""
    head, at = _said(data)
    if not isinstance(head.get("descr"), str):
        raise ValueError("an array of records")
    return head, at


def kind_of(head: bytes) -> str:
    """Return dtype and rank of an array by the beginning of its file, `npy` if that is broken."""
    try:
        said, _ = _said(head)
    except ValueError:
        return "npy"
    return f"{said.get('descr')} of rank {len(said['shape'])}"


def _said(data: bytes) -> tuple[dict[str, Any], int]:
    if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 6:
        raise ValueError("not npy")
    wide = 2 if data[6] == 1 else 4
    size = int.from_bytes(data[8 : 8 + wide], "little")
    at = 8 + wide + size
    try:
        head = ast.literal_eval(data[8 + wide : at].decode("latin-1"))
    except SyntaxError:
        raise ValueError("a torn header") from None
    if not isinstance(head, dict) or not isinstance(head.get("shape"), tuple):
        raise ValueError("a header without a shape")
    return head, at


def read_npy(data: bytes) -> Array:
    """Read shape and type, and the elements where they are as we write them."""
    head, at = read_head(data)
    code = head["descr"]
    if "O" in code or code[1:2] in "USMmV":
        raise ValueError(f"elements of {code} are no numbers")
    return Array(tuple(head["shape"]), dtype_of(code), data[at:])


def cut(data: bytes, most: int) -> bytes:
    """Return an array of the same type with at most so many elements in each direction."""
    head, at = read_head(data)
    code, shape = head["descr"], tuple(head["shape"])
    if "O" in code:
        raise ValueError("objects have no size of their own")
    is_fortran = bool(head.get("fortran_order"))
    new_shape = tuple(min(one, most) for one in shape)
    shape = shape[::-1] if is_fortran else shape
    size = int(code[2:]) * (4 if code[1] == "U" else 1)
    kept = data[at:]
    for axis, old in enumerate(shape):
        new = min(old, most)
        inner = size * prod(shape[axis + 1 :])
        outer = prod(min(one, most) for one in shape[:axis])
        kept = b"".join(kept[n * old * inner : n * old * inner + new * inner] for n in range(outer))
    return _head(code, new_shape, is_fortran=is_fortran) + kept
