"""Rows that are small themselves: images with few pixels, arrays with few numbers."""

from __future__ import annotations

import io
import os

from relaunch.errors import TinyError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.tiny.data.request import Request
    from relaunch.tiny.data.source import Source

IMAGES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm")
_MAGIC = (b"\xff\xd8\xff", b"\x89PNG\r\n", b"RIFF", b"GIF8", b"BM", b"II*\0", b"MM\0*")


def smaller(source: Source, request: Request) -> Source:
    """Let a source write smaller images and arrays."""
    if not hasattr(source, "change"):
        said = f"{source.format} holds no images and no arrays of its own"
        raise TinyError(f"--images, --arrays: {said}", hint="without --images and --arrays")
    if request.images:
        _pillow()
    if source.format in ("tar", "folder"):
        source.change = lambda name, data: _file(name, data, request)
    else:
        source.change = lambda table: _table(table, request)
    return source


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        said = "--images needs the package Pillow"
        raise TinyError(said, hint="pip install pillow") from None
    return Image


def _file(name: str, data: bytes, request: Request) -> bytes:
    ending = os.path.splitext(name)[1].lower()
    if request.images and ending in IMAGES:
        return small_image(data, request.images)
    if request.arrays and ending == ".npy":
        return small_npy(data, request.arrays)
    return data


def small_image(data: bytes, side: int) -> bytes:
    """Return an image of the same format and mode whose longer side is at most so long."""
    image_of = _pillow()
    try:
        image = image_of.open(io.BytesIO(data))
        image.load()
    except (OSError, ValueError, SyntaxError):
        return data  # broken as it is: that may be what fails
    if max(image.size) <= side:
        return data
    format = image.format
    scale = side / max(image.size)
    size = [max(1, round(one * scale)) for one in image.size]
    small = image.resize(size, image_of.Resampling.NEAREST)
    new = io.BytesIO()
    try:
        small.save(new, format=format)
    except (OSError, ValueError, KeyError):
        return data
    return new.getvalue()


def small_npy(data: bytes, most: int) -> bytes:
    """Return an array of the same dtype, cut to at most so many in each direction."""
    from relaunch.tiny.payloads.npy import cut

    try:
        return cut(data, most)
    except ValueError:
        return data


def _table(table: Any, request: Request) -> Any:
    """Make the bytes and lists of each column small; the schema stays."""
    import pyarrow

    for number, field in enumerate(table.schema):
        if not _may_hold(field, pyarrow.types):
            continue
        column = table.column(number).to_pylist()
        values = [_value(one, field, request) for one in column]
        table = table.set_column(number, field, pyarrow.array(values, type=field.type))
    return table


def _may_hold(field: Any, types: Any) -> bool:
    if _has_a_shape(field):
        return False
    kind = field.type
    if types.is_struct(kind):
        return any(_may_hold(inner, types) for inner in kind)
    return bool(types.is_binary(kind) or types.is_large_binary(kind)
                or types.is_list(kind) or types.is_large_list(kind))  # fmt: skip


def _has_a_shape(field: Any) -> bool:
    """Tell a column whose type says how big its arrays are: cut, `datasets` would not read them."""
    return b"ARROW:extension:name" in (field.metadata or {})


def _value(value: Any, field: Any, request: Request) -> Any:
    """Make one cell small, as far as its field lets it."""
    if _has_a_shape(field):
        return value
    if isinstance(value, bytes):
        is_image = request.images and value.startswith(_MAGIC)
        return small_image(value, request.images) if is_image else value
    if isinstance(value, dict):
        return {key: _value(one, field.type.field(key), request) for key, one in value.items()}
    if isinstance(value, list):
        kept = value[: request.arrays] if request.arrays else value
        inner = getattr(field.type, "value_field", None)
        return [_value(one, inner, request) for one in kept] if inner is not None else kept
    return value
