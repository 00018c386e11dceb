"""A file that is compressed, or marked: what is in it shrinks, and is written so again."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import sys
import zlib
from hashlib import blake2b
from importlib import import_module
from typing import cast

from relaunch.errors import UsageError
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Sequence
    from typing import IO, Any, Self

    from relaunch.search.shrink.model import Model, Pass

_MARKS = ((b"\x1f\x8b", "gz"), (b"BZh", "bz2"), (b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zst"))


MARKED, _MARK = "marked", b"\xef\xbb\xbf"
"""Text behind a mark of its byte order, as some editors write it."""
UNPACKED = ".unpacked"
"""Behind the name of a file, while it is not packed yet."""


def kind_of(first: bytes) -> str:
    """Return how a file is compressed, by its first bytes; empty if it is not."""
    return next((kind for mark, kind in (*_MARKS, (_MARK, MARKED)) if first.startswith(mark)), "")


def opened(path: str, kind: str) -> IO[bytes]:
    """Open a compressed file to read what is in it."""
    if kind == "zst":
        return cast("IO[bytes]", _Frames(path))
    if kind == MARKED:
        file = open(path, "rb")  # noqa: SIM115  # closed by who has it
        file.seek(len(_MARK))
        return file
    return cast("IO[bytes]", {"gz": gzip, "bz2": bz2, "xz": lzma}[kind].open(path, "rb"))


def is_damaged(error: Exception) -> bool:
    """Tell whether it says that a compressed file is cut or damaged, and not that it is unread."""
    if isinstance(error, OSError):
        return error.errno is None  # gzip and bz2 say so: the system always has a number
    zstandard = sys.modules.get("zstandard")
    kinds = (EOFError, zlib.error, lzma.LZMAError)
    return isinstance(error, kinds if zstandard is None else (*kinds, zstandard.ZstdError))


class _Frames:
    """What is in a zst file, frame after frame; EOFError if the last one is cut.

    The reader of zstandard ends after the first frame, and takes a cut one for whole.
    """

    def __init__(self, path: str) -> None:
        self._new = _zstd().ZstdDecompressor().decompressobj
        self._file = open(path, "rb")  # noqa: SIM115  # closed by who has us
        self._frame: Any = None
        self._ready = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._ready) < size:
            data = self._file.read(1 << 17)
            if not data:
                if self._frame is not None:
                    raise EOFError("the last frame is cut")
                break
            while data:
                self._frame = self._frame or self._new()
                self._ready += self._frame.decompress(data)
                data = b""
                if self._frame.eof:
                    data, self._frame = self._frame.unused_data, None
        found = bytes(self._ready[:size])
        del self._ready[:size]
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _pack(source: IO[bytes], target: IO[bytes], kind: str) -> None:
    if kind == "zst":
        _zstd().ZstdCompressor().copy_stream(source, target)
        return
    if kind == MARKED:
        target.write(_MARK)
        shutil.copyfileobj(source, target, 1 << 20)
        return
    made: Any
    if kind == "gz":  # without name and time: the same content is the same file
        made = gzip.GzipFile("", "wb", fileobj=target, mtime=0)
    else:
        made = (bz2.BZ2File if kind == "bz2" else lzma.LZMAFile)(target, "wb")
    with made:
        shutil.copyfileobj(source, made, 1 << 20)


def _zstd() -> Any:
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise UsageError(
            "a zst file needs the package zstandard", hint="pip install zstandard"
        ) from None
    return zstandard


class Packed:
    """A model whose file is compressed."""

    def __init__(self, inner: Model, kind: str) -> None:
        """`kind` is one of gz, bz2, xz, zst."""
        self.inner = inner
        self.kind = kind

    @property
    def how(self) -> str:
        """What to tell of what is in it."""
        return getattr(self.inner, "how", "")

    @property
    def is_deep(self) -> bool:
        """Whether a stack may end in what is in it."""
        return getattr(self.inner, "is_deep", False)

    @property
    def bytes(self) -> int:
        """How large it is unpacked: that is what a person looks at."""
        return self.inner.bytes

    @property
    def measure(self) -> tuple[int, ...]:
        """What is in it becomes less."""
        return self.inner.measure

    @property
    def key(self) -> builtins.bytes:
        """A digest of what is in it, and how it is packed."""
        return blake2b(self.kind.encode() + self.inner.key, digest_size=16).digest()

    def write(self, path: str) -> None:
        """Write it, then pack it."""
        plain = f"{path}{UNPACKED}"
        self.inner.write(plain)
        try:
            with open(plain, "rb") as source, open(path, "xb") as target:
                _pack(source, target, self.kind)
        finally:
            os.unlink(plain)

    def passes(self) -> Sequence[Pass]:
        """Return what can be tried on what is in it."""
        return [_Within(doing) for doing in self.inner.passes()]

    def but(self, inner: Model) -> Packed:
        """Return something else, packed the same way."""
        return Packed(inner, self.kind)


class Marked(Packed):
    """A model of what comes after a mark of its byte order."""

    def __init__(self, inner: Model) -> None:
        """It is not packed, but for the mark."""
        super().__init__(inner, MARKED)

    @property
    def bytes(self) -> int:
        """How large it is, with its mark."""
        return len(_MARK) + self.inner.bytes

    @property
    def measure(self) -> tuple[int, ...]:
        """It is more than without the mark."""
        most, *others = self.inner.measure
        return (len(_MARK) + most, *others)

    def passes(self) -> Sequence[Pass]:
        """Return what can be tried: first to leave out the mark."""
        return [_Unmark(), *super().passes()]

    def but(self, inner: Model) -> Packed:
        """Return something else behind the mark."""
        return Marked(inner)


class _Unmark:
    """Leaves out the mark."""

    name = "mark"
    phase = 0

    def begin(self, model: Model) -> int | None:
        return 0 if isinstance(model, Marked) else None

    def attempt(self, model: Marked, _cursor: int) -> Smaller | None:
        return Smaller(model=model.inner, what="without the mark of its byte order")

    def failed(self, _model: Marked, _cursor: int) -> None:
        return None

    def passed(self, _model: Model, _cursor: int) -> None:
        return None


class _Within:
    """A pass over what is packed."""

    def __init__(self, doing: Pass) -> None:
        self._doing = doing
        self.name = doing.name
        self.phase = getattr(doing, "phase", 0)

    def begin(self, model: Packed) -> Any:
        return self._doing.begin(model.inner)

    def attempt(self, model: Packed, cursor: Any) -> Smaller | None:
        found = self._doing.attempt(model.inner, cursor)
        if found is None:
            return None
        return Smaller(model=model.but(found.model), what=found.what)

    def failed(self, model: Packed, cursor: Any) -> Any:
        return self._doing.failed(model.inner, cursor)

    def passed(self, model: Packed, cursor: Any) -> Any:
        return self._doing.passed(model.inner, cursor)
