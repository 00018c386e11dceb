"""Files as they lie there: compressed or not, and written so that nothing half done is left."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from contextlib import contextmanager

from relaunch.errors import TinyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, BinaryIO

_MAGIC = {
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
}
PACKED = tuple(_MAGIC.values())
_DAMAGED = ("zlib.error", "_lzma.LZMAError", "zstd.ZstdError", "zstandard.ZstdError",
            "zstandard.backend_c.ZstdError")  # fmt: skip
_ZST_PIECE = 1 << 14
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def packing_of(path: str) -> str:
    """Return how a file is compressed by what it begins with: `.gz`, or nothing."""
    with open(path, "rb") as file:
        head = file.read(6)
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "")


def packing_named(path: str) -> str:
    """Return how a file is compressed by its name."""
    ending = os.path.splitext(path)[1].lower()
    return ".gz" if ending == ".tgz" else ending if ending in PACKED else ""


class Raw:
    """A file opened for reading that tells how many of its bytes were read, compressed or not."""

    def __init__(self, path: str) -> None:
        """Open it; OSError if that cannot be."""
        self.path = path
        self.packing = packing_of(path)
        self._below = open(path, "rb", buffering=0 if not self.packing else -1)  # noqa: SIM115
        self.size = os.fstat(self._below.fileno()).st_size
        self.file: BinaryIO = unpacked(self._below, self.packing)

    @property
    def share(self) -> float:
        """How much of it was read, from 0 to 1."""
        return self._below.tell() / self.size if self.size else 1.0

    def read(self, size: int) -> bytes:
        """Read up to so many bytes; says what is wrong with a broken file."""
        with whole(self.path, self.packing):
            return self.file.read(size)

    def seek(self, offset: int) -> None:
        """Go to a place; only in a file that is not compressed."""
        self.file.seek(offset)

    def close(self) -> None:
        """Close it."""
        self.file.close()
        self._below.close()

    def __enter__(self) -> Raw:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


class _Zst:
    """Reads zstd; unlike the package's own reader it notices that a file ends too soon."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._new = _zstd().ZstdDecompressor().decompressobj
        self._frame: Any = None
        self._held = bytearray()

    def read(self, size: int) -> bytes:
        while len(self._held) < size:
            data = self._file.read(_ZST_PIECE)
            if not data:
                if self._frame is not None:
                    raise EOFError
                break
            while data:
                if self._frame is None:
                    self._frame = self._new()
                self._held += self._frame.decompress(data)
                data = self._frame.unused_data if self._frame.eof else b""
                if self._frame.eof:
                    self._frame = None
        taken = bytes(self._held[:size])
        del self._held[:size]
        return taken

    def close(self) -> None:
        self._held.clear()


def unpacked(file: BinaryIO, packing: str) -> BinaryIO:
    """Return a file that reads what another one has compressed."""
    if packing == ".gz":
        import gzip

        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]  # it reads as one
    if packing == ".bz2":
        import bz2

        return bz2.BZ2File(file)  # type: ignore[return-value]  # it reads as one
    if packing == ".xz":
        import lzma

        return lzma.LZMAFile(file)  # type: ignore[return-value]  # it reads as one
    if packing == ".zst":
        return _Zst(file)  # type: ignore[return-value]  # it reads as one
    return file


@contextmanager
def packed(path: str, packing: str) -> Iterator[BinaryIO]:
    """Open a new file for writing, compressed as said."""
    with open(path, "xb") as file:
        if packing == ".gz":
            import gzip

            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as inner:
                yield inner  # type: ignore[misc]  # it writes as one
        elif packing == ".bz2":
            import bz2

            with bz2.BZ2File(file, "wb") as inner:
                yield inner  # type: ignore[misc]  # it writes as one
        elif packing == ".xz":
            import lzma

            with lzma.LZMAFile(file, "wb") as inner:
                yield inner  # type: ignore[misc]  # it writes as one
        elif packing == ".zst":
            with _zstd().ZstdCompressor().stream_writer(file, closefd=False) as inner:
                yield inner
        else:
            yield file


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError:
        said = "a .zst file needs the package zstandard"
        raise TinyError(said, hint="pip install zstandard") from None
    return zstandard


@contextmanager
def whole(path: str, packing: str) -> Iterator[None]:
    """Say in one line what is wrong with a compressed file that is broken or ends too soon."""
    try:
        yield
    except EOFError:
        raise _cut_off(path, packing) from None
    except OSError as error:
        if packing and error.errno is None:  # what gzip and bz2 say of damaged data
            raise TinyError(f"{path} is damaged: {error}", hint=_test(path, packing)) from None
        raise TinyError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:
        kind = type(error)
        if f"{kind.__module__}.{kind.__name__}" not in _DAMAGED:
            raise
        raise TinyError(f"{path} is damaged: {error}", hint=_test(path, packing)) from None


def _cut_off(path: str, packing: str) -> TinyError:
    return TinyError(f"{path} ends in the middle of its compressed data", hint=_test(path, packing))


def _test(path: str, packing: str) -> str:
    programs = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
    return f"{programs[packing]} -t {path}" if packing in programs else ""


@contextmanager
def replacing(out: str, *, forced: bool, unlike: str = "") -> Iterator[str]:
    """Give a path beside `out` to write to; it gets its name when all is done, or is removed.

    `unlike` is what must not be replaced in any case: the input.
    """
    check_out(out, forced=forced, unlike=unlike)
    folder, name = os.path.split(os.path.abspath(out))
    temporary = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        _put(temporary, out)
    except BaseException as error:
        _remove(temporary)
        if isinstance(error, OSError) and is_full(error):
            raise disk_full(out, error) from None
        raise
    finally:
        _remove(temporary + "-journal")


def check_out(out: str, *, forced: bool, unlike: str = "") -> None:
    """Refuse an output that is the input, or is there, or has no folder."""
    if unlike and os.path.exists(out) and os.path.exists(unlike) and os.path.samefile(out, unlike):
        raise TinyError(f"{out} is the input itself, which is only read", hint="-o another name")
    if os.path.lexists(out) and not forced:
        raise TinyError(f"{out} is there already", hint="--force replaces it")
    folder = os.path.dirname(os.path.abspath(out))
    if not os.path.isdir(folder):
        raise TinyError(f"there is no folder {folder}", hint=f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK):
        raise TinyError(f"the folder {folder} may not be written", hint="-o elsewhere")


@contextmanager
def reachable(path: str) -> Iterator[None]:
    """Say in one line which file may not be read; a data set may have many."""
    try:
        yield
    except OSError as error:
        where = error.filename if isinstance(error.filename, str) else path
        why = os.strerror(error.errno) if error.errno else error  # pyarrow's own words are long
        raise TinyError(f"{where} cannot be read: {why}", hint=f"ls -ld {where}") from None


def is_full(error: OSError) -> bool:
    """Tell whether there is no room for what was to be written."""
    return error.errno in _FULL


def disk_full(out: str, error: OSError) -> TinyError:
    """Say that there is no room, and that nothing is left of it."""
    why = "a file may not be that big here" if error.errno == errno.EFBIG else "no space left"
    folder = os.path.dirname(os.path.abspath(out))
    return TinyError(f"{out} could not be written: {why}; nothing was left", hint=f"df -h {folder}")


def _put(temporary: str, out: str) -> None:
    if os.path.isdir(out) and not os.path.islink(out):
        old = f"{temporary}.old"
        os.rename(out, old)
        os.rename(temporary, out)
        shutil.rmtree(old, ignore_errors=True)
    else:
        os.rename(temporary, out)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        os.unlink(path)
    except OSError:
        pass


def on_each(tell: Callable[[float], None] | None, share: float) -> None:
    """Tell who wants to hear it how far it has come."""
    if tell is not None:
        tell(share)
