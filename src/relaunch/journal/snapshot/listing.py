"""What differs between our index and the work tree, as git tells it, and what git does not tell."""

from __future__ import annotations

import os
import time

from relaunch.journal.snapshot.state import TICK_NS
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LIST = ("ls-files", "-z", "-t", "-m", "-d", "-o", "--directory", "--exclude-standard")


SPECIAL = "a pipe, socket or device"


class Listing(Record):
    """Names relative to the work tree; `folders` hold no file of the index."""

    touched: frozenset[str] = frozenset()
    """Modified, or gone."""
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


class Walked(Record):
    """What a folder without files of the index holds."""

    hollow: tuple[str, ...] = ()
    """Folders with nothing in them."""
    named: tuple[tuple[str, str], ...] = ()
    """Pipes, sockets, devices and closed folders, each with what it is."""
    has_files: bool = False
    too_many: bool = False


def read_listing(out: bytes) -> Listing:
    """Read the output of `git ls-files -z -t`."""
    touched, files, folders = set(), [], []
    for entry in os.fsdecode(out).split("\0"):
        name = entry[2:]
        if entry[:1] in ("C", "R", "M"):
            touched.add(name)
        elif entry[:1] != "?":
            continue
        elif name[-1:] == "/":
            folders.append(name[:-1])
        else:
            files.append(name)
    return Listing(touched=frozenset(touched), files=tuple(files), folders=tuple(folders))


def is_repository(path: str) -> bool:
    """Tell whether a folder is a work tree of its own."""
    return os.path.lexists(os.path.join(path, ".git"))


def walk(top: str, folder: str, most: int, skip: tuple[str, ...] = ()) -> Walked:
    """Look into a folder for what git does not tell: empty folders and special files."""
    hollow, named, has_files, seen = [], [], False, 0
    todo = [folder]
    while todo:
        here = todo.pop()
        try:
            entries = list(os.scandir(os.path.join(top, here)))
        except PermissionError:
            named.append((f"{here}/", "unreadable"))
            continue
        except OSError:
            continue
        if not entries:
            hollow.append(here)
        seen += len(entries)
        if seen > most:
            return Walked(has_files=True, too_many=True)
        for entry in entries:
            path = f"{here}/{entry.name}" if here else entry.name
            if entry.is_dir(follow_symlinks=False):
                if is_repository(entry.path):
                    has_files = True  # git tells whether it is ignored
                elif entry.name not in (".git", *skip):
                    todo.append(path)
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                has_files = True
            else:
                named.append((path, SPECIAL))
    return Walked(hollow=tuple(hollow), named=tuple(named), has_files=has_files)


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return all folders on the way to the paths; the top is the empty name."""
    found = {""}
    for path in paths:
        parent = os.path.dirname(path)
        while parent not in found:
            found.add(parent)
            parent = os.path.dirname(parent)
    return found


def special_files(
    top: str, times: dict[str, int], known: dict[str, list[str]]
) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Bring up to date what is known of folders: when each changed, and its special files.

    Git does not tell of pipes, sockets and devices. A folder's time changes with its entries, so
    only those that did are read; times too young to be trusted are kept as 0.
    """
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    stat = os.stat
    try:
        now: dict[str, int] = {}
        for folder in times:
            try:
                now[folder] = stat(folder or ".", dir_fd=fd, follow_symlinks=False).st_mtime_ns
            except OSError:
                pass
    finally:
        os.close(fd)
    if now == times:
        return times, known
    young = time.time_ns() - TICK_NS
    found = {folder: names for folder, names in known.items() if folder in now}
    for folder, when in now.items():
        if when == times[folder]:
            continue
        names = _specials_in(os.path.join(top, folder))
        found.pop(folder, None)
        if names:
            found[folder] = names
        if when > young:
            now[folder] = 0
    return now, found


def _specials_in(path: str) -> list[str]:
    try:
        return sorted(entry.name for entry in os.scandir(path) if _is_special(entry))
    except OSError:
        return []


def _is_special(entry: os.DirEntry[str]) -> bool:
    return not (
        entry.is_file(follow_symlinks=False)
        or entry.is_dir(follow_symlinks=False)
        or entry.is_symlink()
    )
