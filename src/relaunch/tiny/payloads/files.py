"""A payload to a file and back, by the ending of its name."""

from __future__ import annotations

import json
import os
import zipfile

from relaunch.errors import TinyError
from relaunch.inside.payload.values import Array
from relaunch.tiny.payloads.npy import read_npy, write_npy
from relaunch.tiny.payloads.pt import read_pickle, read_pt, write_pt
from relaunch.tiny.payloads.safetensors import read_safetensors, write_safetensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WRITTEN = (".npy", ".npz", ".pt", ".pth", ".safetensors", ".json", ".bin")
READ = (".pt", ".pth", ".npy", ".npz", ".safetensors", ".json", ".pkl", ".pickle")
_MOST_HEAD = 1 << 16


def read_like(path: str) -> Any:
    """Return the structure of a file: containers, and arrays with their shapes and types."""
    if not os.path.isfile(path):
        raise TinyError(f"{path} does not exist", hint=f"ls {os.path.dirname(path) or '.'}")
    ending = os.path.splitext(path)[1].lower()
    try:
        if ending in (".pt", ".pth", ".ckpt"):
            return read_pt(path)
        if ending == ".safetensors":
            return read_safetensors(path)
        if ending == ".npz":
            with zipfile.ZipFile(path) as file:
                return {name.removesuffix(".npy"): _head_of(file, name) for name in file.namelist()}
        with open(path, "rb") as plain:
            if ending == ".npy":
                return read_npy(plain.read(_MOST_HEAD))
            data = plain.read()
        if ending in (".pkl", ".pickle"):
            return read_pickle(data)
        if ending == ".json":
            return json.loads(data)
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile, struct_error()) as error:
        raise TinyError(f"{path} cannot be read: {error}", hint=f"ls -l {path}") from None
    except OSError as error:
        raise TinyError(f"{path} cannot be read: {error.strerror}", hint=f"ls -l {path}") from None
    raise TinyError(f"--like {path}: of {', '.join(READ)} there is none", hint="--like batch.pt")


def struct_error() -> type[Exception]:
    """Return what `struct` raises."""
    import struct

    return struct.error


def _head_of(file: zipfile.ZipFile, name: str) -> Array:
    with file.open(name) as member:
        return read_npy(member.read(_MOST_HEAD))


def as_file(value: Any, path: str) -> bytes:
    """Return the bytes of a file with that ending."""
    ending = os.path.splitext(path)[1].lower()
    if ending in (".pt", ".pth"):
        return write_pt(value)
    if ending == ".json":
        return (json.dumps(plain(value), indent=1) + "\n").encode()
    arrays = arrays_of(value)
    if ending == ".safetensors":
        return write_safetensors({name or "payload": one for name, one in arrays})
    if ending == ".npz":
        return _npz(arrays)
    if ending == ".npy":
        if len(arrays) != 1:
            raise TinyError(f"an .npy holds one array, these are {len(arrays)}", hint="-o p.npz")
        return write_npy(arrays[0][1])
    if ending == ".bin":
        return b"".join(one.data for _, one in arrays)
    said = f"-o {path}: which format? There are {', '.join(WRITTEN)}"
    raise TinyError(said, hint="-o payload.npy")


def _npz(arrays: list[tuple[str, Array]]) -> bytes:
    import io

    new = io.BytesIO()
    with zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as file:
        for name, array in arrays:
            file.writestr(zipfile.ZipInfo(f"{name or 'arr_0'}.npy"), write_npy(array))
    return new.getvalue()


def arrays_of(value: Any, name: str = "") -> list[tuple[str, Array]]:
    """Return all arrays of a structure with their paths."""
    if isinstance(value, Array):
        return [(name, value)]
    if isinstance(value, dict):
        pairs = [(str(key), one) for key, one in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(str(n), one) for n, one in enumerate(value)]
    else:
        return []
    return [found for key, one in pairs for found in arrays_of(one, f"{name}.{key}".lstrip("."))]


def plain(value: Any) -> Any:
    """Return lists for arrays: what JSON can hold, nan and inf as Python writes them."""
    if isinstance(value, Array):
        return _real(value.nested())
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if not isinstance(value, bytes) else value.decode("latin-1")


def _real(value: Any) -> Any:
    if isinstance(value, list):
        return [_real(one) for one in value]
    return [value.real, value.imag] if isinstance(value, complex) else value
