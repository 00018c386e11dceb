"""What growing a size asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.grown import Answer, Direction, Shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.outcome import Outcome, Signature
    from relaunch.recipe import Recipe
    from relaunch.search.ladder import Scale
    from relaunch.search.order import Fit
    from relaunch.search.seen import Seen


class Dimension(Record):
    """One size of a program; `{name}` in the command stands for it."""

    name: str
    low: float
    high: float
    file: str = ""
    """Its first rows are the size, and a file with just those stands for it."""
    limit: str = ""
    """`memory` or `disk`: how much of that it may have, in units; then any failure counts."""
    path: str = ""
    """Of a disk: its folder, absolute."""
    unit: int = 1
    """Bytes."""


class Request(Record):
    """What a person asked for."""

    recipe: Recipe
    """With `{name}` in its words and in the values of its environment."""
    dimensions: tuple[Dimension, ...]
    fixed: Mapping[str, float] = {}
    """What a size is while another one is grown; its low end if that is not said."""
    scale: Scale | None = None
    step: float | None = None
    jobs: int = 1
    most_runs: int | None = None
    most_s: float | None = None
    memory_limit: int | None = None
    """Where memory is to be followed to; None: all that this machine has."""
    time_limit: float | None = None

    def at(self, dimension: Dimension) -> dict[str, float]:
        """Return what stays the same while a dimension is grown."""
        every = {**{one.name: one.low for one in self.dimensions}, **self.fixed}
        return {name: value for name, value in every.items() if name != dimension.name}


class Began(Record):
    """A search begins, or goes on."""

    number: int
    known: int
    """Runs that need not be repeated."""


class Turn(Record):
    """A dimension is grown from now on."""

    dimension: Dimension
    fixed: Mapping[str, float]


class Probed(Record):
    """One run has ended."""

    dimension: Dimension
    value: float
    seen: Seen
    outcome: Outcome
    peak_bytes: int | None


class State(Record):
    """How a search stands, after each change."""

    dimension: Dimension
    scale: Scale
    seen: Mapping[float, Seen]
    running: tuple[float, ...] = ()


class Measure(Record):
    """How time or memory grows with a size, and where it comes to a limit."""

    name: str
    fit: Fit
    limit: float | None = None
    is_given: bool = False
    """A person named the limit."""
    reaches: float | None = None
    """At this size."""
    earliest: float | None = None
    """The least size that may be it, by all orders that are not excluded."""
    latest: float | None = None


class Grown(Record):
    """What came of one dimension."""

    dimension: Dimension
    scale: Scale
    fixed: Mapping[str, float]
    answer: Answer
    failure: Signature | None
    """The one hunted: that of the first run that failed."""
    shown: Mapping[float, str]
    """What each run showed, in a few words."""
    folders: Mapping[float, str]
    """Where its output is, below the folder of the search."""
    measures: tuple[Measure, ...]
    is_done: bool = True

    @property
    def is_found(self) -> bool:
        """The verdict changes, and it is as sure where as it can be."""
        edge = self.answer.edge
        return edge is not None and (edge.is_exact or self.is_done)

    @property
    def is_scattered(self) -> bool:
        """The verdict changes more than once."""
        return self.answer.shape is Shape.NOT_MONOTONE

    @property
    def fails_first(self) -> bool:
        """It fails at the low values."""
        return self.answer.direction in (Direction.PASSES_FROM, Direction.ALWAYS_FAILS)


class Found(Record):
    """What came of all dimensions that were begun."""

    grown: tuple[Grown, ...]
    runs: int
    """All of the search, also those of before."""
    new_runs: int
    seconds: float
    stopped: str = ""
    """Why it ended before it was done: interrupted, out of runs or time."""


Event = Began | Turn | Probed | State
