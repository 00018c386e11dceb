"""What is happening, as the session tells it; only the command line decides how it looks."""

from __future__ import annotations

from relaunch.outcome import Outcome
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Warned(Record):
    """Something a person should know; the program runs all the same."""

    text: str
    hint: str = ""


class Prepared(Record):
    """Part of the program's world was made for it: a small disk, a limit; and by which means."""

    text: str


class Warmed(Record):
    """A warm run goes on at a statement, or begins at the beginning: `cold` says why."""

    at: str = ""
    took_s: float = 0.0
    saved_s: float = 0.0
    because: str = ""
    cold: str = ""


class Announced(Record):
    """A trial is about to run."""

    trial_id: str
    code: str
    """`base 3f2c1aa + 2 changed, 1 new`, or `1 file since #1: train.py +1 -1`."""
    config_set: str
    note: str
    command: tuple[str, ...]
    repeated: bool = False
    """The command comes from the last trial, not from the person's fingers."""
    setting: tuple[str, ...] = ()
    """What comes with a repeated command and is easily forgotten: `in sub`, `LR=3`."""


class Finished(Record):
    """A trial has ended."""

    trial_id: str
    """Empty when it could not be recorded."""
    outcome: Outcome
    told: str
    """Against its history: `same failure as #3, 12 s sooner`."""
    config_set: str = ""
    replayable: bool = False
    """The call that failed was kept, for `rl replay`."""
    blamable: tuple[str, ...] = ()
    """Errors of the system that the failure names without saying where: `ENOSPC`."""
    in_line: bool = False
    """The program's last output did not end its line; a terminal needs a fresh one."""
    refused: bool = False
    """It could not begin; the error that is raised next says why."""


class Measured(Record):
    """The sections of a trial were measured."""

    trial_id: str
    sections: Mapping[str, Any]
    """As `sections.json` of the trial has them."""
    missed: tuple[str, ...] = ()
    """Of those that were asked for: which never ran, and why."""


class Blamed(Record):
    """The failed or slow calls of a trial are known."""

    trial_id: str
    blame: Mapping[str, Any]
    """As `blame.json` of the trial has them."""
    why: str = ""
    """Why it is run once more, with a surer eye; nothing when the failure is explained."""


class Collapsed(Record):
    """What of a trial was run in one process instead of many."""

    trial_id: str
    collapsed: tuple[Mapping[str, Any], ...]
    """Each with `what`, `where` and `times`, as `single.json` of the trial has them."""


Event = Warned | Prepared | Warmed | Announced | Finished | Measured | Blamed | Collapsed
