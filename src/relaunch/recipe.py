"""What to run: frozen data. The same recipe run twice starts from the same state."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Limits(Record):
    """How much a trial may take; None means as much as there is."""

    timeout_s: float | None = None


class Probe(Record):
    """A question at a line or function of the program, asked without editing it."""

    kind: str
    """peek, log, count, where, who, sleep, break, die, section, shapes"""
    file: str
    """Where it really is: absolute, links followed."""
    line: int = 0
    end: int = 0
    """Of a section: its last line."""
    function: str = ""
    """Qualified, as `GPT.forward`; instead of a line."""
    after: bool = False
    """Once the line has been run, or the function returns."""
    exprs: tuple[str, ...] = ()
    condition: str = ""
    every: int = 0
    first: int = 0
    last: int = 0
    seconds: float = 0.0
    """Of a sleep."""
    text: str = ""
    """Of a log: what to say, with `{expressions}` in it."""
    label: str = ""
    """What a person calls the place: `train.py:88`."""


class Recipe(Record):
    """One trial to run, complete: nothing else decides how it starts."""

    argv: tuple[str, ...]
    cwd: str
    resets: tuple[str | tuple[str, ...], ...] = ()
    """Run before the launch, in order; a string goes through the shell, a tuple is an argv."""
    reset_continue: bool = False
    """Go on when a reset step fails."""
    config_set: str = ""
    env: Mapping[str, str] = {}
    """What is set on top of the inherited environment."""
    limits: Limits = Limits()
    until: str = ""
    """The critical point is the first output that matches this regular expression."""
    match: str = ""
    """The failure being hunted is output that matches this, whatever else happens."""
    exit_code: int | None = None
    """The failure being hunted is this exit code, whatever else happens."""
    src: tuple[str, ...] = ()
    """Clones whose package must be the one that is loaded."""
    frozen: bool = False
    """Run from a copy that later edits cannot reach."""
    let_live: bool = False
    """Processes that outlive the program are meant to."""
    warm: bool = False
    """Go on from a snapshot of an earlier run where one is still true, and leave some."""
    at: tuple[str, ...] = ()
    """Places, as `train.py:180`, where a warm run must leave a snapshot."""
    warm_memory: str = ""
    """What its snapshots may take together, as `4G` or `30%`; empty leaves it to the settings."""
    warm_idle_s: float = 0.0
    """Without use its snapshots end after so long; 0 leaves it to the settings."""
    pdb: bool = False
    """Open the debugger where it fails."""
    nan: bool = False
    """Stop at the first line of the project that makes a nan or an inf."""
    probes: tuple[Probe, ...] = ()
    """What to look at while it runs."""
    typed: tuple[str, ...] = ()
    """The words of `rl py`, of which `argv` was made; empty for a command that was typed itself."""
