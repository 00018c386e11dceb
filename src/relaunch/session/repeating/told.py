"""What a repetition asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.outcome import Outcome
    from relaunch.recipe import Recipe
    from relaunch.search.odds import Bounds

PLAIN = "plain"
MODES = ("switch", "lines", "core", "load")
"""What provokes: quick switches, seeded sleeps between lines, one core, a busy machine."""


class Request(Record):
    """What a person asked for."""

    recipe: Recipe
    times: int
    """How often, with each of the modes."""
    modes: tuple[str, ...] = (PLAIN,)
    """`plain`, or what provokes; several together have a `+` between them."""
    until_fail: bool = False
    jobs: int = 1
    most_runs: int | None = None
    most_s: float | None = None
    forks: bool = True
    """Start from imported libraries where that can be."""


class Run(Record):
    """One run that ended."""

    number: int
    mode: str
    outcome: Outcome
    seconds: float
    folder: str = ""
    """Where its output is, below the folder of the search; empty where it was not kept."""
    forked: bool = False


class Began(Record):
    """It is known what is to be run."""

    number: int
    todo: int
    known: int
    notes: tuple[str, ...] = ()


class State(Record):
    """How it stands."""

    done: int
    total: int
    failed: int
    running: int
    seconds_left: float


class Ended(Record):
    """One run has ended, and failed."""

    run: Run
    done: int
    total: int


class Noticed(Record):
    """Something a person should know."""

    text: str


class Counted(Record):
    """How often one failure was seen."""

    title: str
    digest: str
    count: int
    first: Run


class Rate(Record):
    """How often it failed in one mode."""

    mode: str
    bounds: Bounds
    chance: float | None = None
    """How likely so great a difference to plain runs is by chance alone."""


class Found(Record):
    """What came of it."""

    runs: tuple[Run, ...]
    before: int
    rates: tuple[Rate, ...]
    failures: tuple[Counted, ...]
    untestable: Mapping[str, int]
    left: int
    stopped: str = ""
    seconds: float = 0.0
    forked: int = 0
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> int:
        """How many runs failed."""
        return sum(rate.bounds.fails for rate in self.rates)


Event = Began | State | Ended | Noticed
