"""What happened in one trial, and the identity of the failure if it failed."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class Signature(Record):
    """The identity of a failure: the same `key` is the same failure, wherever and whenever."""

    kind: str
    """exception, signal, tests, timeout, exit, pinned, memory, hang"""
    title: str
    """For people, with the line number: `train.py:88 ValueError: loss is nan`."""
    key: tuple[str, ...]
    """Washed pieces that make the identity: type, message, the user's own functions."""

    @property
    def digest(self) -> str:
        """Return the key in sixteen characters."""
        from _blake2 import blake2b  # hashlib costs three times as much to import

        text = "\0".join((self.kind, *self.key))
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Outcome(Record):
    """How a trial ended. With `not_started`, `exit_code` is what rl itself ends with."""

    exit_code: int | None = None
    signal: int | None = None
    not_started: str = ""
    """Why the program never ran: a reset failed, the command was not found."""
    lost: str = ""
    """Why its end says nothing of the program: the machines it ran on went away."""
    timed_out: bool = False
    interrupted: bool = False
    """The person pressed Ctrl-C."""
    duration_s: float = 0.0
    critical_s: float | None = None
    """Seconds to the critical point: the first failing event or the first `until` match."""
    signature: Signature | None = None
    """None when nothing failed."""
    metrics: Mapping[str, str] = {}
    unknown: Mapping[str, str] = {}
    """What a pattern took too long to tell, and why: `until`, `match`, `metric loss`."""
    code_changed: tuple[str, ...] = ()
    """Files of the project that changed while the program ran."""
    ended_processes: tuple[str, ...] = ()
    """Processes that outlived the program and were ended: `pid command`."""
    not_passed_on: str = ""
    """Why some output could not be passed on: the reader's disk was full."""
    loaded: Mapping[str, str] = {}
    """Package to file, as the process itself reported it at exit."""
    resumed: Mapping[str, Any] = {}
    """Of a warm run: `at` which statement it went on, what that took and saved, and `because`."""
    cold: str = ""
    """Why a warm run began at the beginning."""
    reached: Mapping[str, Any] = {}
    """Which limit was reached: `what`, `limit_bytes`, `bytes`, `by` whom it was stopped, `at`."""
    usage: Mapping[str, Any] = {}
    """What it used, if that was watched: `peak_bytes`, `peak_at_s`, `cpu_s`, `read_bytes`, ..."""

    @property
    def passed(self) -> bool:
        """True when the program ran and nothing failed."""
        began = self.exit_code == 0 and self.signature is None and not self.not_started
        return began and not self.lost and "match" not in self.unknown
