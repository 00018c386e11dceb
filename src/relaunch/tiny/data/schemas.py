"""Which schema a row has: its keys, the types of its values, and of arrays their dtype and rank."""

from __future__ import annotations

from relaunch.tiny.data.source import Broken
from relaunch.tiny.payloads.npy import MAGIC, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HEAD = 1 << 16
"""So many bytes of a file hold the header of any array."""
_DEEPEST = 8
_LOOKED_AT = 64


def schema_of(value: Any, depth: int = 0) -> str:
    """Return the keys and the types of a row, nested ones too."""
    if isinstance(value, Broken):
        return value.why
    if isinstance(value, dict) and depth < _DEEPEST:
        inner = ",".join(f"{key}:{schema_of(one, depth + 1)}" for key, one in value.items())
        return f"{{{inner}}}"
    if isinstance(value, (list, tuple)):
        kinds = sorted({schema_of(one, depth + 1) for one in value[:_LOOKED_AT]})
        return f"[{'|'.join(kinds)}]"
    if isinstance(value, bytes):
        return schema_of_bytes(value)
    return type(value).__name__


def schema_of_bytes(head: bytes) -> str:
    """Return the type of an array by its header; of all other bytes that they are bytes."""
    return kind_of(head[:HEAD]) if head.startswith(MAGIC) else "bytes"
