"""Keeps the calls that an exception passed when nobody caught it; until then nothing is paid."""

from __future__ import annotations

import sys
import time

from relaunch.inside.capture import aside, device, randoms
from relaunch.inside.capture.work import LIMIT_S, Place, Work

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    from types import TracebackType
    from typing import Any
else:
    posix = sys.modules["posix"]

MOST_PER_PROCESS, MOST = 3, 12
"""So many failures are kept of one process, and of all in a trial."""
_GRACE_S = 1.0
_clock = time.monotonic
_state: dict[str, Any] = {"pid": 0, "count": 0, "spent_s": 0.0}


def capture(error: BaseException, folder: str, who: str = "", **more: Any) -> list[str]:
    """Keep the calls that an exception passed, below `folder`; returns the names of its folders.

    For one who catches it, as a test runner. `who` is shown with it; `more` are for the `Place`.
    """
    return keep(error, error.__traceback__, Place(folder, **more), who, most=1 << 30)


def keep(
    error: BaseException,
    tb: TracebackType | None,
    place: Place,
    who: str = "",
    most: int = MOST_PER_PROCESS,
) -> list[str]:
    """Keep the calls that an exception passed; returns the names of the folders that were written.

    `who` names the thread or worker that failed. Of a group, each of its first members is kept.
    """
    found = []
    for one, its_tb in _leaves(error, tb, 3):
        name = _next(most)
        if not name or len(_listed(place.folder)) >= max(MOST, most):
            continue
        began = _clock()
        try:
            states = randoms.now()  # here: `random` seeds itself anew in a copy of the process
            work = Work(place, one, its_tb, who, states, began + place.limit_s, name)
            if device.is_used():
                work.fetch()
            if aside.run(work.do, place.limit_s + _GRACE_S):
                found.append(name)
            work.discard()
        finally:
            _state["spent_s"] += _clock() - began
    return found


def _leaves(
    error: BaseException, tb: Any, most: int
) -> list[tuple[BaseException, TracebackType | None]]:
    """Return the exceptions to keep: of a group its members too, which have frames of their own."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return []
    found = [(error, tb)]
    members = getattr(error, "exceptions", None)
    for member in members if isinstance(members, tuple) else ():
        if isinstance(member, BaseException) and len(found) < most:
            found += _leaves(member, member.__traceback__, most - len(found))
    return found


def _listed(folder: str) -> list[str]:
    try:
        return posix.listdir(folder)
    except OSError:
        return []


def _next(most: int) -> str:
    """Return the name for one more capture of this process; empty if it has enough."""
    pid = posix.getpid()
    if _state["pid"] != pid:  # forked
        _state.update(pid=pid, count=0, spent_s=0.0)
    is_late = _state["spent_s"] > 2 * LIMIT_S and most <= MOST
    if _state["count"] >= most or is_late:
        return ""
    _state["count"] += 1
    return f"{pid}-{_state['count']}"
