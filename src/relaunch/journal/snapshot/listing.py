"""What differs between our index and the work tree, as git tells it, and what git does not tell."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

TOUCHED = ("ls-files", "-z", "-t", "-m", "-d")
LIST = (*TOUCHED, "-o", "--directory", "--exclude-standard")


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
    seen: tuple[str, ...] = ()
    """The folders that were read."""
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
    hollow, named, read, has_files, count = [], [], [], False, 0
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
        read.append(here)
        count += len(entries)
        if count > most:
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
    return Walked(hollow=tuple(hollow), named=tuple(named), seen=tuple(read), has_files=has_files)


def folders_of(paths: Iterable[str]) -> set[str]:
    """Return all folders on the way to the paths; the top is the empty name."""
    found = {""}
    for path in paths:
        parent = os.path.dirname(path)
        while parent not in found:
            found.add(parent)
            parent = os.path.dirname(parent)
    return found
