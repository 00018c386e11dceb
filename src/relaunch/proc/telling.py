"""A helper that says what it does: one JSON object a line."""

from __future__ import annotations

import os

from relaunch.jsontext import dumps, loads
from relaunch.proc.helper import Helper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def tell(socket: int, what: dict[str, Any]) -> None:
    """Say something, in the helper."""
    os.write(socket, dumps(what).encode("ascii") + b"\n")


class Telling(Helper):
    """Our end of it."""

    _heard = b""

    def next(self, wait_s: float) -> dict[str, Any]:
        """Return what it says next; nothing when it is gone or says nothing for so long."""
        while b"\n" not in self._heard:
            data = self.hear(wait_s)
            if not data:
                return {}
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return _read(line)

    def stop_and_read(self) -> Iterator[dict[str, Any]]:
        """End it, and return all that was not heard yet; a line cut short is not."""
        lines = (self._heard + self.stop()).split(b"\n")
        self._heard = b""
        return map(_read, lines[:-1])


def _read(line: bytes) -> dict[str, Any]:
    said: dict[str, Any] = loads(line.decode("ascii"))
    return said
