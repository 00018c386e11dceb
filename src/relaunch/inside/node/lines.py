"""Output of many ranks on one screen: whole lines, each with its rank.

What a rank leaves without an end, as a question does, is shown after a moment; whoever speaks next
begins a new line.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 0.1
"""A line that is not ended within this is shown as it is."""
LONGEST = 1 << 16
"""A line of more is shown in parts."""


def label_of(rank: int) -> bytes:
    """Return what stands before each line of a rank."""
    return b"[rank %d] " % rank


class Screen:
    """One stream that all ranks write to."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Give on what is shown to `write`."""
        self._write = write
        self._open: Speaker | None = None
        """Who has begun a line there."""

    def is_open(self, speaker: Speaker) -> bool:
        """Tell whether the last line there is one that this speaker has begun."""
        return self._open is speaker

    def show(self, speaker: Speaker, data: bytes) -> None:
        """Write whole lines of one, or the beginning of a line."""
        begun = self._open
        if begun is not None and begun is not speaker:
            self._write(b"\n")
        self._open = None if data.endswith(b"\n") else speaker
        self._write(data)


class Speaker:
    """One stream of one rank."""

    def __init__(self, screen: Screen, label: bytes, echo: bytes = b"") -> None:
        """Show lines with `label`; one that begins with `echo`, torch's own label, loses that."""
        self._screen = screen
        self._label = label
        self._echo = echo
        self._rest = b""
        self._is_begun = False
        self.since = 0.0
        """When something came that is not shown yet; 0: all is shown."""

    def take(self, data: bytes, now: float) -> None:
        """Take what came; whole lines are shown."""
        *lines, rest = (self._rest + data).split(b"\n")
        if lines:
            self._screen.show(self, b"".join(self._line(line) + b"\n" for line in lines))
        self._rest = rest
        self.since = 0.0 if not rest else self.since if self.since and not lines else now
        if len(rest) > LONGEST:
            self.hurry()

    def hurry(self) -> None:
        """Show the beginning of a line."""
        if self._rest.endswith(b"\r"):
            return  # a progress bar, of which the last state is enough
        if self._rest:
            self._screen.show(self, self._line(self._rest))
            self._is_begun = True
        self._rest, self.since = b"", 0.0

    def end(self) -> None:
        """Show what is left; no more will come."""
        if self._rest.strip(b"\r"):
            self._screen.show(self, self._line(self._rest) + b"\n")
        self._rest, self.since = b"", 0.0

    def _line(self, line: bytes) -> bytes:
        goes_on, self._is_begun = self._is_begun, False
        if goes_on and self._screen.is_open(self):
            return line
        line = line.rstrip(b"\r").rpartition(b"\r")[2]
        if self._echo and line.startswith(self._echo):
            line = line[len(self._echo) :]
        return self._label + line
