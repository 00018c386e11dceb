"""Threads that wait for each other: who, where, for what, and how that is called as a failure."""

from __future__ import annotations

import os

from relaunch.outcome import Signature
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

DEADLOCK = "deadlock"
NOTICE = "notice"
"""What is waited for in a condition, and all that is made of one."""


class Waiting(Record):
    """One thread that cannot go on."""

    id: str
    name: str
    what: str
    """Lock, RLock, thread, SimpleQueue, notice; empty: it could go on."""
    made: str
    """Where that was made, `file:line`."""
    holder: str
    """The id of the thread that has it."""
    stack: tuple[tuple[str, int, str, bool], ...]
    """Innermost first: file, line, function, and whether it is the user's own."""

    @property
    def own(self) -> tuple[str, int, str, bool]:
        """The innermost frame of the user's own code, else the innermost."""
        empty = ("", 0, "", False)
        return next((one for one in self.stack if one[3]), next(iter(self.stack), empty))

    @property
    def waits_in(self) -> str:
        """The call by which it waits: `Condition.wait`, `Queue.get`, or nothing special."""
        inner = []
        for frame in self.stack:
            if frame[3]:
                break
            inner.append(frame[2])
        return inner[-1] if inner else ""


def read(waits: Sequence[Mapping[str, Any]]) -> tuple[Waiting, ...]:
    """Read what the scheduler told."""
    return tuple(map(_waiting, waits))


def _waiting(told: Mapping[str, Any]) -> Waiting:
    stack = tuple((file, line, name, own) for file, line, name, own in told["stack"])
    # Who waits for a notice waits for a lock that it took itself: nobody has that.
    is_notice = bool(stack) and stack[0][2] == "Condition.wait"
    return Waiting(
        id=told["id"],
        name=told["name"],
        what=NOTICE if is_notice else told["what"],
        made=f"{told['made'][0]}:{told['made'][1]}" if told["made"][0] else "",
        holder="" if is_notice else told["holder"],
        stack=stack,
    )


def circle(waits: Sequence[Waiting]) -> tuple[Waiting, ...]:
    """Return those who wait for each other in a circle; nothing if they do not."""
    by_id = {one.id: one for one in waits}
    for first in waits:
        chain = [first]
        while (last := by_id.get(chain[-1].holder)) is not None and last not in chain:
            chain.append(last)
        if last is not None:
            return tuple(chain[chain.index(last) :])
    return ()


def signature(waits: Sequence[Waiting]) -> Signature:
    """Name the failure: who waits in which function for what; no matter which thread it is."""
    stuck = circle(waits)
    if stuck:
        places = ", ".join(dict.fromkeys(_place(one) for one in stuck))
        who = f"{len(stuck)} threads" if len(stuck) > 1 else "a thread with itself"
        title = f"deadlock of {who}: {places}"
    else:
        stuck = tuple(one for one in waits if one.what and one.what != "thread") or tuple(waits)
        one = stuck[0] if stuck else None
        calls = f" in {one.waits_in}" if one is not None and one.waits_in else ""
        title = f"stuck: {_place(one)} waits{calls}, and nobody is left" if one else "stuck"
    key = sorted({f"{one.own[2]} {one.what} {one.waits_in}" for one in stuck})
    return Signature(kind=DEADLOCK, title=title, key=(DEADLOCK, *key))


def _place(one: Waiting) -> str:
    file, line, name, _ = one.own
    return f"{os.path.basename(file)}:{line} {name}"
