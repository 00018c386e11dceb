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
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                self._append(fd)
            finally:
                os.close(fd)
            self._waiting.clear()

    def _append(self, fd: int) -> None:
        """Write behind the last whole row; where not all fits, nothing of it stays."""
        end = os.fstat(fd).st_size
        end -= end % _ROW
        done = 0
        try:
            while done < len(self._waiting):
                done += os.pwrite(fd, self._waiting[done:], end + done)
        except OSError:
            os.ftruncate(fd, end)
            raise

    def drop_forked(self) -> None:
        """Forget what forks showed: it does not hold."""
        self._keep({key: said for key, said in self.known.items() if key not in self.was_forked})

    def drop_passing(self) -> None:
        """Forget what did not fail: it may, if it is asked more often."""
        self._keep({key: said for key, said in self.known.items() if said})

    def _keep(self, kept: dict[bytes, bool]) -> None:
        """Have only these, here and on the disk."""
        self.known, self.was_forked = kept, self.was_forked & kept.keys()
        self._waiting.clear()
        how = {True: FORKED, False: FRESH}
        rows = (
            key + (b"+" if said else b"-") + how[key in self.was_forked]
            for key, said in kept.items()
        )
        temp = f"{self._path}.new"
        with open(temp, "wb") as file:
            file.write(b"".join(rows))
        os.replace(temp, self._path)
