"""What `rl stacks` finds on this machine: each way is tried on a process that is not ours."""

from __future__ import annotations

import os

from relaunch.desk.doctor import Ladder, Rung
from relaunch.jsontext import dumps, loads
from relaunch.look.stacks.kernel import threads
from relaunch.look.stacks.ladder import (
    FAULTHANDLER,
    FLOWING,
    KERNEL,
    PY_SPY,
    PYSTACK,
    Asked,
    look,
)
from relaunch.proc.helper import Helper, write_all

_WAYS = {
    PY_SPY: "stacks of every thread: a process is stopped for milliseconds",
    FLOWING: "stacks of a process that runs on meanwhile, is stopped, or hangs in the kernel",
    PYSTACK: "where py-spy fails; frames of C and C++ of a process that is stopped",
}
_HEARD_S = 20.0


def stacks_ladder() -> Ladder:
    """Try to read a process from one that did not start it: that is what the kernel may refuse."""
    child = Helper(_read_parent)
    said = b""
    while not said.endswith(b"\n") and (block := child.hear(_HEARD_S)):
        said += block
    child.stop()
    found = loads(said.decode()) if said.endswith(b"\n") else {}
    rungs = [
        Rung(name=name, ok=not why, means=_WAYS[name], raise_it=why)
        for name, why in ((name, found.get(name, "it does not answer")) for name in _WAYS)
    ]
    rungs.append(
        Rung(
            name=FAULTHANDLER,
            ok=True,
            means="programs of trials tell them where nobody may look; your own by --signal",
        )
    )
    kernel = any(one.doing for one in threads(os.getpid()))
    rungs.append(Rung(name=KERNEL, ok=kernel, means="which call each thread waits in, no stacks"))
    return Ladder(name="stacks", rungs=tuple(rungs))


def _read_parent(socket: int) -> None:
    """Read who started us in each way, by that way alone; say why where that failed."""
    found = {}
    for name in _WAYS:
        others = frozenset({*_WAYS, FAULTHANDLER} - {name})
        (one,) = look([os.getppid()], Asked(without=others, limit_s=5.0))
        hint = f": {one.fix}" if one.fix else ""
        found[name] = "" if one.read_by == name else f"{one.problem}{hint}"
    write_all(socket, (dumps(found) + "\n").encode())
