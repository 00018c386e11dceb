"""What shrinking asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from relaunch.outcome import Signature
    from relaunch.recipe import Recipe
    from relaunch.search.shrink.model import Model

ARGS, ENV, STEPS, CALL = "the options", "the variables", "the steps", "the call"
"""Parts that are no files."""


class Request(Record):
    """What a person asked for."""

    recipe: Recipe
    files: tuple[str, ...] = ()
    """As they were typed."""
    args: bool = False
    """Also the words of the command."""
    changing: int = 0
    """How many of its last words these are."""
    env: bool = False
    """Also its variables."""
    steps: bool = False
    """Also the number of its steps."""
    stdin: bool = False
    """The first file is read from standard input."""
    trial: str = ""
    """The kept call of this trial, and nothing else."""
    also: tuple[str, ...] = ()
    """Shell lines that must still pass with what is taken."""
    keep: tuple[str, ...] = ()
    """Patterns of what must not be touched."""
    bundle: str = ""
    """A folder for a reproduction that can be sent; empty: none."""
    output: str = ""
    """Where the small one goes; empty: beside the file."""
    jobs: int = 1
    memory_bytes: int | None = None
    fresh: bool = False
    """No forks: a process of its own for each attempt."""
    most_runs: int | None = None
    most_s: float | None = None

    @property
    def is_steps_alone(self) -> bool:
        """Tell whether nothing but the number of steps becomes less."""
        return self.steps and not (self.args or self.env or self.files)


class Began(Record):
    """A search begins, or goes on."""

    number: int
    known: int
    """Attempts that need not be repeated."""


class Hunting(Record):
    """The failure is known."""

    failure: Signature
    seconds: float
    """What a run takes."""
    rate: tuple[int, int] | None = None
    """It fails in so many of so many runs; None: in each."""
    tries: int = 1
    """How often an attempt is repeated before it counts as passed."""


class Said(Record):
    """Something a person should know."""

    text: str


class Doing(Record):
    """What takes a while before the first attempt."""

    text: str


class State(Record):
    """How it stands."""

    bytes: int
    of: int
    attempts: int
    """Also those of sittings before this one."""
    per_s: float
    """In this sitting."""
    trying: str
    idle_s: float
    """Since the last gain."""


class Gained(Record):
    """It is smaller."""

    bytes: int
    of: int
    attempts: int
    seconds: float
    what: str
    part: str


class Written(Record):
    """One part of what was found."""

    name: str
    """The file as it was typed, or what part of the command."""
    path: str
    """Where the small one is; empty for what is no file."""
    bytes: int
    of: int
    model: Model


class Found(Record):
    """What came of it."""

    failure: Signature
    parts: tuple[Written, ...]
    command: tuple[str, ...]
    """Fails the same way, with the small files."""
    stdin: str
    """What it reads as its standard input; empty: nothing."""
    env: Mapping[str, str] | None
    """Variables to run it with, where these were made fewer: all others are unset."""
    in_place: bool
    """The command does not name the files: the small ones have to take their places."""
    attempts: int
    new_attempts: int
    fresh: int
    """How many of them had a process of their own."""
    seconds: float
    per_s: float
    way: str
    """How attempts were started."""
    rate: tuple[int, int] | None = None
    first_trial: str = ""
    last_trial: str = ""
    bundle: str = ""
    is_bundle_good: bool = False
    """What is in the bundle fails the same way."""
    config_set: str = ""
    """The set that was made, if one was; the command is run with it."""
    stopped: str = ""
    """Why it ended before it was done."""
    problem: str = ""
    """What could not be written, if that is why it ended."""
    remedy: str = ""
    """What to do about that."""
    history: tuple[tuple[int, int], ...] = ()
    """Attempts and bytes, after each gain."""

    @property
    def bytes(self) -> int:
        """How large all of it is."""
        return sum(one.bytes for one in self.parts)

    @property
    def of(self) -> int:
        """How large all of it was."""
        return sum(one.of for one in self.parts)


Event = Began | Hunting | Said | Doing | State | Gained
