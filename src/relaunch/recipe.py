"""What to run: frozen data. The same recipe run twice starts from the same state."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class SmallDisk(Record):
    """A folder that looks as if it lay on a small disk; what is written there never reaches it."""

    path: str
    """Absolute, links followed."""
    size_bytes: int | None = None
    inodes: int | None = None


class GpuFree(Record):
    """Of the memory of a GPU only so much is left free."""

    bytes: int
    device: int | None = None
    """None: of each."""


class Limits(Record):
    """How much a trial may take; None means as much as there is."""

    timeout_s: float | None = None
    memory_bytes: int | None = None
    """Of all its processes together, what they share counted once."""
    at_limit: str = "kill"
    """kill, pause, lift or interrupt: what happens when the memory is reached; spare: of a shell,
    what it runs is ended."""
    memory_by: str = ""
    """cgroup, watch or data: one way to limit memory; empty takes the best that works here."""
    track_memory: bool = False
    """Note which lines allocate, so that the limit can say whose growth it was."""
    hang_s: float | None = None
    """After so long without output a program that seems to hang counts as hung."""
    on_hang: str = "kill"
    """kill, keep or pdb: what happens to one that hangs."""
    pause_at_peak: bool = False
    """Stop it near the most memory that it had the last time, for a person to look."""
    disks: tuple[SmallDisk, ...] = ()
    keep: bool = False
    """What is written to a small disk goes to the real folder in the end."""
    gpu_free: tuple[GpuFree, ...] = ()
    gpu_by: str = ""
    """hold or share: one way to leave less GPU memory; empty takes the best that works here."""


class Probe(Record):
    """A question at a line or function of the program, asked without editing it."""

    kind: str
    """peek, log, count, where, who, sleep, break, die, section, shapes, package"""
    file: str
    """Where it really is: absolute, links followed. Empty for a package: its name is the label."""
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


class Elsewhere(Record):
    """The program runs on other machines."""

    engine: str = "slurm"
    held: str = ""
    """Folder that says which machines are held for it; empty: those this shell is in."""
    words: tuple[str, ...] = ()
    """What else the engine is told, as `-n 1`."""
    spread: bool = False
    """One of several at once, each on a machine of its own."""


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
    watch: bool = False
    """Keep what it uses over time, and show it beside the program."""
    ranks: int = 0
    """Run so many ranks of it, as a node of as many GPUs would; 0: it is one program."""
    threads: bool = False
    """The ranks are threads of one process."""
    blame: bool = False
    """Name each failed system call that mattered, with its path and line."""
    blame_by: str = ""
    """shim, tracer, strace or process: who sees the calls; empty takes the best that works here."""
    slow_calls: tuple[str, ...] = ()
    """Instead of those that fail: which of these calls take long."""
    slow_s: float = 0.1
    """So long is long."""
    elsewhere: Elsewhere | None = None
    """Where it runs, if not here."""
    sync: bool = False
    """Set what makes asynchronous failures come where they are made."""
    single: bool = False
    """In one process: launchers, workers and pools are collapsed into it."""
    typed: tuple[str, ...] = ()
    """The words of `rl py`, of which `argv` was made; empty for a command that was typed itself."""
