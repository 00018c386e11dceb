"""What a trial used over time, the moments marked in it, and which one is to be watched."""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, RelaunchError, UsageError
from relaunch.journal.refs import resolve
from relaunch.journal.store import cleaned
from relaunch.jsontext import dumps, loads
from relaunch.look.beside import point
from relaunch.look.series import FILE, Writer, read
from relaunch.look.usage import has_in_environment
from relaunch.proc.tree import MARKER
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.journal.store import Journal, Trial
    from relaunch.look.series import Series
    from relaunch.look.trees import Matches, Tree

MARKS = "marks.jsonl"
LAST = "last"
_LOOK_BACK = 50


class Mark(Record):
    """A moment that somebody marked."""

    when: float
    """Seconds since the epoch."""
    text: str = ""


def is_watched(trial: Trial) -> bool:
    """Tell whether there is anything to draw of what a trial used."""
    return os.path.exists(os.path.join(trial.path, FILE))


def usage_of(trial: Trial) -> Series | None:
    """Return what a trial used over time, as far as it is; None when nobody watched it."""
    return read(os.path.join(trial.path, FILE))


def marks_of(trial: Trial) -> list[Mark]:
    """Return the moments that were marked in a trial, the first first."""
    try:
        with open(os.path.join(trial.path, MARKS), "rb") as file:
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            value = loads(line.decode())
            found.append(Mark(when=float(value["when"]), text=str(value.get("text", ""))))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return sorted(found, key=lambda mark: mark.when)


def keep_mark(trial: Trial, mark: Mark) -> None:
    """Keep a marked moment with its trial. Raises OSError if it cannot be written."""
    path = os.path.join(trial.path, MARKS)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, (dumps(cleaned({"when": mark.when, "text": mark.text})) + "\n").encode())
    finally:
        os.close(fd)


def peak_of(trial: Trial) -> int:
    """Return the most memory that a trial had; 0 when nobody watched it."""
    kept = ((trial.end or {}).get("usage") or {}).get("peak_bytes", 0)
    if isinstance(kept, int) and kept:
        return kept
    series = usage_of(trial)  # rl was killed, or it still runs
    return series.peak_bytes if series is not None else 0


def last_peak(journal: Journal, trial: Trial) -> int:
    """Return the peak of the latest earlier trial of the same command that was watched; or 0."""
    before, steps = trial.start.get("before", ""), 0
    while before and steps < _LOOK_BACK:
        try:
            other = journal.load(before)
        except JournalError:
            return 0
        if peak := peak_of(other):
            return peak
        before, steps = other.start.get("before", ""), steps + 1
    return 0


def trial_to_watch(journal: Journal, word: str) -> Trial:
    """Return the trial that is meant; `last` is the one that runs, or ran last."""
    if word != LAST:
        return journal.load(resolve(journal, word.removeprefix("#")))
    running = running_trials(journal)
    if running:
        return running[-1]
    newest = journal.newest()
    if not newest:
        raise UsageError("there is no trial here yet", hint="rl run --watch -- python train.py")
    return journal.load(newest)


def running_trials(journal: Journal) -> list[Trial]:
    """Return the trials that run now, the oldest first."""
    found = []
    for trial_id in journal.unfinished():
        try:
            trial = journal.load(trial_id)
        except RelaunchError:
            continue
        if trial.running:
            found.append(trial)
    return sorted(found, key=lambda trial: float(trial.start.get("when", 0)))


def processes_of(trial: Trial) -> Matches:
    """Tell the processes of a trial by the mark that all of them carry."""
    assignment = f"{MARKER}={trial.path}"
    return lambda pid, _: has_in_environment(pid, assignment)


class Recorder:
    """Keeps what is seen of a trial that nobody keeps it of."""

    def __init__(self, trial: Trial) -> None:
        """Begin, unless its own rl keeps it: then there is nothing to do."""
        path = os.path.join(trial.path, FILE)
        self._when = float(trial.start.get("when", 0.0))
        is_kept = bool(trial.start.get("watch")) or os.path.exists(path)
        self._writer = None if is_kept or trial.end is not None else Writer(path, self._when)

    def add(self, trees: Sequence[Tree]) -> None:
        """Take what they use at this moment, all together."""
        if self._writer is None or not trees:
            return
        t = max(0.0, time.time() - self._when)
        columns = zip(*(point(tree, t)[1:] for tree in trees), strict=True)
        self._writer.add([t, *map(sum, columns)])

    def close(self) -> None:
        """Write the rest."""
        if self._writer is not None:
            self._writer.close()
