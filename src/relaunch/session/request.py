"""What a person asked for; None means "as the last time"."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.recipe import Probe


class Request(Record):
    """One `rl ... -- CMD`, before the last trial and the settings have filled in the rest."""

    argv: tuple[str, ...] | None = None
    resets: tuple[str | tuple[str, ...], ...] | None = None
    reset_continue: bool | None = None
    note: str = ""
    name: str = ""
    sets: tuple[str, ...] | None = None
    times: int = 1
    env: Mapping[str, str] | None = None
    timeout_s: float | None = None
    limits: Mapping[str, Any] | None = None
    """Fields of `Limits` that were asked for."""
    watch: bool | None = None
    ranks: int | None = None
    threads: bool | None = None
    blame: bool | None = None
    blame_by: str | None = None
    slow_calls: tuple[str, ...] | None = None
    slow_s: float | None = None
    until: str | None = None
    match: str | None = None
    exit_code: int | None = None
    src: tuple[str, ...] | None = None
    frozen: bool | None = None
    let_live: bool | None = None
    warm: bool = False
    at: tuple[str, ...] | None = None
    warm_memory: str | None = None
    warm_idle_s: float | None = None
    probes: tuple[Probe, ...] = ()
    nan: bool = False
    pdb: bool = False
    srun: tuple[str, ...] | None = None
    """In the held allocation, with these words more for srun."""
    sync: bool | None = None
    single: bool | None = None
    compare_sync: bool = False
    """Run it plain and with `sync`, and say what that changed."""
    typed: tuple[str, ...] = ()
    """What `argv` was made of, by `rl py`."""
    unsaved: str = ""
    """ask, warn, refuse or off; empty leaves it to the settings."""
    may_ask: bool = False
    """A person is there to answer: both standard input and standard error are terminals."""
    quiet: bool = False
