"""What a bisection asks for, what it tells while it runs, and what it found."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.search.line import Answer, Side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.history.line import Commit
    from relaunch.outcome import Outcome, Signature
    from relaunch.recipe import Recipe
    from relaunch.session.bisect.hunt import Hunt


RATES = ("never_fails_before", "always_fails_after", "always_fails_before", "never_fails_after")
"""What a person may know of how often it fails."""


class Request(Record):
    """What a person asked for."""

    recipe: Recipe
    good: str
    bad: str
    jobs: int = 1
    confidence: float = 0.98
    ends: int = 1
    """How often each end is run before it is believed."""
    most_runs: int | None = None
    most_s: float | None = None
    never_fails_before: bool = False
    always_fails_after: bool = False
    always_fails_before: bool = False
    never_fails_after: bool = False
    prior: bool = True
    """Let what each commit touched say where to look first."""
    confirm: int = 1
    """How often the answer, and the commit before it, are run once more."""
    build: str = ""
    build_timeout_s: float | None = None
    rebuild: bool = False
    """Build at every probe, also what was built before."""
    files: tuple[str, ...] = ()
    """Files of the tree that are put into each checkout."""
    repair: bool = True
    """Make environments for revisions that need other packages."""
    fork: bool = True
    """Let probes begin with their imports done, where that is as good."""

    @property
    def has_budget(self) -> bool:
        """Tell whether a person said how much may be spent: then nothing is given up before."""
        return self.most_runs is not None or self.most_s is not None


class Began(Record):
    """The range is known; both ends are run first."""

    number: int
    ends: tuple[str, str]
    commits: int
    notes: tuple[str, ...] = ()
    noun: str = "commit"


class Learnt(Record):
    """Both ends were run."""

    hunt: Hunt
    old: Outcome
    new: Outcome


class Noted(Record):
    """Something that a person should know of the probes."""

    text: str


class Preparing(Record):
    """What takes long before a probe can run; nothing: it is over."""

    name: str
    what: str


class Probed(Record):
    """One probe has ended."""

    name: str
    title: str
    side: Side
    outcome: Outcome
    seconds: float
    rung: str = ""
    """What it was run with, other than what was there."""


class State(Record):
    """How a search stands, after each change."""

    size: int
    sides: Mapping[int, Side]
    """What was seen, by place on the line; 0 is the old end."""
    running: tuple[int, ...]
    chances: Sequence[float]
    left: int
    """Commits among which it still may be."""
    runs: int
    expected: int
    """Runs that it probably takes until the end."""
    seconds_left: float
    inside: str = ""
    """The merge whose commits these are."""


class Found(Record):
    """What came of it."""

    answer: Answer
    suspects: tuple[tuple[Commit, float], ...]
    """The commits among which it is, the likeliest first."""
    hunt: Hunt
    parent: str = ""
    """The commit before the first suspect."""
    merged_by: tuple[Commit, ...] = ()
    """Merges that brought it in, the outermost first."""
    runs: int = 0
    search_runs: int = 0
    """Those that were needed besides both ends and confirmations."""
    builds: int = 0
    forked: int = 0
    """Runs that began with their imports done."""
    seconds: float = 0.0
    stopped: str = ""
    """Why it ended before it was sure: interrupted, out of runs or time."""
    others: Mapping[str, int] = {}
    """Other failures on the way, and at how many commits."""
    with_it: Outcome | None = None
    """What was seen at the first suspect."""
    without_it: Outcome | None = None
    """What was seen at the commit before it."""

    @property
    def failure(self) -> Signature:
        """What was brought; or what was mended, which need not be how it failed at the old end."""
        last = self.without_it.signature if self.hunt.is_reversed and self.without_it else None
        return last or self.hunt.failure

    @property
    def is_found(self) -> bool:
        """One commit, seen with and without it."""
        return self.answer.is_found and len(self.suspects) == 1


Event = Began | Learnt | Noted | Preparing | Probed | State
