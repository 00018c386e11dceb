"""Shape comments: from what a program's runs saw to the files, and back out of them again."""

from __future__ import annotations

import os
import stat

from relaunch.desk.replace import replace_file
from relaunch.errors import RelaunchError, UsageError
from relaunch.inside.shapes.book import ENDING
from relaunch.inside.shapes.sites import functions_of
from relaunch.journal.beside import is_of_another
from relaunch.journal.store import read_json, write_exactly, write_file
from relaunch.record import Record
from relaunch.trial.shapes.plan import plan
from relaunch.trial.shapes.seen import read_calls
from relaunch.trial.shapes.source import NotWritable, Source
from relaunch.trial.shapes.undo import EditedSince, taken_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.journal.store import Journal, Trial
    from relaunch.recipe import Probe
    from relaunch.trial.shapes.plan import Plan
    from relaunch.trial.shapes.seen import Call

_FOLDER, _MANIFEST, _UNDONE = "shapes", "manifest.json", "undone.json"
_LOOKED_AT = 500
"""So many trials are looked through for the last one that wrote comments."""


class Asked(Record):
    """A file to look at, as it is before the program runs."""

    file: str
    """Where it really is."""
    label: str
    """As it was typed."""
    wanted: tuple[str, ...]
    """Functions and classes in it; empty text is all of it."""
    source: Any
    functions: tuple[Any, ...]

    @property
    def meant(self) -> list[Any]:
        """Return the functions that are meant."""
        return [one for one in self.functions if one.is_meant(self.wanted)]


class Change(Record):
    """A file that is to have other comments."""

    file: str
    before: bytes
    after: bytes


def read_file(file: str, label: str, wanted: Sequence[str]) -> Asked:
    """Read a file that is to be looked at; raises UsageError if nothing could be written there."""
    real = os.path.realpath(file)
    try:
        with open(real, "rb") as opened:
            source = Source(opened.read())
    except OSError as error:
        raise UsageError(f"{label}: {error.strerror}") from None
    except NotWritable as error:
        raise UsageError(f"{label}: {error.why}") from None
    functions = functions_of(source.tree)
    return Asked(file=real, label=label, wanted=tuple(wanted), source=source,
                 functions=tuple(functions))  # fmt: skip


def check_writable(asked: Asked) -> None:
    """Refuse now what could not be written after the run."""
    folder = os.path.dirname(asked.file)
    for path in (asked.file, folder):
        if not os.access(path, os.W_OK):
            raise UsageError(
                f"{asked.label} cannot be written: {path} is read-only",
                hint=f"rl shapes --dry-run {asked.label}",
            )


def calls_of(folders: Sequence[str], probes: Sequence[Probe], file: str) -> list[Call]:
    """Read what all runs saw of a file."""
    numbers = [n for n, probe in enumerate(probes) if probe.file == file][:1]
    return [call for folder in folders for n in numbers for call in read_calls(folder, n)]


def forget(folders: Sequence[str]) -> None:
    """Take away what was seen once it is made use of: numbers of the user's objects are in it."""
    for folder in folders:
        for name in os.listdir(folder):
            if name.endswith(ENDING):
                os.unlink(os.path.join(folder, name))


def planned(
    asked: Asked, calls: Sequence[Call], *, with_arguments: bool = False, width: int = 100
) -> Plan:
    """Decide what to write into a file; raises RelaunchError if it was edited meanwhile."""
    with open(asked.file, "rb") as opened:
        if opened.read() != asked.source.data:
            raise RelaunchError(f"{asked.label} changed while it ran; nothing is written",
                                hint="rl shapes ... once more", exit_code=1)  # fmt: skip
    return plan(asked.source, asked.meant, calls, with_arguments=with_arguments, width=width)


def change_of(asked: Asked, found: Plan) -> Change | None:
    """Return the new text of a file, proved to differ in comments only; None if it is the same."""
    try:
        data = asked.source.with_comments(found.comments)
    except NotWritable as error:
        raise RelaunchError(f"{asked.label}: {error.why}; nothing is written") from None
    if data == asked.source.data:
        return None
    return Change(file=asked.file, before=asked.source.data, after=data)


def write(changes: Sequence[Change], trial: Trial) -> None:
    """Keep how the files were with the trial, then write them."""
    folder = os.path.join(trial.path, _FOLDER)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        for number, change in enumerate(changes):
            write_file(os.path.join(folder, f"{number}.before"), change.before)
            write_file(os.path.join(folder, f"{number}.after"), change.after)
        files = [change.file for change in changes]
        write_exactly(os.path.join(folder, _MANIFEST), {"files": files})
        for change in changes:
            replace_file(change.file, change.after, _mode(change.file))
    except OSError as error:
        raise RelaunchError(f"{error.filename} cannot be written: {error.strerror}") from None


def undo(journal: Journal, files: Sequence[str]) -> list[str]:
    """Take back what the last run wrote, into these files if any are named; return the files."""
    wanted = {os.path.realpath(file) for file in files}
    folder, listed = _last_written(journal, wanted)
    changes = []
    for number, file in enumerate(listed):
        if not file or (wanted and file not in wanted):
            continue
        before, after = (_kept(folder, f"{number}.{end}") for end in ("before", "after"))
        try:
            with open(file, "rb") as opened:
                now = opened.read()
            changes.append(Change(file=file, before=now, after=taken_back(before, after, now)))
        except OSError as error:
            raise RelaunchError(f"{file}: {error.strerror}; nothing is undone") from None
        except EditedSince as error:
            raise RelaunchError(
                f"{file}:{error.line} was edited since its comment was written; nothing is undone",
                hint=f"diff {os.path.join(folder, str(number))}.after {file}",
            ) from None
    for change in changes:
        try:
            replace_file(change.file, change.after, _mode(change.file))
        except OSError as error:
            raise RelaunchError(f"{error.filename} cannot be written: {error.strerror}") from None
    left = [file for file in listed if file and wanted and file not in wanted]
    _note_undone(folder, listed, left)
    return [change.file for change in changes]


def _last_written(journal: Journal, wanted: set[str]) -> tuple[str, list[str]]:
    found: list[tuple[float, str, list[str]]] = []
    for trial_id in reversed(journal.ids()[-_LOOKED_AT:]):
        if is_of_another(os.path.join(journal.trials, trial_id)):
            continue
        folder = os.path.join(journal.trials, trial_id, _FOLDER)
        path = os.path.join(folder, _MANIFEST)
        manifest = read_json(path)
        if manifest is None:
            continue
        files = [str(file) for file in manifest["files"]]
        if not wanted or wanted.intersection(files):
            found.append((os.stat(path).st_mtime, folder, files))
    if not found:
        raise RelaunchError("nothing to undo: no comment of `rl shapes` is left", hint="rl log")
    _, folder, files = max(found)
    return folder, files


def _note_undone(folder: str, listed: Sequence[str], left: Sequence[str]) -> None:
    """Forget what was taken back; the files keep their numbers."""
    path = os.path.join(folder, _MANIFEST)
    if left:
        files = [file if file in left else "" for file in listed]
        write_exactly(path, {"files": files})
    else:
        os.rename(path, os.path.join(folder, _UNDONE))


def _kept(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as opened:
            return opened.read()
    except OSError as error:
        raise RelaunchError(f"{error.filename} cannot be read: {error.strerror}") from None


def _mode(file: str) -> int:
    return stat.S_IMODE(os.stat(file).st_mode)
