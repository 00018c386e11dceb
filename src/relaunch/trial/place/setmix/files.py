"""The files behind the links of a config set: read as a program sees them, written elsewhere."""

from __future__ import annotations

import filecmp
import os
import stat

from relaunch.record import Record
from relaunch.trial.place.checkouts.index import time_of_content
from relaunch.trial.place.setedit import discard, own_folder
from relaunch.trial.place.sets import targets_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from relaunch.trial.place.sets import ConfigSets

_BIG = 1 << 20
MIX = ".mixed"
"""The name of a mix, which no set can have."""
_NOT_OURS = ("__pycache__", ".git")


class Entry(Record):
    """A file of a set: what is in it, or where it is, if it is big or no plain file."""

    data: bytes | None = None
    is_executable: bool = False
    source: str = ""
    """What a mix links to instead of having it."""
    stamp: str = ""
    """Of such a one: what changes when it does."""
    is_folder: bool = False
    """An empty folder."""


def read_entries(sets: ConfigSets, name: str) -> dict[str, Entry]:
    """Return every file of a set, named as a program sees it through the link."""
    found: dict[str, Entry] = {}
    for link, target in targets_for(sets, name).items():
        shown = os.path.relpath(link, sets.project)
        top = os.path.join(os.path.dirname(link), target)
        if not os.path.isdir(top):
            found[shown] = _entry(top)
            continue
        for path in _below(top):
            inner = os.path.relpath(path, top)
            found[shown if inner == "." else os.path.join(shown, inner)] = _entry(path)
    return found


def variant_of(sets: ConfigSets, name: str, shown: str) -> str:
    """Return where a file of a set really lies, relative to the project."""
    for link, target in targets_for(sets, name).items():
        seen = os.path.relpath(link, sets.project)
        if f"{shown}/".startswith(f"{seen}/"):
            top = os.path.normpath(os.path.join(os.path.dirname(link), target))
            return os.path.relpath(top + shown[len(seen) :], sets.project)
    return shown


def _below(top: str) -> Iterator[str]:
    """Name files, links to folders, and folders with nothing in them."""
    for folder, inner, names in os.walk(top):
        inner[:] = sorted(name for name in inner if name not in _NOT_OURS)
        links = [name for name in inner if os.path.islink(os.path.join(folder, name))]
        yield from (os.path.join(folder, name) for name in (*sorted(names), *links))
        if not names and not inner:
            yield folder


def _entry(path: str) -> Entry:
    if os.path.isdir(path) and not os.path.islink(path):
        return Entry(is_folder=True)
    try:
        info = os.stat(path)
        if not stat.S_ISREG(info.st_mode) or info.st_size > _BIG:
            real = os.path.realpath(path)
            return Entry(source=path, stamp=f"{real} {info.st_size} {info.st_mtime_ns}")
        with open(path, "rb") as file:
            return Entry(data=file.read(), is_executable=bool(info.st_mode & 0o100))
    except OSError:  # a link to nowhere, or not ours to read
        return Entry(source=path, stamp="?")


def is_same(old: Entry, new: Entry) -> bool:
    """Tell whether a program would see no difference."""
    if old == new:
        return True
    if not old.source or not new.source:
        return False
    try:
        if os.path.realpath(old.source) == os.path.realpath(new.source):
            return True
        return filecmp.cmp(old.source, new.source, shallow=False)
    except OSError:
        return False


def write_entries(entries: Mapping[str, Entry], shown: str, place: str) -> None:
    """Write what a program sees as `shown`, a file or a folder, to `place`, which is not there yet.

    Times come from the content, so that bytecode of one mix is never taken for that of another.
    """
    inside = {path: one for path, one in entries.items() if f"{path}/".startswith(f"{shown}/")}
    if shown not in inside:
        os.makedirs(place)
    for path, entry in inside.items():
        _write(entry, place + path[len(shown) :])


def _write(entry: Entry, path: str) -> None:
    if entry.is_folder:
        os.makedirs(path, exist_ok=True)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if entry.data is None:
        os.symlink(entry.source, path)
        return
    with open(path, "wb") as file:
        file.write(entry.data)
        if entry.is_executable:
            os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode | 0o111)
    when = time_of_content(entry.data)
    os.utime(path, ns=(when, when))


class MixedSet(Record):
    """Files that belong behind links."""

    sets: ConfigSets
    """Only the links that lead to them."""
    entries: Mapping[str, Entry]

    def put_into(self, root: str) -> None:
        """Let the links of a copy of the project at `root` lead to these files.

        They lie where a set would, so that what they name relative to themselves is there too.
        """
        for shown, place, lies in self._places(root):
            for path in (place, lies):
                own_folder(root, os.path.dirname(path))
                discard(path)
            write_entries(self.entries, shown, lies)
            if lies != place:
                os.symlink(os.path.relpath(lies, os.path.dirname(place)), place)

    def take_out(self, root: str) -> None:
        """Remove the files again: they may be none that git should see, with secrets in them."""
        for _, _, lies in self._places(root):
            discard(lies)

    def _places(self, root: str) -> Iterator[tuple[str, str, str]]:
        """Name each link, where it is in the copy, and where the files behind it are."""
        for link in self.sets.links:
            shown = os.path.relpath(link.link, self.sets.project)
            variant = os.path.relpath(link.variant(MIX), self.sets.project)
            is_outside = variant.startswith(os.pardir + os.sep)
            place = os.path.join(root, shown)
            yield shown, place, place if is_outside else os.path.join(root, variant)
