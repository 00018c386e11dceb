"""What a sweep asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from enum import Enum

from relaunch.record import Record
from relaunch.session.compare import Ran

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.outcome import Signature
    from relaunch.recipe import Elsewhere
    from relaunch.search.factors import Explanation

    Settings = Mapping[str, str]
    """A value for each factor."""


SEED_VARIABLES = ("PYTHONHASHSEED", "SEED")


class Kind(Enum):
    """How a factor reaches the program."""

    SET = "set"
    SEED = "seed"
    ENV = "env"
    ARG = "arg"


class Factor(Record):
    """One thing that varies, and its values."""

    name: str
    kind: Kind
    values: tuple[str, ...]


class Request(Record):
    """What a person asked for."""

    argv: tuple[str, ...]
    """The command, with `{name}` where the value of a factor goes."""
    cwd: str
    factors: tuple[Factor, ...]
    paired: tuple[tuple[str, ...], ...] = ()
    """Factors that go in step."""
    pairwise: bool = False
    """Only as many combinations as it takes to have every pair of values."""
    limit: int | None = None
    """At most so many combinations."""
    times: int = 1
    """How often each combination is run."""
    jobs: int = 1
    timeout_s: float | None = None
    hang_s: float | None = None
    match: str = ""
    most_runs: int | None = None
    most_s: float | None = None
    elsewhere: Elsewhere | None = None
    """Where the runs go, if they do not stay here."""
    tell_apart: bool = False
    """Also run combinations that tell equally good explanations apart."""

    @property
    def named(self) -> tuple[str, ...]:
        """The factors that tell one run from another; all if none does."""
        varying = tuple(one.name for one in self.factors if len(set(one.values)) > 1)
        return varying or tuple(one.name for one in self.factors)


class Run(Ran):
    """One trial of a sweep."""

    settings: Settings
    seconds: float = 0.0
    code: str = ""
    """The digest of the code it ran."""


class Began(Record):
    """It is known what is to be run."""

    number: int
    todo: int
    done: int
    """Runs of before, if it goes on."""
    notes: tuple[str, ...] = ()


class State(Record):
    """How a sweep stands, whenever a run began or ended."""

    done: int
    total: int
    failed: int
    running: tuple[Settings, ...]
    seconds_left: float


class Ended(Record):
    """One run has ended."""

    run: Run
    done: int
    total: int


class Noticed(Record):
    """Something a person should know; said once."""

    text: str


class Found(Record):
    """What came of it."""

    runs: tuple[Run, ...]
    before: int
    """How many of them are of an earlier sitting."""
    explanation: Explanation
    hunted: Signature | None
    """The failure that is explained first: what `--match` names, else the most frequent one."""
    titles: Mapping[str, str]
    """Of all failures, by their keys."""
    examples: Mapping[str, str]
    """Of each failure, a trial that shows it."""
    untestable: Mapping[str, int]
    """Why some runs say nothing, and how many."""
    left: int = 0
    """Runs that are still to be done."""
    stopped: str = ""
    """Why it ended before that: interrupted, out of runs or time."""
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> int:
        """How many runs passed."""
        return sum(run.outcome.passed for run in self.runs)

    @property
    def all_passed(self) -> bool:
        """All that was asked for was run, and nothing failed."""
        return not self.left and self.passed == len(self.runs)


Event = Began | State | Ended | Noticed
