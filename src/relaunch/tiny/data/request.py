"""What is asked for, and what was taken."""

from __future__ import annotations

from enum import Enum

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Tell = Callable[[float], None]
    """Hears which share of the work is done, from 0 to 1."""


class How(Enum):
    """How rows are chosen, beside the special ones."""

    FIRST = "first"
    RANDOM = "random"
    STRATIFIED = "stratified"
    LONGEST = "longest"
    SHORTEST = "shortest"
    SCHEMAS = "one per schema"
    AROUND = "around"


class Request(Record):
    """Which rows of which file, and where they go."""

    path: str
    out: str
    rows: int = 100
    how: How = How.RANDOM
    key: str = ""
    """What to stratify by, or whose length counts; nested keys have dots."""
    seed: int = 0
    around: int = 0
    """A row, the first being 1."""
    failing_when: str = ""
    """A Python expression of a row that is true for those to be kept before others."""
    keep: tuple[int, ...] = ()
    """Rows that are kept in any case, the first being 0."""
    keep_why: str = ""
    keep_name: str = ""
    """What somebody else called these rows."""
    is_plain: bool = False
    """No rows are reserved for special values."""
    is_forced: bool = False
    """May replace what is there."""
    images: int = 0
    """The longest side that images may have; 0 leaves them as they are."""
    arrays: int = 0
    """The longest that lists and arrays may be in each direction; 0 leaves them as they are."""
    table: str = ""
    """Of a database: this one, and what it refers to."""
    has_header: bool = True


class Part(Record):
    """So many rows, and why."""

    count: int
    why: str
    kinds: tuple[str, ...] = ()
    """Of special values: which."""


class Taken(Record):
    """What became of a request."""

    format: str
    rows: int
    total: int | None
    """None: not counted."""
    parts: tuple[Part, ...]
    out: str
    bytes_before: int
    bytes_after: int
    notes: tuple[str, ...] = ()
    picks: tuple[int, ...] = ()
