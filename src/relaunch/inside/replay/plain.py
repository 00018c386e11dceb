"""Reads plain data: what it calls comes from a closed table, and nothing is imported by its name.

The bytes are those of a pickle, whose memo keeps what is shared and what is in itself, and which C
writes quickly. Of its instructions those are known that plain data need.
"""

from __future__ import annotations

import math
import pickle
import zlib
from pickle import UnpicklingError

from relaunch.inside.capture import rebuild

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAKERS = {one.__name__: one for one in rebuild.PLAIN}
_Base: Any = pickle._Unpickler  # the one that is not C
_SAME = (
    "PROTO", "FRAME", "STOP", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2",
    "LONG1", "LONG4", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8",
    "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET",
    "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "MARK", "FROZENSET", "MEMOIZE", "BINGET",
    "LONG_BINGET", "BINPUT", "LONG_BINPUT", "POP", "POP_MARK", "STACK_GLOBAL",
)  # fmt: skip
"""Instructions that only push, keep or drop."""


def maker(module: str, name: str) -> Any:
    """Return what plain data may call by this name."""
    if module != rebuild.NAME or name not in _MAKERS:
        raise UnpicklingError(f"plain data do not hold {module}.{name}")
    return _MAKERS[name]


class Own(pickle.Unpickler):
    """Reads, at full speed, plain data that this user sealed."""

    find_class = staticmethod(maker)


class Foreign(_Base):  # type: ignore[misc]  # no stub has it
    """Reads plain data of anybody: broken data raise, and no length in them is believed."""

    find_class = staticmethod(maker)

    def __init__(self, data: bytes) -> None:
        """Read from the beginning."""
        super().__init__(_Bytes(data))
        self._size = len(data)

    def load(self) -> Any:
        """Return the next value. UnpicklingError if there is none that is whole."""
        try:
            return super().load()
        except (UnpicklingError, MemoryError):
            raise
        except Exception as error:
            raise UnpicklingError(f"broken data: {type(error).__name__}: {error}") from None

    def _on(self, *kinds: str) -> Any:
        """Return the container that is to grow."""
        made = self.stack[-1]
        if type(made).__name__ not in kinds or type(made).__module__ not in _CONTAINERS:
            raise UnpicklingError(f"a {type(made).__name__} does not grow")
        return made

    def _append(self) -> None:
        item = self.stack.pop()
        self._on("list", "deque").append(item)

    def _extend(self) -> None:
        items = self.pop_mark()
        self._on("list", "deque").extend(items)

    def _set(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._on("dict", "OrderedDict", "Counter", "defaultdict")[key] = value

    def _set_all(self) -> None:
        items = self.pop_mark()
        made = self._on("dict", "OrderedDict", "Counter", "defaultdict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            made[key] = value

    def _add(self) -> None:
        items = self.pop_mark()
        self._on("set").update(items)

    def _bytearray(self) -> None:
        size = int.from_bytes(self.read(8), "little")
        self.append(bytearray(self.read(size)))

    def _call(self) -> None:
        parts = self.stack.pop()
        made = self.stack[-1]
        if not any(made is one for one in _MAKERS.values()) or type(parts) is not tuple:
            raise UnpicklingError("plain data call nothing of their own")
        if made is rebuild.objects and math.prod(parts[0]) > self._size:
            raise UnpicklingError("an array has more objects than there are data")
        self.stack[-1] = made(*parts)

    dispatch = {
        **{getattr(pickle, name)[0]: _Base.dispatch[getattr(pickle, name)[0]] for name in _SAME},
        pickle.APPEND[0]: _append,
        pickle.APPENDS[0]: _extend,
        pickle.SETITEM[0]: _set,
        pickle.SETITEMS[0]: _set_all,
        pickle.ADDITEMS[0]: _add,
        pickle.BYTEARRAY8[0]: _bytearray,
        pickle.REDUCE[0]: _call,
    }


_CONTAINERS = ("builtins", "collections")
_MOST_SOURCES = 64 << 20


def sources_of(data: bytes) -> dict[str, bytes]:
    """Return the user's files as they were, by their paths. ValueError if they are broken."""
    try:
        found = Foreign(zlib.decompressobj().decompress(data, _MOST_SOURCES)).load()
    except (zlib.error, UnpicklingError) as error:
        raise ValueError(f"the sources cannot be read: {error}") from None
    if type(found) is not dict or not all(
        type(path) is str and type(text) is bytes for path, text in found.items()
    ):
        raise ValueError("the sources are no files")
    return found


class _Bytes:
    """A file of which a part that is not there is never taken for a shorter one."""

    def __init__(self, data: bytes) -> None:
        self._data = memoryview(data)
        self._at = 0

    def read(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise UnpicklingError("the data end too early")
        self._at += size
        return bytes(self._data[self._at - size : self._at])

    def readline(self) -> bytes:
        raise UnpicklingError("plain data have no lines")
