"""Decides which snapshot a relaunch may go on from.

A snapshot is valid when a cold run started now would come to the same point in the same state: all
that it executed stands unedited in the files, and all that it saw of the world is still so.
"""

from __future__ import annotations

import ast
import os

from . import compare, world
from .importable import elsewhere, is_module
from .texts import SYNTAX_ERROR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .importable import Importable
    from .texts import Look


class Snapshot:
    """What the host knows of a process that waits."""

    def __init__(self, number: int, pid: int, hello: dict[str, Any], run: int) -> None:
        """Take what it said of itself."""
        self.id = str(number)
        self.pid = pid
        self.run = run
        """Which run of the program left it behind; later ones have higher numbers."""
        self.file, _, line = str(hello["at"]).rpartition(":")
        self.line = int(line)
        self.elapsed = float(hello["elapsed"])
        self.tape = str(hello.get("tape", ""))
        self.mark = int(hello.get("mark", 0))
        self.seen = bytes.fromhex(hello["seen"])
        self.files: dict[str, tuple[int, str]] = {
            str(path): (int(first), str(digest)) for path, (first, digest) in hello["files"].items()
        }
        self.ledger: dict[str, Any] = hello.get("ledger") or {}
        self.lines_seen = bool(hello.get("lines_seen"))
        self.dissects = bool(hello.get("dissects"))
        self.site = int(hello.get("site", -1))
        self.start: Importable | None = None
        """What could be imported when its run began."""
        self.resuming = 0
        """How many runs came from it that have not ended."""
        self.pss = 0
        self.alone = 0
        """What it would take if it shared nothing with other snapshots and runs."""
        self.is_stale = False
        """It was not valid when somebody asked for the last time."""
        self.is_past_imports = False
        self.is_wanted = False
        """Somebody asked for a snapshot at this very place."""
        self.is_retired = False
        """It is not to be used any more, and ends when the last run from it has ended."""
        self.refused: set[str] = set()
        """The sources with which it could not go on."""

    def seen_of(self, first: int, source: compare.Source) -> bytes:
        """Return which sites of a file were executed; what is not known counts as executed."""
        return self.seen[first : first + source.size].ljust(source.size, b"\1")


# --- valid or not


class Verdict:
    """What was found out about a snapshot."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        """Why it cannot be used; empty if it can."""
        self.edited: dict[str, compare.Source] = {}
        """The files that say something else now, as they are now."""

    @property
    def name(self) -> str:
        """A name for the sources with which the snapshot would go on."""
        return " ".join(sorted(f"{path}={one.digest}" for path, one in self.edited.items()))


def judge(snapshot: Snapshot, look: Look, packages: str) -> Verdict:
    """Find out whether a run may go on from a snapshot, as if it had been started now."""
    if snapshot.start is not None and snapshot.start.packages != packages:
        return Verdict("installed packages changed")
    verdict = _unedited(snapshot, look)
    if verdict.why:
        return verdict
    verdict.why = _shadowed(snapshot, look)
    if not verdict.why and snapshot.tape and not os.path.exists(snapshot.tape):
        verdict.why = "its recorded output is gone"
    if not verdict.why:
        verdict.why = _changed(snapshot.ledger)
    if not verdict.why and verdict.name in snapshot.refused:
        verdict.why = "it could not go on before"
    return verdict


def _changed(ledger: dict[str, Any]) -> str:
    """Say what the program saw of the world and is not so any more; empty if all is."""
    try:
        return world.changed(ledger)
    except Exception as error:
        return f"what it saw cannot be checked: {type(error).__name__}: {error}"


def _unedited(snapshot: Snapshot, look: Look) -> Verdict:
    verdict = Verdict()
    for file, (first, digest) in snapshot.files.items():
        text = look.text(file)
        if text is None:
            return Verdict(f"{look.name(file)} is gone or cannot be read")
        if text == look.sources.text(digest):
            continue
        new = look.parsed(file)
        if isinstance(new, str):
            return Verdict(new)
        old = look.sources.source(digest, file)
        seen = snapshot.seen_of(first, old)
        dissected = snapshot.dissects or any(word in text for word in compare.CODES)
        why, moves = compare.compare(old, new, seen, dissected=dissected)
        if why:
            return Verdict(f"{look.name(file)}, {why}")
        if moves.any and (snapshot.lines_seen or any(word in text for word in compare.LINES)):
            return Verdict(f"lines of {look.name(file)} moved, and their numbers were used")
        verdict.edited[file] = new
    return verdict


def deepest_first(snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Return snapshots in the order in which to try them; of equal ones the newest run's first."""
    return sorted(snapshots, key=lambda one: (-one.elapsed, -one.run, -int(one.id)))


def choose(
    snapshots: Iterable[Snapshot], look: Look, packages: str
) -> tuple[Snapshot | None, Verdict]:
    """Return the deepest snapshot that is valid; or None, and the verdict on the deepest one.

    Notes which ones the newest sources cannot use; a syntax error does not count, it will go.
    """
    first: Verdict | None = None
    tried = deepest_first(snapshots)
    for snapshot in tried:
        snapshot.is_stale = False
    for snapshot in tried:
        verdict = judge(snapshot, look, packages)
        verdict.why = verdict.why or _broken(snapshot, verdict, look)
        if not verdict.why:
            return snapshot, verdict
        snapshot.is_stale = not verdict.why.startswith(SYNTAX_ERROR)
        first = first or verdict
    return None, first or Verdict("no snapshots: the last run was too short, or they are gone")


def _broken(snapshot: Snapshot, verdict: Verdict, look: Look) -> str:
    """Say what only compiling finds wrong with the edited files; empty if nothing.

    What it warns of was told when the snapshot's run began: it must be the same.
    """
    for file, new in verdict.edited.items():
        why = look.compiled(file)
        if why:
            return why
        old = look.sources.source(snapshot.files[file][1], file)
        if look.sources.doubts(old) != look.sources.doubts(new):
            return f"Python warns of something else in {look.name(file)}"
    return ""


# --- modules that are new


def _shadowed(snapshot: Snapshot, look: Look) -> str:
    """Name a new module that the program would have imported; empty if there is none.

    As when somebody makes a `random.py`, or the `local_settings.py` that was not there.
    """
    start = snapshot.start
    for folder, known in start.names.items() if start else ():
        new = look.names(folder) - known
        if not new:
            continue
        sought = _imported(snapshot, look)
        if start and folder in start.tops:
            sought |= elsewhere()
        for name in sorted(new):
            path = os.path.join(folder, name)
            is_sought = name.partition(".")[0] in sought and is_module(path)
            if is_sought and not _is_loaded(path, snapshot, look):
                return f"{look.name(path)} is new, and would be imported"
    return ""


def _is_loaded(path: str, snapshot: Snapshot, look: Look) -> bool:
    """Tell whether a module, or something of a package, was imported: it came while it ran."""
    files = [os.path.join(look.cwd, file) for file in snapshot.files]
    return any(file == path or file.startswith(f"{path}/") for file in files)


def _imported(snapshot: Snapshot, look: Look) -> set[str]:
    """Return all names that the files of a snapshot have in their imports."""
    found: set[str] = set()
    for file, (_, digest) in snapshot.files.items():
        for node in ast.walk(look.sources.source(digest, file).tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                words = [alias.name for alias in node.names]
                words.append(getattr(node, "module", None) or "")
                found.update(part for word in words for part in word.split("."))
    return found
