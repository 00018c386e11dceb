"""What was tried, on the disk: the key of each payload and whether it fails the same way.

`searches/3/tried` has 18 bytes for each answer, in the order in which they came: the key, `+` or
`-`, and how it was run. A later answer for the same key counts; an end that was cut does not.
"""

from __future__ import annotations

import os
import time

KEY_BYTES = 16
_ROW = KEY_BYTES + 2
_PAUSE_S = 0.25
FORKED, FRESH = b"f", b"p"


class Answers:
    """The answers of one search."""

    def __init__(self, folder: str) -> None:
        """Read what is there."""
        self._path = os.path.join(folder, "tried")
        self._waiting = bytearray()
        self._written = 0.0
        self.known: dict[bytes, bool] = {}
        self.was_forked: set[bytes] = set()
        try:
            with open(self._path, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            data = b""
        self._is_cut = len(data) % _ROW
        for at in range(0, len(data) - _ROW + 1, _ROW):
            self._take(data[at : at + _ROW])

    def _take(self, row: bytes) -> None:
        key = row[:KEY_BYTES]
        self.known[key] = row[KEY_BYTES:][:1] == b"+"
        (self.was_forked.add if row[-1:] == FORKED else self.was_forked.discard)(key)

    def note(self, key: bytes, interesting: bool, *, forked: bool) -> None:
        """Remember one; it is on the disk a moment later."""
        row = key + (b"+" if interesting else b"-") + (FORKED if forked else FRESH)
        self._take(row)
        self._waiting += row
        if time.monotonic() - self._written > _PAUSE_S:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        self._written = time.monotonic()
        if self._waiting:
            with open(self._path, "r+b" if self._is_cut else "ab") as file:
                if self._is_cut:
                    file.truncate(os.fstat(file.fileno()).st_size - self._is_cut)
                    file.seek(0, os.SEEK_END)
                    self._is_cut = 0
                file.write(self._waiting)
            self._waiting.clear()

    def drop_forked(self) -> None:
        """Forget what forks showed: it does not hold."""
        kept = {key: said for key, said in self.known.items() if key not in self.was_forked}
        self.known, self.was_forked = kept, set()
        self._waiting.clear()
        rows = (key + (b"+" if said else b"-") + FRESH for key, said in kept.items())
        temp = f"{self._path}.new"
        with open(temp, "wb") as file:
            file.write(b"".join(rows))
        os.replace(temp, self._path)
