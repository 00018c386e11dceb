"""Which of the formats that are no plain text a file has: by its first bytes, then its name."""

from __future__ import annotations

import os
import zipfile

from relaunch.errors import UsageError
from relaunch.search.shrink.formats.whole import AS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.search.shrink.model import Model

    Reader = Callable[..., Any]

_PYTHON = (".py", ".pyi", ".pyw")
_PICKLE = (".pkl", ".pickle", ".joblib")
_ARROW_STREAM = (".arrows", ".feather", ".arrow", ".ipc")


def sniffed(path: str, keep: Sequence[str] = ()) -> Model | None:
    """Return a file or folder as a model of its own; None if it is, or can only be, cut as text.

    What is broken may be just what fails: then it is cut as text or bytes.
    """
    reader = reader_for(path)
    if reader is None:
        return None
    try:
        model: Model = reader(path, keep=keep)
    except UsageError as error:
        if error.hint != AS_BYTES:
            raise
        return None
    return model


def reader_for(path: str) -> Reader | None:
    """Return what reads a file or folder as a model of its own; None: as text, lines or bytes."""
    if os.path.isdir(path):
        from relaunch.search.shrink.formats import folder

        return folder.read
    name = os.path.basename(path).lower()
    with open(path, "rb") as file:
        head = file.read(16)
    if name.endswith(_PYTHON):
        from relaunch.search.shrink.formats import python_source

        return python_source.read
    return _by_magic(path, name, head)


def _by_magic(path: str, name: str, head: bytes) -> Reader | None:
    if head[:4] == b"PAR1" or head[:6] == b"ARROW1" or name.endswith(_ARROW_STREAM):
        from relaunch.search.shrink.formats import columnar

        return columnar.read
    if head[:4] == b"PK\x03\x04":
        return _zipped(path)
    if head[:6] == b"\x93NUMPY" or name.endswith(".safetensors"):
        from relaunch.search.shrink.formats import arrays

        return arrays.read
    is_binary = head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5")
    if is_binary and name.endswith((".pt", ".pth")):
        from relaunch.search.shrink.formats import torch_file

        return torch_file.read
    if is_binary or name.endswith(_PICKLE):
        from relaunch.search.shrink.formats import pickled

        return pickled.read
    return _archived(path, name)


def _zipped(path: str) -> Reader | None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return None
    if any(name.endswith("/data.pkl") for name in names):
        from relaunch.search.shrink.formats import torch_file

        return torch_file.read
    if names and all(name.endswith(".npy") for name in names):
        from relaunch.search.shrink.formats import arrays

        return arrays.read
    from relaunch.search.shrink.formats import archive as archives

    return archives.read


def _archived(path: str, name: str) -> Reader | None:
    if not name.endswith((".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")):
        return None
    from relaunch.search.shrink.formats import archive

    return archive.read
