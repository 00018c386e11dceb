"""What a race asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.schedules import BOTH, Size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.outcome import Outcome, Signature
    from relaunch.recipe import Recipe

FIRST, SCHEDULES = 1, 500


class Request(Record):
    """What a person asked for."""

    recipe: Recipe
    first: int = FIRST
    """The first seed."""
    count: int = SCHEDULES
    """How many schedules are tried, each a seed."""
    where: str = BOTH
    roots: tuple[str, ...] = ()
    """More folders and files in which threads may be interrupted."""
    all: bool = False
    """Go on after the first that fails."""
    jobs: int = 1
    most_runs: int | None = None
    most_s: float | None = None


class Run(Record):
    """One schedule that ended."""

    seed: int
    """0: without any switch that is not needed."""
    outcome: Outcome
    seconds: float
    told: Mapping[str, Any] = {}
    """What the scheduler told: threads, switches, who waits; empty when it could not."""
    output: bytes = b""

    @property
    def switches(self) -> tuple[tuple[str, str, int, str], ...]:
        """The switches, as a plan has them."""
        return tuple((a, b, c, d) for a, b, c, d, *_ in self.told.get("switches", ()))

    @property
    def loose(self) -> Mapping[str, str]:
        """Why another run of it may differ."""
        loose: Mapping[str, str] = self.told.get("loose", {})
        return loose


class Began(Record):
    """It is known what is to be run."""

    number: int
    todo: int
    known: int
    threads: int
    size: Size
    notes: tuple[str, ...] = ()


class State(Record):
    """How a race stands."""

    done: int
    total: int
    failed: int
    seconds: float
    shrinking: int | None = None
    """So many switches are left of the failing schedule."""


class Ended(Record):
    """One schedule has ended, and failed."""

    seed: int
    outcome: Outcome


class Failure(Record):
    """An order of threads that fails, and what of it matters."""

    seed: int
    run: Run
    plan: tuple[tuple[str, str, int, str], ...]
    """The switches that matter."""
    shown: Run | None
    """The run with just these, with its lines."""
    places: str
    """Where threads were allowed to switch."""
    only_elsewhere: bool
    """This Python does not switch at these places: another one would."""
    replays: int = 0
    replayed: int = 0
    """So many of so many more runs with this seed failed in the same way."""


class Found(Record):
    """What came of it."""

    runs: tuple[Run, ...]
    before: int
    failure: Failure | None
    titles: Mapping[str, tuple[str, int, int]]
    """Of each failure, by its digest: its title, how many schedules showed it, the first seed."""
    outputs: tuple[tuple[str, int, int], ...]
    """Where all passed and their output differs: each last line, how many, the first seed."""
    loose: Mapping[str, str]
    left: int
    plain: Outcome | None = None
    """Without the scheduler it fails already: so."""
    hunted: Signature | None = None
    stopped: str = ""
    seconds: float = 0.0
    threads: int = 0
    size: Size = Size(here=0, anywhere=0)


Event = Began | State | Ended
