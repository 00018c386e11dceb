"""What building a checkout writes into it: kept, and put back when the same tree comes again."""

from __future__ import annotations

import os
import shutil

Stamps = dict[str, tuple[int, int]]
_NO_RESULT = frozenset((".git", "__pycache__", "build", ".eggs"))


def stamps(tree: str) -> Stamps:
    """Return each file below a folder, with what changes when it is written."""
    found: Stamps = {}
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in _NO_RESULT]
        for name in names:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            found[os.path.relpath(path, tree)] = (stat.st_size, stat.st_mtime_ns)
    return found


def keep(tree: str, present: Stamps, folder: str) -> None:
    """Keep a copy of each file of the tree that was written since."""
    for name, stamp in stamps(tree).items():
        if present.get(name) != stamp:
            _copy(os.path.join(tree, name), os.path.join(folder, name))


def put_back(folder: str, tree: str) -> None:
    """Put what was kept into the tree again, where it differs."""
    for name, (size, _) in stamps(folder).items():
        kept, path = os.path.join(folder, name), os.path.join(tree, name)
        if not os.path.exists(path) or os.path.getsize(path) != size or not _equal(kept, path):
            _copy(kept, path)


def _equal(one: str, other: str) -> bool:
    with open(one, "rb") as first, open(other, "rb") as second:
        return first.read() == second.read()


def _copy(path: str, target: str) -> None:
    os.makedirs(os.path.dirname(target), exist_ok=True)
    shutil.copy2(path, target, follow_symlinks=False)
