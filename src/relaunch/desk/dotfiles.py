"""Changes a person's files as a guest should: a diff first, a backup, and exactly back.

Each change is one folder with a manifest under the state folder, complete before the first file is
touched, so a kill at any moment leaves something that `undo` understands.
"""

from __future__ import annotations

import difflib
import os
import stat
import time
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from relaunch import jsontext
from relaunch.desk.rcfiles import Edit
from relaunch.desk.replace import replace_file
from relaunch.errors import RelaunchError
from relaunch.record import Record

MANIFEST = "manifest.json"


class Kept(Record):
    """One file of a change: how it was, and the digest it had right after."""

    path: str
    target: str
    """The file itself, links followed: it is replaced, the link stays."""
    existed: bool
    mode: int
    mtime_ns: int
    before: str
    after: str
    copy: str
    made: tuple[str, ...]
    """Directories that had to be made for it, deepest last."""


class Undone(Record):
    """What `undo` did: files put back, and files that already were as before."""

    restored: tuple[str, ...]
    untouched: tuple[str, ...]


class EditedSinceError(RelaunchError):
    """A file was edited after our change; `diff` shows how."""

    def __init__(self, path: str, diff: str) -> None:
        """Keep the diff apart from the one line."""
        super().__init__(
            f"{path} was edited since; nothing was undone", hint="rl doctor --undo --force"
        )
        self.diff = diff


def diff(edits: Sequence[Edit]) -> str:
    """Show what the edits would change, as a unified diff."""
    return "".join(_one_diff(edit.path, _text(edit.path), edit.text) for edit in edits)


def _one_diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(
        old.splitlines(keepends=True), new.splitlines(keepends=True), path, path
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def apply(edits: Sequence[Edit], backups: str, *, label: str) -> str:
    """Back up, then write each file; returns the folder of the backup."""
    folder = ""
    try:
        folder = _back_up(edits, backups, label)
        for edit, kept in zip(edits, _manifest(folder), strict=True):
            for directory in kept.made:
                os.makedirs(directory, mode=0o755, exist_ok=True)
            replace_file(kept.target, edit.text.encode("utf-8", "surrogateescape"), kept.mode)
    except OSError as error:
        hint = "rl doctor --undo" if folder else ""
        name = error.filename or backups
        raise RelaunchError(f"{name} cannot be written: {error.strerror}", hint=hint) from None
    return folder


def undo(backups: str, *, force: bool = False) -> Undone:
    """Put the files of the latest change back exactly; refuses if one was edited since."""
    folder = latest(backups)
    if not folder:
        raise RelaunchError("nothing to undo: no change of `rl doctor --fix` is left")
    kept = _manifest(folder)
    todo = [entry for entry in kept if _digest(entry.target) != entry.before]
    for entry in todo:
        if not force and _digest(entry.target) != entry.after:
            raise EditedSinceError(entry.path, _since(folder, entry))
    for entry in todo:
        try:
            _restore(folder, entry)
        except OSError as error:
            raise RelaunchError(f"{entry.path} cannot be restored: {error.strerror}") from None
    os.rename(folder, f"{folder}.undone")
    untouched = tuple(entry.path for entry in kept if entry not in todo)
    return Undone(restored=tuple(entry.path for entry in todo), untouched=untouched)


def latest(backups: str) -> str:
    """Return the folder of the newest change that was not undone; empty if there is none."""
    try:
        names = sorted(name for name in os.listdir(backups) if name.isdecimal())
    except OSError:
        return ""
    return os.path.join(backups, names[-1]) if names else ""


# --- the backup -----------------------------------------------------------------------------------


def _back_up(edits: Sequence[Edit], backups: str, label: str) -> str:
    os.makedirs(backups, mode=0o700, exist_ok=True)
    folder = os.path.join(backups, str(time.time_ns()))
    building = f"{folder}.new"
    os.mkdir(building, 0o700)
    entries = []
    for number, edit in enumerate(edits):
        entry = _entry(edit, str(number))
        if entry["existed"]:
            with open(entry["target"], "rb") as file:
                replace_file(os.path.join(building, str(number)), file.read(), 0o600)
        entries.append(entry)
    text = jsontext.dumps({"schema": "relaunch/backup/1", "label": label, "files": entries})
    replace_file(os.path.join(building, MANIFEST), text.encode(), 0o600)
    os.rename(building, folder)
    return folder


def _entry(edit: Edit, copy: str) -> dict[str, Any]:
    target = os.path.realpath(edit.path)
    try:
        info = os.stat(target)
        mode, mtime_ns, existed = stat.S_IMODE(info.st_mode), info.st_mtime_ns, True
    except FileNotFoundError:
        mode, mtime_ns, existed = 0o644, 0, False
    return {
        "path": edit.path,
        "target": target,
        "existed": existed,
        "mode": mode,
        "mtime_ns": mtime_ns,
        "before": _digest(target),
        "after": _hash(edit.text.encode("utf-8", "surrogateescape")),
        "copy": copy,
        "made": _missing_parents(target),
    }


def _missing_parents(path: str) -> list[str]:
    missing: list[str] = []
    parent = os.path.dirname(path)
    while not os.path.lexists(parent):
        missing.insert(0, parent)
        parent = os.path.dirname(parent)
    return missing


def _manifest(folder: str) -> list[Kept]:
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            files = jsontext.loads(file.read())["files"]
        return [Kept(**{**entry, "made": tuple(entry["made"])}) for entry in files]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RelaunchError(f"the backup {folder} cannot be read: {error}") from None


# --- one file -------------------------------------------------------------------------------------


def _restore(folder: str, entry: Kept) -> None:
    if entry.existed:
        with open(os.path.join(folder, entry.copy), "rb") as file:
            replace_file(entry.target, file.read(), entry.mode)
        os.utime(entry.target, ns=(entry.mtime_ns, entry.mtime_ns))
        return
    os.unlink(entry.target)
    for directory in reversed(entry.made):
        try:
            os.rmdir(directory)
        except OSError:
            break  # something else lives there now


def _since(folder: str, entry: Kept) -> str:
    before = _text(os.path.join(folder, entry.copy)) if entry.existed else ""
    return _one_diff(entry.path, _text(entry.target), before)


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return _hash(file.read())
    except FileNotFoundError:
        return ""


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
