"""Files of arrays: .npy, .npz and .safetensors, read without numpy and cut without a copy."""

from __future__ import annotations

import ast
import fnmatch
import json
import math
import mmap
import os
import struct
import zipfile
from functools import cached_property
from hashlib import blake2b
from io import BytesIO
from pathlib import Path

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.search.shrink.formats.axes import AXES, SHAPES, VALUES
from relaunch.search.shrink.formats.cuts import Cuts
from relaunch.search.shrink.formats.strided import Array
from relaunch.search.shrink.formats.whole import AS_BYTES
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from relaunch.search.shrink.model import Pass

    Memory = bytes | memoryview

    class Frame(Protocol):
        """How arrays are written into one file."""

        def size(self, arrays: Mapping[str, Array]) -> int:
            """Return how many bytes they take."""

        def written(self, arrays: Mapping[str, Array]) -> Iterator[Memory]:
            """Yield the bytes of the file."""


_MAPPED_FROM = 1 << 24
_MAGIC = b"\x93NUMPY"
_SAFE = {"F64": "f8", "F32": "f4", "F16": "f2", "BF16": "bf", "BOOL": "b1"}
_SAFE |= {
    f"{letter.upper()}{bits}": f"{letter}{bits // 8}" for letter in "iu" for bits in (8, 16, 32, 64)
}


def read(path: str, *, keep: Sequence[str] = ()) -> Arrays:
    """Read a file of arrays, whichever of the three it is; `keep` are patterns of names."""
    memory = mapped(path)
    frame: Frame
    try:
        if bytes(memory[:6]) == _MAGIC:
            frame, arrays = _read_npy(memory)
        elif bytes(memory[:2]) == b"PK":
            frame, arrays = _read_npz(path)
        else:
            frame, arrays = _read_safetensors(memory)
    except (
        ValueError,
        KeyError,
        TypeError,
        SyntaxError,
        struct.error,
        zipfile.BadZipFile,
    ) as error:
        raise UsageError(
            f"`{path}` has no arrays that can be read: {error}", hint=AS_BYTES
        ) from None
    return Arrays(frame, arrays, keep=tuple(keep), original=memory)


def mapped(path: str) -> memoryview:
    """Return the bytes of a file; of a large one without reading them."""
    size = os.path.getsize(path)
    if size < _MAPPED_FROM:
        return memoryview(Path(path).read_bytes())
    with open(path, "rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class Arrays:
    """Arrays by name, in one file."""

    def __init__(
        self,
        frame: Frame,
        arrays: Mapping[str, Array],
        *,
        keep: tuple[str, ...] = (),
        original: Memory | None = None,
    ) -> None:
        """Take what writes them, and the bytes they were read from."""
        self.frame = frame
        self.arrays = arrays
        self.keep = keep
        self._original = original

    @cached_property
    def bytes(self) -> int:
        """How large the file is."""
        if self._original is not None:
            return len(self._original)
        return self.frame.size(self.arrays)

    @property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, plainer values, fewer axes."""
        cost = sum(array.cost for array in self.arrays.values())
        axes = sum(len(array.shape) for array in self.arrays.values())
        size = sum(array.nbytes for array in self.arrays.values())
        return (size, len(self.arrays), self.bytes, cost, axes)

    @property
    def key(self) -> builtins.bytes:
        """A digest of names and arrays."""
        digest = blake2b(digest_size=16)
        for name, array in self.arrays.items():
            digest.update(name.encode() + b"\0" + array.digest)
        return digest.digest()

    def write(self, path: str) -> None:
        """Write the file, slice by slice."""
        with open(path, "wb") as file:
            if self._original is not None:
                file.write(self._original)
            else:
                file.writelines(self.frame.written(self.arrays))

    def passes(self) -> Sequence[Pass]:
        """Return the passes: arrays, axes, values; shapes last."""
        names = [] if isinstance(self.frame, Npy) else [_NAMES]
        return [*names, *AXES, *VALUES, *SHAPES]

    @cached_property
    def loose(self) -> list[str]:
        """The arrays that may go."""
        return [
            name
            for name in self.arrays
            if not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.keep)
        ]

    def with_arrays(self, changes: Mapping[str, Array]) -> Arrays:
        """Return the file with some arrays changed."""
        return Arrays(self.frame, {**self.arrays, **changes}, keep=self.keep)


def _without_names(model: Arrays, _: int, low: int, high: int) -> Smaller | None:
    gone = set(model.loose[low:high])
    arrays = {name: array for name, array in model.arrays.items() if name not in gone}
    what = f"without {len(gone):,} of {len(model.arrays):,} arrays"
    return Smaller(model=Arrays(model.frame, arrays, keep=model.keep), what=what)


_NAMES = Cuts("arrays", lambda model: [len(model.loose)], _without_names)


# --- .npy


class Npy(Record):
    """One array behind a header."""

    descr: Any
    fortran: bool
    version: int

    def header(self, array: Array) -> bytes:
        """Return the header as numpy writes it."""
        shape = array.shape[::-1] if self.fortran else array.shape
        told = {"descr": self.descr, "fortran_order": self.fortran, "shape": tuple(shape)}
        text = "{" + "".join(f"{key!r}: {value!r}, " for key, value in told.items()) + "}"
        data = text.encode("utf-8" if self.version == 3 else "latin-1")
        width = 2 if self.version == 1 else 4
        pad = -(len(_MAGIC) + 2 + width + len(data) + 1) % 64
        data += b" " * pad + b"\n"
        size = struct.pack("<H" if width == 2 else "<I", len(data))
        return _MAGIC + bytes([self.version, 0]) + size + data

    def size(self, arrays: Mapping[str, Array]) -> int:
        """Return how many bytes the array takes."""
        (array,) = arrays.values()
        return len(self.header(array)) + array.nbytes

    def written(self, arrays: Mapping[str, Array]) -> Iterator[Memory]:
        """Yield header and data."""
        (array,) = arrays.values()
        yield self.header(array)
        yield from array.chunks()


def _read_npy(memory: memoryview) -> tuple[Npy, dict[str, Array]]:
    version = memory[6]
    width = 2 if version == 1 else 4
    (length,) = struct.unpack_from("<H" if width == 2 else "<I", memory, 8)
    start = 8 + width + length
    told = ast.literal_eval(
        bytes(memory[8 + width : start]).decode("utf-8" if version == 3 else "latin-1")
    )
    descr, fortran = told["descr"], told["fortran_order"]
    shape = tuple(told["shape"][::-1]) if fortran else tuple(told["shape"])
    count = math.prod(shape)
    data = memory[start:]
    if "O" in str(descr):
        raise ValueError("it holds objects, which only a pickle can")
    itemsize = len(data) // count if count else 0
    if count * itemsize != len(data):
        raise ValueError("it is cut short")
    kind = descr[1:] if isinstance(descr, str) else "?"
    order = ">" if isinstance(descr, str) and descr[0] == ">" else "<"
    array = Array(kind, itemsize, data, shape, order=order)
    return Npy(descr=descr, fortran=fortran, version=version), {"array": array}


# --- .npz


class Npz(Record):
    """A zip file with a .npy for each array."""

    frames: Mapping[str, Npy]
    compression: int

    def size(self, arrays: Mapping[str, Array]) -> int:
        """Return how many bytes the file takes; what is large and packed is not packed for that."""
        if sum(array.nbytes for array in arrays.values()) < _MAPPED_FROM:
            return sum(len(chunk) for chunk in self.written(arrays))
        beside = sum(76 + 2 * len(f"{name}.npy".encode()) for name in arrays) + 22
        return beside + sum(self.frames[name].size({name: arrays[name]}) for name in arrays)

    def written(self, arrays: Mapping[str, Array]) -> Iterator[Memory]:
        """Yield the zip file."""
        file = BytesIO()
        with zipfile.ZipFile(file, "w", self.compression) as archive:
            for name, array in arrays.items():
                told = zipfile.ZipInfo(f"{name}.npy")
                told.compress_type = self.compression
                with archive.open(told, "w", force_zip64=array.nbytes >= 1 << 31) as entry:
                    entry.write(self.frames[name].header(array))
                    for chunk in array.chunks():
                        entry.write(chunk)
        yield file.getvalue()


def _read_npz(path: str) -> tuple[Npz, dict[str, Array]]:
    frames: dict[str, Npy] = {}
    arrays: dict[str, Array] = {}
    compression = zipfile.ZIP_STORED
    with zipfile.ZipFile(path) as archive:
        for told in archive.infolist():
            if not told.filename.endswith(".npy"):
                raise ValueError(f"`{told.filename}` is no array")
            name = told.filename.removesuffix(".npy")
            frames[name], held = _read_npy(memoryview(archive.read(told)))
            arrays[name] = held["array"]
            compression = told.compress_type
    return Npz(frames=frames, compression=compression), arrays


# --- .safetensors


class Safetensors(Record):
    """A JSON header, then the arrays one after another."""

    dtypes: Mapping[str, str]
    metadata: Any

    def header(self, arrays: Mapping[str, Array]) -> bytes:
        """Return the header, with its length."""
        told: dict[str, Any] = {} if self.metadata is None else {"__metadata__": self.metadata}
        at = 0
        for name, array in arrays.items():
            told[name] = {
                "dtype": self.dtypes[name],
                "shape": list(array.shape),
                "data_offsets": [at, at + array.nbytes],
            }
            at += array.nbytes
        data = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
        data += b" " * (-len(data) % 8)
        return struct.pack("<Q", len(data)) + data

    def size(self, arrays: Mapping[str, Array]) -> int:
        """Return how many bytes the file takes."""
        return len(self.header(arrays)) + sum(array.nbytes for array in arrays.values())

    def written(self, arrays: Mapping[str, Array]) -> Iterator[Memory]:
        """Yield header and data."""
        yield self.header(arrays)
        for array in arrays.values():
            yield from array.chunks()


def _read_safetensors(memory: memoryview) -> tuple[Safetensors, dict[str, Array]]:
    (length,) = struct.unpack_from("<Q", memory)
    if not 2 <= length <= len(memory) - 8:
        raise ValueError("it is none of .npy, .npz and .safetensors")
    told = json.loads(bytes(memory[8 : 8 + length]))
    metadata = told.pop("__metadata__", None)
    arrays: dict[str, Array] = {}
    for name, one in sorted(told.items(), key=lambda item: item[1]["data_offsets"]):
        low, high = one["data_offsets"]
        shape = tuple(one["shape"])
        data = memory[8 + length + low : 8 + length + high]
        count = math.prod(shape)
        itemsize = len(data) // count if count else 0
        if count * itemsize != high - low or len(data) != high - low:
            raise ValueError(f"`{name}` is cut short")
        arrays[name] = Array(_SAFE.get(one["dtype"], "?"), itemsize, data, shape)
    dtypes = {name: str(one["dtype"]) for name, one in told.items()}
    return Safetensors(dtypes=dtypes, metadata=metadata), arrays
