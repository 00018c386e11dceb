"""Takes comments back out of a file, whatever else was edited in it since."""

from __future__ import annotations

import difflib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


class EditedSince(Exception):
    """A line that was written was edited since; `line` is where it was."""

    def __init__(self, line: int) -> None:
        """Name the line."""
        super().__init__(line)
        self.line = line


def taken_back(before: bytes, after: bytes, now: bytes) -> bytes:
    """Return the file with the lines of `before` wherever it still has those of `after`.

    Raises EditedSince if a line that was changed is no longer there as it was written.
    """
    if now in (after, before):
        return before
    old, written, current = (data.split(b"\n") for data in (before, after, now))
    places = _places(written, current)
    for number, (was, wrote) in enumerate(zip(old, written, strict=True)):
        if was == wrote:
            continue
        at = places.get(number)
        if at is None:
            raise EditedSince(number + 1)
        current[at] = was
    return b"\n".join(current)


def _places(written: Sequence[bytes], current: Sequence[bytes]) -> dict[int, int]:
    """Return where each line that stayed as it was is now."""
    found: dict[int, int] = {}
    matcher = difflib.SequenceMatcher(None, list(written), list(current), autojunk=False)
    for block in matcher.get_matching_blocks():
        for n in range(block.size):
            found[block.a + n] = block.b + n
    return found
