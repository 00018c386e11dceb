"""Counts the lines that two snapshots of a project differ in: what a person changed since."""

from __future__ import annotations

import os

from relaunch.journal.snapshot.borrow import objects_of
from relaunch.journal.snapshot.loose import FOLDER, NotLoose, Objects
from relaunch.journal.snapshot.repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.home import Home
    from relaunch.journal.snapshot.code import Code

LINK_TO_COMMIT = 0o160000
_NOTHING = (0, "")
_MOST_FILES = 40
_BINARY = 8000
"""How far git looks for a zero byte."""


def line_changes(home: Home, a: Code, b: Code) -> list[tuple[str, int, int]]:
    """Return path, lines added and lines removed from `a` to `b`, of the project alone."""
    one, other = a.roots[0], b.roots[0]
    if one.tree == other.tree or not one.tree or not other.tree:
        return []
    repo = Repository(home.journal, sha256=len(one.tree) == 64)
    lean = [objects_of(home)] if home.common_dir else []
    try:
        if not repo.sha256:
            return _Counting(Objects(repo.objects, lean)).between(one.tree, other.tree)
    except NotLoose:
        pass
    out = repo.must(
        repo.path, "diff-tree", "-r", "-z", "--numstat", "--no-ext-diff", "--no-textconv",
        one.tree, other.tree, borrow=lean,
    )  # fmt: skip
    return read_numstat(os.fsdecode(out))


class _Counting:
    """Counts by reading the objects, as long as they lie loose and the counts are beyond doubt."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.files = 0

    def between(self, one: str, other: str, prefix: bytes = b"") -> list[tuple[str, int, int]]:
        """Return what git's numstat would say of two trees; NotLoose where only git can tell."""
        olds = {name: (mode, oid) for mode, name, oid in self.objects.entries(one)}
        news = {name: (mode, oid) for mode, name, oid in self.objects.entries(other)}
        found = []
        for name in sorted(olds.keys() | news.keys()):
            old, new = olds.get(name, _NOTHING), news.get(name, _NOTHING)
            if old == new:
                continue
            folders = [mode == FOLDER for mode, _ in (old, new) if mode]
            if all(folders):
                found += self.between(old[1], new[1], prefix + name + b"/")
            elif any(folders) or LINK_TO_COMMIT in (old[0], new[0]):
                raise NotLoose(name)
            else:
                found.append((os.fsdecode(prefix + name), *self._file(old[1], new[1])))
        return found

    def _file(self, old: str, new: str) -> tuple[int, int]:
        self.files += 1
        if self.files > _MOST_FILES:
            raise NotLoose("many")
        before = self.objects.read(old) if old else b""
        after = self.objects.read(new) if new else b""
        if b"\0" in before[:_BINARY] or b"\0" in after[:_BINARY]:
            return 0, 0
        return plain_counts(_lines(before), _lines(after))


def plain_counts(old: list[bytes], new: list[bytes]) -> tuple[int, int]:
    """Count lines added and removed when all of one stretch was replaced; NotLoose otherwise."""
    start, most = 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    if not set(removed).isdisjoint(added):
        raise NotLoose("several stretches")
    return len(added), len(removed)


def _lines(content: bytes) -> list[bytes]:
    """Split at line feeds alone; a last line without one is another line than with it."""
    *whole, last = content.split(b"\n")
    return [line + b"\n" for line in whole] + ([last] if last else [])


def read_numstat(text: str) -> list[tuple[str, int, int]]:
    """Read git's `added TAB removed TAB path NUL`; binary files count as no lines."""
    found = []
    for entry in text.split("\0"):
        added, _, rest = entry.partition("\t")
        removed, _, path = rest.partition("\t")
        if path:
            found.append((path, _number(added), _number(removed)))
    return found


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0
