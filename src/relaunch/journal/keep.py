"""What the journal may forget: old or large trials, never a marked, named, running or newest one.

A trial goes by one rename (to `.gone-...`) and is then deleted: a kill in between leaves no half
trial, only something for the next time to sweep.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError
from relaunch.journal import searches
from relaunch.journal.beside import is_of_another
from relaunch.journal.refs import newest
from relaunch.journal.store import id_order, is_here, is_temporary, process_started, read_json
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from relaunch.journal.store import Journal

_POINTERS = ("identities", "signatures")
_NOT_ENTERED = ("objects", "reports", "builds", "environments", "checkouts")
_YOUNG_S = 3600
"""A leftover of another host may belong to a live process: only an old one is swept."""


class Held(Record):
    """A trial, how much it takes, and why it must stay; no reason: it may go."""

    id: str
    when: float
    bytes: int
    stays: str = ""


class Plan(Record):
    """Which trials go, oldest first, and which leftovers."""

    go: tuple[Held, ...] = ()
    stay: tuple[Held, ...] = ()
    leftovers: tuple[str, ...] = ()
    """Paths that belong to no trial."""
    leftover_bytes: int = 0

    @property
    def bytes(self) -> int:
        """Count what will be freed."""
        return sum(held.bytes for held in self.go) + self.leftover_bytes


def survey(journal: Journal) -> list[Held]:
    """Look at every trial, oldest first."""
    last = {*newest(journal, 1), *_highest(journal), journal.newest()}
    found = [_look_at(journal, trial_id, is_last=trial_id in last) for trial_id in journal.ids()]
    return sorted(found, key=lambda held: (held.when, id_order(held.id)))


def _highest(journal: Journal) -> list[str]:
    """Return the highest number: were it gone, the next trial would take it again."""
    return journal.ids()[-1:]


def _look_at(journal: Journal, trial_id: str, *, is_last: bool) -> Held:
    path = os.path.join(journal.trials, trial_id)
    held = Held(id=trial_id, when=_mtime(path), bytes=bytes_below(path))
    if id_order(trial_id) == (0, 0):
        return held.but(stays="not a trial")
    if is_of_another(path):
        return held.but(stays="of a journal that cannot be written")
    try:
        mark = read_json(os.path.join(path, "mark.json")) or {}
    except JournalError:
        return held.but(stays="its mark is unreadable")
    reason = _reason(mark) or ("the newest" if is_last else "")
    if os.path.isdir(os.path.join(path, "undo")):  # of an older rl that was killed: the user's
        reason = reason or "files saved from a folder are in its undo/"
    try:
        trial = journal.load(trial_id)
        held = held.but(when=float(trial.start["when"]))
        reason = reason or ("running" if trial.running else "")
    except (JournalError, KeyError, TypeError, ValueError, AttributeError):
        pass  # unreadable: as old as its directory
    return held.but(stays=reason)


def _reason(mark: dict[str, Any]) -> str:
    if mark.get("verdict"):
        return f"marked {mark['verdict']}"
    return f"named {mark['name']}" if mark.get("name") else ""


def _mtime(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return time.time()


def bytes_below(path: str) -> int:
    """Count the disk space of a file or of all below a directory."""
    try:
        total = os.lstat(path).st_blocks * 512
        if os.path.isdir(path) and not os.path.islink(path):
            with os.scandir(path) as entries:
                total += sum(bytes_below(entry.path) for entry in entries)
    except OSError:
        return 0
    return total


def with_leftovers(journal: Journal, plan: Plan) -> Plan:
    """Add what will belong to no trial once the plan is carried out."""
    paths = tuple(leftovers(journal, going=[held.id for held in plan.go]))
    return plan.but(leftovers=paths, leftover_bytes=sum(map(bytes_below, paths)))


def choose(
    held: Iterable[Held],
    *,
    now: float,
    older_s: float | None = None,
    larger: int | None = None,
    keep_size: int | None = None,
) -> Plan:
    """Choose the trials to forget: by age, by their own size, then oldest first down to a total."""
    go: list[Held] = []
    stay: list[Held] = []
    for one in held:
        old = older_s is not None and now - one.when > older_s
        large = larger is not None and one.bytes > larger
        (go if (old or large) and not one.stays else stay).append(one)
    if keep_size is not None:
        total = sum(one.bytes for one in stay)
        for one in [one for one in stay if not one.stays]:
            if total <= keep_size:
                break
            total -= one.bytes
            stay.remove(one)
            go.append(one)
    go.sort(key=lambda one: (one.when, id_order(one.id)))
    return Plan(go=tuple(go), stay=tuple(stay))


def leftovers(journal: Journal, going: Iterable[str] = ()) -> list[str]:
    """Find what belongs to nothing: unfinished starts, half-deleted trials, unused short cuts.

    The files are listed before the trials: a trial that begins meanwhile keeps its short cuts.
    """
    home = journal.home
    began = [*_paths(journal.trials), *_paths(f"{home}/searches")]
    found = [path for path in began if _is_hidden(path) and _is_dead(path)]
    pointers = [
        (path, _read(path))
        for kind in _POINTERS
        for path in _paths(f"{home}/{kind}")
        if not is_temporary(path)
    ]
    pointers += [(f"{home}/running/{trial_id}", trial_id) for trial_id in journal.unfinished()]
    lists = [
        path for path in _paths(f"{home}/packages") if path.endswith(".json") and _is_old(path)
    ]
    left = set(journal.ids()).difference(going)
    found += [path for path, trial_id in pointers if trial_id not in left]
    used = {_started_with(journal, trial_id, "packages") for trial_id in left} if lists else set()
    if None not in used:  # an unreadable trial may use any of them
        found += [path for path in lists if os.path.basename(path)[:-5] not in used]
    receipts = [path for path in _paths(f"{home}/backs") if path.endswith(".json")]
    found += [path for path in receipts if not os.path.isdir(_place(path))]
    found += _half_restored(journal)
    found += searches.kept_builds(home)
    return found + [path for path in _temporaries(home) if _is_old(path)]


def _half_restored(journal: Journal) -> list[str]:
    """Find the directories `PROJECT@N.new-PID-WORD` that a killed `rl back` left there."""
    found = []
    projects = {_started_with(journal, trial_id, "project") for trial_id in journal.ids()}
    for project in sorted(filter(None, projects)):
        for path in _paths(os.path.dirname(project)):
            rest = path.removeprefix(project + "@")
            trial_id, _, made_by = rest.partition(".new-")
            pid = made_by.partition("-")[0]
            if rest == path or id_order(trial_id) == (0, 0) or not pid.isdecimal():
                continue
            plain = os.path.isdir(path) and not os.path.islink(path)
            if plain and not process_started(int(pid)) and _is_old(path):
                found.append(path)
    return found


def _temporaries(home: str) -> Iterable[str]:
    """Find files that were being written; what belongs to the user's programs is not entered."""
    copies = os.path.join(home, "frozen")
    for here, folders, files in os.walk(home):
        inner = () if os.path.dirname(here) == copies else sorted(folders)
        folders[:] = [name for name in inner if name not in _NOT_ENTERED and name[0] != "."]
        yield from (os.path.join(here, name) for name in sorted(files) if is_temporary(name))


def _is_hidden(path: str) -> bool:
    return os.path.basename(path).startswith((".new-", ".gone-"))


def _is_old(path: str) -> bool:
    return time.time() - _mtime(path) > _YOUNG_S


def _paths(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _place(receipt: str) -> str:
    """Return the directory that `rl back` made."""
    try:
        return str((read_json(receipt) or {}).get("path", ""))
    except JournalError:
        return ""


def _is_dead(path: str) -> bool:
    """Tell whether the process that made a hidden directory is gone, as far as can be seen."""
    word = os.path.basename(path).split("-")[1]
    alive = word.isdecimal() and process_started(int(word)) != 0
    if alive:
        return False
    return ".gone-" in path or _is_old(path) or _is_ours(path)


def _is_ours(path: str) -> bool:
    """Tell whether a trial that never began was to begin where we can look."""
    try:
        rl = (read_json(os.path.join(path, "start.json")) or {}).get("rl")
    except JournalError:
        return False
    return isinstance(rl, dict) and is_here(rl)


def _started_with(journal: Journal, trial_id: str, what: str) -> str | None:
    """Return what a trial began with, in text; None if it cannot be read."""
    try:
        start = read_json(os.path.join(journal.trials, trial_id, "start.json")) or {}
    except JournalError:
        return None
    return str(start.get(what) or "")


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(64).strip()
    except OSError:
        return ""


def forget(journal: Journal, plan: Plan) -> list[str]:
    """Carry the plan out; returns the ids that are gone. A trial marked meanwhile stays."""
    gone = []
    for held in plan.go:
        if _look_at(journal, held.id, is_last=False).stays:
            continue
        try:
            _delete_trial(journal, held.id)
        except OSError as error:
            raise JournalError(f"cannot delete #{held.id}: {error.strerror}") from None
        gone.append(held.id)
    for path in plan.leftovers:
        delete(path)
    return gone


def _delete_trial(journal: Journal, trial_id: str) -> None:
    path = os.path.join(journal.trials, trial_id)
    hidden = os.path.join(journal.trials, f".gone-{os.getpid()}-{trial_id}")
    noted = _note_forgotten(journal, trial_id)
    os.rename(path, hidden)
    delete(hidden)
    if not noted:  # the disk was full; now there is room
        _note_forgotten(journal, trial_id)


def _note_forgotten(journal: Journal, trial_id: str) -> bool:
    try:
        journal.note_forgotten(trial_id)
    except OSError:
        return False
    return True


def delete(path: str) -> None:
    """Delete a file, or a folder with all that is in it."""
    from shutil import rmtree

    if os.path.isdir(path) and not os.path.islink(path):
        rmtree(path, ignore_errors=True)
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
