"""Runs one kept call alone, with the user's Python: in a fresh process, or beside warm imports."""

from __future__ import annotations

import os
import sys
import time

from relaunch.jsontext import dumps, loads
from relaunch.proc.supervise import supervise
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

RUNNER = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    *("inside", "replay", "main.py"),
)
IMPORTS_S = 120.0
"""The limit is for the call; what it imports first may take longer."""
_SIGALRM = 14
_OURS = ("RELAUNCH_HOOK", "RELAUNCH_CAPTURE", "RELAUNCH_SRC", "RELAUNCH_ROOTS")


class Call(Record):
    """Which frame of which capture, and in which world."""

    capture: str
    digests: Mapping[str, str]
    """Of the files that may be loaded; of none where the capture was just written by us."""
    is_own: bool
    """Whether this user recorded it: plain data of others is read with more care."""
    frame: int
    how: str
    """`call`: the whole function; `statement`: the line that failed, with its variables;
    `one-liner` or `one-liner with values`: nothing is run, the call is written down.
    """
    python: Mapping[str, Any]
    """Of the facts: `executable`, `options`, `path`."""
    env: Mapping[str, str]
    cwd: str
    moved: tuple[tuple[str, str], ...] = ()
    """Folders of then, and where they are now."""
    old: bool = False
    """With the code as it was when the call failed, not as it is now."""
    libraries: Sequence[str] = ()
    """Modules that are no code of the user, in the order in which they were imported."""
    roots: Sequence[str] = ()
    """Folders of the user's own code."""
    identity: str = ""
    """Stands for the environment: with another, other imports are used."""


class Status(Record):
    """How the process of a replay ended."""

    exit_code: int = 0
    signal: int = 0
    timed_out: bool = False
    took_s: float = 0.0
    output: tuple[tuple[int, bytes], ...] = ()


class Replayed(Record):
    """What came of it."""

    ended: str
    """raised, passed, exited, written, unready (could not begin), timed_out, died (by a signal)"""
    why: str = ""
    line: str = ""
    """The call as one line of Python, if that was asked for."""
    needs: str = ""
    """What it came to that was not kept."""
    error: dict[str, Any] | None = None
    """The exception, as the hook describes one."""
    notes: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    """Functions that were edited since, and are no part of the replay."""
    took_s: float = 0.0
    exit_code: int = 0
    output: tuple[tuple[int, bytes], ...] = ()
    """What it printed: stream and bytes."""
    warm: bool = False


def replay(
    call: Call,
    *,
    limit_s: float | None,
    shown: bool = False,
    pdb: bool = False,
    fresh: bool = False,
) -> Replayed:
    """Run it; `shown` passes its streams through, for a debugger or a person.

    `limit_s` is for the call alone, not for the imports before it.
    """
    result = _result_path(call)
    spec = {
        "capture": call.capture,
        "digests": dict(call.digests),
        "is_own": call.is_own,
        "frame": call.frame,
        "how": call.how,
        "old": call.old,
        "moved": [list(pair) for pair in call.moved],
        "result": result,
        "limit": None if pdb else limit_s,
        "pdb": pdb,
    }
    try:
        if not fresh and sys.platform == "linux":
            from relaunch.trial.launch.imports import run_warm

            status = run_warm(call, spec, limit_s=limit_s, shown=shown)
            if status is not None:
                return _told(status, result).but(warm=True)
        return _told(_fresh(call, spec, limit_s=limit_s, shown=shown), result)
    finally:
        _remove(result)


def _result_path(call: Call) -> str:
    """Return where a replay says what came of it: a place that is nobody else's."""
    name = f"result.{os.getpid()}-{time.monotonic_ns()}.tmp"
    if os.access(call.capture, os.W_OK):
        return os.path.join(call.capture, name)
    from relaunch.inside.warm.where import run_folder

    return os.path.join(run_folder(os.environ), name)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _fresh(call: Call, spec: Mapping[str, Any], *, limit_s: float | None, shown: bool) -> Status:
    output: list[tuple[int, bytes]] = []
    ended = supervise(
        [call.python["executable"], *call.python["options"], RUNNER, dumps(spec)],
        cwd=call.cwd,
        env=without_hook(call.env),
        chunk=lambda _, stream, data: output.append((stream, data)),
        timeout_s=None if shown or limit_s is None else limit_s + IMPORTS_S,
        quiet=not shown,
        stdin=shown,
    )
    return Status(
        exit_code=ended.exit_code or 0,
        signal=ended.signal or 0,
        timed_out=ended.timed_out,
        took_s=ended.duration_s,
        output=() if shown else tuple(output),
    )


def without_hook(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which a replay reports to nobody but us."""
    return {name: value for name, value in env.items() if name not in _OURS}


def _told(status: Status, result: str) -> Replayed:
    """Join how the process ended with what it said."""
    told = read_result(result).but(exit_code=status.exit_code)
    if status.timed_out or status.signal == _SIGALRM:
        told = Replayed(ended="timed_out", exit_code=124)
    elif status.signal:
        told = Replayed(ended="died", why=f"signal {status.signal}", exit_code=128 + status.signal)
    return told.but(took_s=status.took_s, output=status.output)


def read_result(path: str) -> Replayed:
    """Read what a replay left; one that left nothing could not begin."""
    try:
        with open(path, encoding="utf-8") as file:
            told = loads(file.read())
        return Replayed(
            ended=str(told["ended"]),
            why=str(told.get("why") or ""),
            line=str(told.get("line") or ""),
            needs=str(told.get("needs") or ""),
            error=told.get("error"),
            notes=tuple(map(str, told.get("notes") or ())),
            not_run=tuple(map(str, told.get("not_run") or ())),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return Replayed(ended="unready", why="it ended before it could say what happened")
