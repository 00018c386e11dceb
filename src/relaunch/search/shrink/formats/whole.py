"""The plain half of a model: one file, whole in memory."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins


AS_BYTES = "rl shrink --as bytes"
"""What to type for a file that is not what it seems to be."""


def digest(data: bytes) -> bytes:
    """Return a digest of what is written."""
    return blake2b(data, digest_size=16).digest()


class Whole:
    """A file that is written from `data`."""

    @property
    def data(self) -> builtins.bytes:
        """What is written."""
        raise NotImplementedError

    @property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes."""
        return (self.bytes,)

    @property
    def bytes(self) -> int:
        """Its length as written."""
        return len(self.data)

    @property
    def key(self) -> builtins.bytes:
        """A digest of what is written."""
        return digest(self.data)

    def write(self, path: str) -> None:
        """Write it."""
        Path(path).write_bytes(self.data)
