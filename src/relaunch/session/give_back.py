"""Gives the code of a trial back in a directory of its own, beside the tree, which is not touched.

The directory appears whole, by rename. One that we made and nobody changed since may be replaced;
any other is left alone. What we made is remembered in the journal: path, trial, and how its files
looked.
"""

from __future__ import annotations

import os

from relaunch.errors import JournalError, SnapshotError, UsageError
from relaunch.journal import to_disk
from relaunch.journal.store import read_json, write_exactly
from relaunch.proc.file_system import sync_file_system
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.journal.home import Home
    from relaunch.journal.snapshot.code import Code
    from relaunch.journal.store import Journal, Trial


class GivenBack(Record):
    """Where the code is now, and what is not as it was."""

    path: str
    missing: tuple[str, ...] = ()
    was_there: bool = False


def give_back(home: Home, journal: Journal, trial: Trial, to: str = "") -> GivenBack:
    """Put the code of a trial into `to`, by default `../PROJECT@N`."""
    from relaunch.journal.snapshot.code import from_json

    if not trial.start.get("code"):
        why = trial.start.get("code_problem") or "it was not recorded"
        raise JournalError(f"there is no code of #{trial.id}: {why}", hint=f"rl show {trial.id}")
    try:
        code = from_json(trial.start["code"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise JournalError(f"the code of #{trial.id} cannot be read") from None
    target = os.path.abspath(to) if to else f"{home.project}@{trial.id}"
    _keep_out_of_the_tree(home, target)
    receipt = _receipt(journal, target)
    replace = os.path.lexists(target) and not _is_empty(target)
    if replace:
        known = _ours_and_unchanged(target, receipt)
        if known.get("trial") == trial.id and known.get("digest") == code.digest:
            return GivenBack(path=target, missing=tuple(known.get("missing", ())), was_there=True)
    missing = _restore(home, code, target)
    looks = fingerprint(target)
    to_disk.soon(lambda: sync_file_system(target))  # files that a cut empties look like edits
    value = {"path": target, "trial": trial.id, "digest": code.digest, "looks": looks}
    try:
        os.makedirs(os.path.dirname(receipt), mode=0o700, exist_ok=True)
        write_exactly(receipt, {**value, "missing": list(missing)})
    except OSError:
        pass  # then the next `rl back` to the same place asks for another place
    return GivenBack(path=target, missing=missing)


def _keep_out_of_the_tree(home: Home, target: str) -> None:
    real, top = os.path.realpath(target), os.path.realpath(home.project)
    if real == top or real.startswith(top + os.sep):
        raise UsageError(
            f"{target} is inside your tree, which `rl back` does not touch",
            hint="rl back N --to ../elsewhere",
        )


def _receipt(journal: Journal, target: str) -> str:
    from _blake2 import blake2b

    digest = blake2b(os.fsencode(os.path.realpath(target)), digest_size=8).hexdigest()
    return os.path.join(journal.home, "backs", f"{digest}.json")


def _is_empty(target: str) -> bool:
    return os.path.isdir(target) and not os.path.islink(target) and not os.listdir(target)


def _ours_and_unchanged(target: str, receipt: str) -> dict[str, Any]:
    hint = "rl back N --to ANOTHER-DIRECTORY"
    try:
        known = read_json(receipt)
    except JournalError:
        known = None
    if not known or os.path.islink(target) or not os.path.isdir(target):
        raise UsageError(f"{target} exists, and is not ours to replace", hint=hint)
    if known.get("looks") != fingerprint(target):
        raise UsageError(f"{target} was changed since it was made for #{known['trial']}", hint=hint)
    return known


def _restore(home: Home, code: Code, target: str) -> tuple[str, ...]:
    """Restore beside the target, then let it take its place."""
    from shutil import rmtree

    from relaunch.journal.snapshot.restore import restore

    # Nobody can have made it before us, as in /tmp: what is written would be theirs to change.
    fresh = f"{target}.new-{os.getpid()}-{os.urandom(8).hex()}"
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.mkdir(fresh)
        missing = restore(home, code, fresh)
        if os.path.lexists(target):
            old = f"{target}.old-{os.getpid()}"
            os.rename(target, old)
            os.rename(fresh, target)
            rmtree(old, ignore_errors=True)
        else:
            os.rename(fresh, target)
    except OSError as error:
        rmtree(fresh, ignore_errors=True)
        raise SnapshotError(
            f"cannot make {target}: {error.strerror}", hint="rl back N --to DIRECTORY"
        ) from None
    except SnapshotError:
        rmtree(fresh, ignore_errors=True)
        raise
    return missing


def fingerprint(folder: str) -> str:
    """Say in one word how all files below a directory look: names, kinds, sizes, times."""
    from _blake2 import blake2b

    found = blake2b(digest_size=16)
    for path, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted((*files, *folders)):
            full = os.path.join(path, name)
            stat = os.lstat(full)
            is_folder = name in folders and not os.path.islink(full)
            facts = (stat.st_mode,) if is_folder else (stat.st_mode, stat.st_size, stat.st_mtime_ns)
            found.update(os.fsencode(os.path.relpath(full, folder)) + b"\0%r\0" % (facts,))
    return found.hexdigest()
