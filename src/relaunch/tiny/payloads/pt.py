"""What `torch.save` writes, written and read by hand: a zip with a pickle and the storages.

Reading runs nothing of what a pickle names: tensors and arrays become shapes and types, the plain
containers themselves, and anything else is refused by its name.
"""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from collections import OrderedDict
from math import prod

from relaunch.inside.payload.dtypes import DTYPES, dtype_of
from relaunch.inside.payload.values import Array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_STORAGES = {
    "bool": "BoolStorage", "uint8": "ByteStorage", "int8": "CharStorage", "int16": "ShortStorage",
    "int32": "IntStorage", "int64": "LongStorage", "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage", "float32": "FloatStorage", "float64": "DoubleStorage",
    "complex64": "ComplexFloatStorage", "complex128": "ComplexDoubleStorage",
}  # fmt: skip


def write_pt(value: Any) -> bytes:
    """Write a structure of arrays as `torch.save` would."""
    writer = _Writer()
    body = writer.whole(value)
    new = io.BytesIO()
    with zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as file:
        for name, data in (
            ("data.pkl", body),
            ("byteorder", b"little"),
            *((f"data/{n}", data) for n, data in enumerate(writer.storages)),
            ("version", b"3\n"),
        ):
            info = zipfile.ZipInfo(f"payload/{name}")
            # Storages begin at multiples of 64 bytes, as torch lays them to map them.
            begin = new.tell() + 30 + len(info.filename)
            fill = -(begin + 4) % 64
            info.extra = b"FB" + struct.pack("<H", fill) + b"Z" * fill
            file.writestr(info, data)
    return new.getvalue()


class _Writer:
    """Writes a pickle of protocol 2 that only names what torch itself names."""

    def __init__(self) -> None:
        self.storages: list[bytes] = []

    def whole(self, value: Any) -> bytes:
        return b"\x80\x02" + self._one(value) + b"."

    def _one(self, value: Any) -> bytes:
        if isinstance(value, Array):
            return self._tensor(value)
        if isinstance(value, OrderedDict):
            return b"ccollections\nOrderedDict\n)R(" + self._pairs(value) + b"u"
        if isinstance(value, dict):
            return b"}(" + self._pairs(value) + b"u"
        if isinstance(value, list):
            return b"](" + b"".join(map(self._one, value)) + b"e"
        if isinstance(value, tuple):
            return b"(" + b"".join(map(self._one, value)) + b"t"
        return _plain(value)

    def _pairs(self, value: dict[Any, Any]) -> bytes:
        return b"".join(self._one(key) + self._one(one) for key, one in value.items())

    def _tensor(self, array: Array) -> bytes:
        name = array.dtype.name
        number = str(len(self.storages))
        self.storages.append(array.data)
        strides = tuple(prod(array.shape[n + 1 :]) for n in range(len(array.shape)))
        storage = _STORAGES.get(name)
        kind = f"ctorch\n{storage}\n".encode() if storage else b"ctorch.storage\nUntypedStorage\n"
        count = len(array.data) // array.dtype.size if storage else len(array.data)
        held = (b"(" + _plain("storage") + kind + _plain(number) + _plain("cpu") + _plain(count)
                + b"tQ")  # fmt: skip
        layout = self._one(0) + self._one(array.shape) + self._one(strides) + _plain(False)
        hooks = b"ccollections\nOrderedDict\n)R"
        if storage:
            return b"ctorch._utils\n_rebuild_tensor_v2\n(" + held + layout + hooks + b"tR"
        typed = f"ctorch\n{name}\n".encode()
        return b"ctorch._utils\n_rebuild_tensor_v3\n(" + held + layout + hooks + typed + b"tR"


def _plain(value: Any) -> bytes:
    if value is None or isinstance(value, bool):
        return b"N" if value is None else b"\x88" if value else b"\x89"
    if isinstance(value, (str, int, float, bytes)):
        # Between the two bytes of the protocol and the final dot; nothing of it needs a memo.
        return _without_memo(pickle.dumps(value, 2))
    raise ValueError(f"a {type(value).__name__} cannot be written to .pt")


def _without_memo(data: bytes) -> bytes:
    import pickletools

    kept = []
    marks = [(op, at) for op, _, at in pickletools.genops(data)]
    ends = [at for _, at in marks[1:]] + [len(data)]
    for (op, at), end in zip(marks, ends, strict=True):
        if op.name not in ("PROTO", "STOP", "BINPUT", "LONG_BINPUT"):
            kept.append(data[at:end])
    return b"".join(kept)


class _Storage:
    """What a pickle says of a storage."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


class _Refused(pickle.UnpicklingError):
    pass


def _refuse(module: str, name: str) -> Callable[..., Any]:
    said = f"it holds a {module}.{name}, which only its own code could make"
    raise _Refused(said)


def _tensor(storage: Any, _offset: int, size: Any, _stride: Any, *rest: Any) -> Array:
    kinds = {code: name for name, code in _STORAGES.items()}
    named = next((one for one in rest if isinstance(one, _Dtype)), None)
    kind = named.name if named else kinds.get(storage.kind, "")
    return Array(tuple(size), dtype_of(kind), b"")


class _Dtype(str):
    """A type of torch by its name."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)


class _NumpyDtype:
    """A type of numpy by its code."""

    def __init__(self, code: str, *_: Any) -> None:
        self.code = code

    def __setstate__(self, state: Any) -> None:
        pass


class _NumpyArray:
    """An array of numpy: what its state says."""

    shape: tuple[int, ...] = ()
    code = ""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.shape, self.code = tuple(state[1]), state[2].code


class SafeUnpickler(pickle.Unpickler):
    """Knows tensors, arrays and plain containers, and runs nothing."""

    def find_class(self, module: str, name: str) -> Any:
        """Return our own stand-in for what is named."""
        root = module.partition(".")[0]
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("_codecs", "encode"):
            return lambda text, encoding: text.encode(encoding)
        if root == "torch":
            if name.startswith("_rebuild_tensor") or name == "_rebuild_tensor":
                return _tensor
            if name == "_rebuild_parameter":
                return lambda data, *_: data
            if name.endswith("Storage"):
                return _Storage(name)
            if name in DTYPES:
                return _Dtype(name)
        if root == "numpy":
            if name == "dtype":
                return _NumpyDtype
            if name in ("_reconstruct", "ndarray", "_frombuffer"):
                return _NumpyArray
        return _refuse(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """Return what is said of a storage."""
        return pid[1]


def read_pickle(data: bytes) -> Any:
    """Read a pickle without running it; ValueError says what it holds that cannot be read."""
    try:
        value = SafeUnpickler(io.BytesIO(data)).load()
    except _Refused as error:
        raise ValueError(str(error)) from None
    except Exception as error:  # noqa: BLE001  # a broken pickle may raise anything
        raise ValueError(f"no pickle that can be read: {type(error).__name__}: {error}") from None
    return _named(value)


def _named(value: Any) -> Any:
    if isinstance(value, _NumpyArray):
        return Array(value.shape, dtype_of(value.code), b"")
    if isinstance(value, dict):
        return type(value)((key, _named(one)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return type(value)(_named(one) for one in value)
    return value


def read_pt(path: str) -> Any:
    """Read what `torch.save` wrote: shapes and types, never the storages."""
    if not zipfile.is_zipfile(path):
        raise ValueError("no file of torch.save since torch 1.6")
    with zipfile.ZipFile(path) as file:
        name = next((one for one in file.namelist() if one.endswith("data.pkl")), "")
        if not name:
            raise ValueError("no data.pkl in it: perhaps a TorchScript model")
        return read_pickle(file.read(name))
