"""Counts the lines that two snapshots of a project differ in: what a person changed since."""

from __future__ import annotations

import os

from relaunch.journal.snapshot.borrow import objects_of
from relaunch.journal.snapshot.repository import Repository

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.home import Home
    from relaunch.journal.snapshot.code import Code


def line_changes(home: Home, a: Code, b: Code) -> list[tuple[str, int, int]]:
    """Return path, lines added and lines removed from `a` to `b`, of the project alone."""
    one, other = a.roots[0], b.roots[0]
    if one.tree == other.tree or not one.tree or not other.tree:
        return []
    repo = Repository(home.journal, sha256=len(one.tree) == 64)
    lean = [objects_of(home)] if home.common_dir else []
    out = repo.must(
        repo.path, "diff-tree", "-r", "-z", "--numstat", "--no-ext-diff", "--no-textconv",
        one.tree, other.tree, borrow=lean,
    )  # fmt: skip
    return read_numstat(os.fsdecode(out))


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
