"""What every format offers: batches of rows to choose from, and a file of those chosen."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.tiny.data.request import Tell
    from relaunch.tiny.data.special import Watch

LONGEST_ROW = 256 << 20
"""A row that is longer than this is none: the file is not what it was taken for."""


class Broken:
    """In the place of a row that cannot be read."""

    def __init__(self, why: str) -> None:
        """Say why."""
        self.why = why


class Unread:
    """In the place of bytes that are too many to be read; these know how many they are."""

    def __init__(self, size: int) -> None:
        """Say how many."""
        self._size = size

    def __len__(self) -> int:
        """Return how many."""
        return self._size


class Batch(Protocol):
    """Some rows that follow each other; nothing is parsed before it is asked for."""

    start: int
    count: int

    def sizes(self) -> Sequence[int]:
        """Return how long each row is, in bytes."""

    def rows(self) -> Sequence[Any]:
        """Return each row as a value, `Broken` where that cannot be."""

    def schemas(self) -> Sequence[str]:
        """Return a text for each row that is the same for rows of the same keys and types."""

    def column(self, key: str) -> Sequence[Any]:
        """Return one value of each row, ABSENT where there is none."""

    def watch(self, watch: Watch) -> None:
        """Show every value to somebody."""


class Source(Protocol):
    """A data set of one format."""

    path: str
    format: str
    noun: str
    of_text: bool
    """Values are text that has to be read, as in csv."""

    def batches(self, tell: Tell | None, keys: Sequence[str] | None) -> Iterator[Batch]:
        """Go through all rows; `keys`: only these columns will be asked for, None: all."""

    def write(self, picks: Sequence[int], to: str, packing: str, tell: Tell | None) -> None:
        """Write the chosen rows, given in order, to a new file."""


def dig(row: Any, path: Sequence[str], absent: Any) -> Any:
    """Return what lies in nested dicts under a path."""
    for name in path:
        if isinstance(row, dict) and name in row:
            row = row[name]
        elif isinstance(row, list) and name.isdigit() and int(name) < len(row):
            row = row[int(name)]
        else:
            return absent
    return row


def column_of(rows: Sequence[Any], key: str, absent: Any) -> list[Any]:
    """Return the values of one key, which may be a name with dots in it or a path."""
    try:
        return [row[key] for row in rows]
    except (KeyError, TypeError, IndexError):
        pass
    path = key.split(".")
    found = []
    for row in rows:
        if isinstance(row, dict) and key in row:
            found.append(row[key])
        else:
            found.append(dig(row, path, absent))
    return found
