"""Begins probing in this process: reads what is asked and opens the ways in."""

from __future__ import annotations

import os
import sys

from relaunch.inside.probe.counts import Counts
from relaunch.inside.probe.engine import Engine
from relaunch.inside.probe.finite import Look
from relaunch.inside.probe.loads import Loads
from relaunch.inside.probe.notes import Notes
from relaunch.inside.probe.runtime import Runtime
from relaunch.inside.probe.voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def begin(path: str) -> None:
    """Probe this process as the file at `path` says, to its end."""
    import atexit  # built into Python

    atexit.register(probe(path, Voice(path.rpartition("/")[0])))


def probe(path: str, voice: Voice) -> Callable[[], None]:
    """Probe this process as the file at `path` says; returns what to call when it is over."""
    spec = read(path)
    folder = path.rpartition("/")[0]
    notes = Notes(folder)
    notes.add("began", argv=[*sys.orig_argv], python=sys.version.partition(" ")[0])
    counts = Counts(folder, len(spec["probes"]))
    runtime = Runtime(spec["probes"], voice=voice, counts=counts, notes=notes)
    runtime.look = Look(runtime, opens_debugger=bool(spec.get("opens_debugger")))
    Engine(runtime, spec.get("roots", ())).install()
    loads = Loads(spec["probes"], notes)
    loads.install()
    script = os.path.realpath(sys.argv[0]) if sys.argv else ""

    def over() -> None:
        loads.at_exit()
        at_exit(spec["probes"], notes, script)

    return over


def at_exit(probes: Any, notes: Notes, script: str) -> None:
    """Note what only the end shows; the program ends all the same."""
    try:
        from relaunch.inside.probe.facts import note_facts

        note_facts(probes, notes, script)
    except Exception as error:
        notes.add("trouble", text=f"{type(error).__name__}: {error}")


def read(path: str) -> Any:
    """Read what rl wrote: plain Python values, for `json` may be the name of a user's file."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        return eval(file.read(), {"__builtins__": {}})
