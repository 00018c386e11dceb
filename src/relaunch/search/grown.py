"""What is known of how a program behaves along the values of one setting."""

from __future__ import annotations

from enum import Enum

from relaunch.record import Record
from relaunch.search.seen import Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.search.elsewhere import Pattern


class Direction(Enum):
    """What happens along the values, as far as was seen."""

    FAILS_FROM = "fails from"
    PASSES_FROM = "passes from"
    ALWAYS_FAILS = "fails at every value tried"
    NEVER_FAILS = "passes at every value tried"
    UNKNOWN = "no value could be judged"


class Shape(Enum):
    """Whether the verdict changes only once."""

    MONOTONE = "monotone"
    """Values on both sides were looked at, and none differs."""
    NOT_MONOTONE = "not monotone"
    UNCHECKED = "unchecked"


class Look(Record):
    """One value that was tried."""

    value: float
    seen: Seen
    key: str = ""
    """Tells one other failure from another."""
    seconds: float | None = None
    peak_bytes: int | None = None


class Edge(Record):
    """Two values between which the verdict changes; both were tried."""

    before: float
    after: float
    is_exact: bool
    """They are neighbours."""
    is_hidden: bool
    """Values between them failed differently or could not be tested."""
    first_suspect: float
    """The change is from this value on, or from a later one up to `after`."""


class Stretch(Record):
    """Neighbouring values that were tried and showed the same."""

    seen: Seen
    key: str
    low: float
    high: float
    is_low_exact: bool
    """The value before `low` shows something else, or there is none."""
    is_high_exact: bool
    tried: int


class Answer(Record):
    """What is known: the lowest edge, whether it is the only one, and all that was seen."""

    edge: Edge | None
    direction: Direction
    shape: Shape
    map: tuple[Stretch, ...]
    pattern: Pattern | None
    """What explains a verdict that changes to and fro."""
    looks: tuple[Look, ...]
    runs: int

    @property
    def is_monotone(self) -> bool:
        """It was looked for a second change, and there was none."""
        return self.shape is Shape.MONOTONE

    @property
    def text(self) -> str:
        """Say the answer in one sentence."""
        if self.pattern is not None and self.pattern.is_sure:
            return self.pattern.text
        if self.edge is None:
            return self.direction.value
        said = f"{self.direction.value} {_first(self.edge)} on"
        return said if self.shape is not Shape.NOT_MONOTONE else f"{said}, but not always"


def _first(edge: Edge) -> str:
    if edge.is_exact:
        return str(edge.after)
    return f"somewhere in {edge.first_suspect}..{edge.after}"
