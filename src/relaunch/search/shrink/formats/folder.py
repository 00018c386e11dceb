"""A folder loses files and folders; those that stay become smaller by their own formats."""

from __future__ import annotations

import os
import shutil
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b

from relaunch.errors import UsageError
from relaunch.record import Record
from relaunch.search.shrink.formats.cuts import Cuts
from relaunch.search.shrink.model import Smaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    import builtins
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Self

    from relaunch.search.shrink.model import Model, Pass

MOST_FILES = 64
"""So many files, the largest, are made smaller themselves."""


def read(path: str, *, keep: Sequence[str] = ()) -> Folder:
    """Read a folder; `keep` are patterns of names, or of paths in it, that stay."""
    from relaunch.search.shrink.formats import choose

    root = os.path.realpath(path)
    if not os.path.isdir(root):
        raise UsageError(f"`{path}` is no folder", hint=f"ls -l {path}")
    return Folder(root, _entries(root), keep=tuple(keep), reader=choose.read)


class Entry(Record):
    """A file, a link (its target), or a folder."""

    kind: str
    size: int = 0
    stamp: int = 0
    target: str = ""
    model: Any = None
    """The file made smaller, once it is."""


def _entries(root: str) -> dict[str, Entry]:
    """Return all that is in a folder by path in it, parents first."""
    found: dict[str, Entry] = {}
    for folder, folders, files in os.walk(root):
        inside = os.path.relpath(folder, root)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = sorted(name for name in folders if name not in links)
        for name in sorted([*folders, *files, *links]):
            entry = _entry(os.path.join(folder, name))
            if entry is not None:
                found[os.path.normpath(os.path.join(inside, name))] = entry
    return found


def _entry(path: str) -> Entry | None:
    """Return what is at a path; pipes and sockets are left out."""
    if os.path.islink(path):
        return Entry(kind="link", target=os.readlink(path))
    if os.path.isdir(path):
        return Entry(kind="folder")
    if not os.path.isfile(path):
        return None
    told = os.stat(path)
    return Entry(kind="file", size=told.st_size, stamp=told.st_mtime_ns)


class Folder:
    """What is left of a folder."""

    def __init__(
        self,
        root: str,
        entries: Mapping[str, Entry],
        *,
        keep: tuple[str, ...] = (),
        reader: Callable[..., Model],
        models: dict[str, Model | None] | None = None,
    ) -> None:
        """Take the folder it is read from, and what reads its files; those read are shared."""
        self.root = root
        self.entries = entries
        self.keep = keep
        self._reader = reader
        self._models = {} if models is None else models

    def but(self, entries: Mapping[str, Entry]) -> Self:
        """Return the folder with other entries."""
        return type(self)(
            self.root, entries, keep=self.keep, reader=self._reader, models=self._models
        )

    @property
    def measure(self) -> tuple[int, ...]:
        """Fewer bytes, fewer entries; then what the files measure beyond their bytes."""
        held = (one.model or self._models.get(name) for name, one in self.entries.items())
        finer = [one.measure for one in held if one is not None]
        width = max((len(one) for one in finer), default=0)
        sums = [sum(one[at] for one in finer if at < len(one)) for at in range(width)]
        return (self.bytes + len(self.entries), *sums)

    @cached_property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(entry.size for entry in self.entries.values())

    @cached_property
    def key(self) -> builtins.bytes:
        """A digest of names and what each holds; files as they were count by size and time."""
        digest = blake2b(digest_size=16)
        for path, entry in self.entries.items():
            held = entry.model.key if entry.model is not None else b""
            told = (path, entry.kind, entry.size, entry.stamp, entry.target)
            digest.update(repr(told).encode(errors="surrogateescape") + held)
        return digest.digest()

    def write(self, path: str) -> None:
        """Write it as a new folder: links as links, files as copies."""
        os.makedirs(path)
        for name, entry in self.entries.items():
            into = os.path.join(path, name)
            if entry.kind == "folder":
                os.mkdir(into)
            elif entry.kind == "link":
                os.symlink(entry.target, into)
            elif entry.model is not None:
                entry.model.write(into)
                shutil.copymode(os.path.join(self.root, name), into)
            else:
                shutil.copy2(os.path.join(self.root, name), into)

    def passes(self) -> Sequence[Pass]:
        """Return the pass over entries, then those of the largest files."""
        return [_ENTRIES, *self._inner]

    @cached_property
    def _inner(self) -> list[Pass]:
        files = [(name, entry) for name, entry in self.entries.items() if entry.kind == "file"]
        files.sort(key=lambda item: -item[1].size)
        found: list[Pass] = []
        for name, _ in files[:MOST_FILES]:
            model = self.model_of(name)
            if model is not None:
                found += (Inner(name, one) for one in model.passes())
        return found

    def model_of(self, name: str) -> Model | None:
        """Return a file as a model; None if no format reads it."""
        entry = self.entries.get(name)
        if entry is None or entry.kind != "file":
            return None
        if entry.model is not None:
            model: Model = entry.model
            return model
        if name not in self._models:
            try:
                self._models[name] = self._reader(os.path.join(self.root, name), keep=self.keep)
            except (UsageError, OSError):
                self._models[name] = None
        return self._models[name]

    @cached_property
    def groups(self) -> list[list[str]]:
        """What may go from each folder, outer folders first."""
        inside: dict[str, list[str]] = {"": []}
        for name, entry in self.entries.items():
            if entry.kind == "folder":
                inside[name] = []
            if name not in self._held:
                inside[os.path.dirname(name)].append(name)
        return [inside[name] for name in sorted(inside, key=_in_order)]

    @cached_property
    def _held(self) -> set[str]:
        """What is to stay, and the folders that it is in."""
        held: set[str] = set()
        for name in self.entries if self.keep else ():
            if any(
                fnmatchcase(name, pattern) or fnmatchcase(os.path.basename(name), pattern)
                for pattern in self.keep
            ):
                while name and name not in held:
                    held.add(name)
                    name = os.path.dirname(name)
        return held


def _in_order(name: str) -> tuple[str, ...]:
    return tuple(name.split("/")) if name else ()


def _without(model: Folder, group: int, low: int, high: int) -> Smaller | None:
    gone = model.groups[group][low:high]
    lost = set(gone)
    entries = {}
    for name, entry in model.entries.items():  # parents come before what is in them
        if name in lost or os.path.dirname(name) in lost:
            lost.add(name)
        else:
            entries[name] = entry
    shown = gone[0] if len(gone) == 1 else f"{gone[0]} and {len(gone) - 1:,} more"
    return Smaller(model=model.but(entries), what=f"without {shown}")


_ENTRIES = Cuts("files", lambda model: [len(group) for group in model.groups], _without)


class Inner:
    """A pass over one file of a folder."""

    def __init__(self, file: str, inner: Pass) -> None:
        """Take the file's path in the folder, and a pass of its format."""
        self.name = f"{file}: {inner.name}"
        self.phase = 1 + getattr(inner, "phase", 0)
        self._file = file
        self._inner = inner

    def begin(self, model: Folder) -> Any:
        """Return the first place in the file."""
        held = model.model_of(self._file)
        return None if held is None else self._inner.begin(held)

    def attempt(self, model: Folder, cursor: Any) -> Smaller | None:
        """Return the folder with the file made smaller."""
        held = model.model_of(self._file)
        smaller = None if held is None else self._inner.attempt(held, cursor)
        if held is None or smaller is None or not smaller.model.measure < held.measure:
            return None
        entry = Entry(kind="file", size=smaller.model.bytes, model=smaller.model)
        made = model.but({**model.entries, self._file: entry})
        return Smaller(model=made, what=f"{self._file}: {smaller.what}")

    def failed(self, model: Folder, cursor: Any) -> Any:
        """Return the next place in the file."""
        held = model.model_of(self._file)
        return None if held is None else self._inner.failed(held, cursor)

    def passed(self, model: Folder, cursor: Any) -> Any:
        """Return the next place in what is left of the file."""
        held = model.model_of(self._file)
        return None if held is None else self._inner.passed(held, cursor)
