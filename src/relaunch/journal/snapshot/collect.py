"""Throws away the code of trials that are gone, and packs the rest."""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, SnapshotError
from relaunch.journal.home import Home
from relaunch.journal.snapshot.code import Code
from relaunch.journal.snapshot.repository import SNAPSHOTS, Repository, reflog_line
from relaunch.journal.snapshot.restore import borrowed_by, relocated
from relaunch.journal.store import read_json, write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def collect(home: Home, keep: Iterable[Code], *, young_s: int = 3600) -> int:
    """Keep only the code of `keep`; returns the bytes that became free.

    What is younger than `young_s` stays: a snapshot being taken right now is in no list yet.
    """
    roots = [root for code in keep for root in relocated(home, code).roots]
    lean = sorted({folder for root in roots for folder in borrowed_by(root)})
    freed = 0
    for sha256 in (False, True):
        repo = Repository(home.journal, sha256=sha256)
        if os.path.isdir(repo.path):
            trees = {root.tree for root in roots if len(root.tree) == (64 if sha256 else 40)}
            freed += _collect(repo, trees, lean, young_s)
    return freed


def _collect(repo: Repository, trees: set[str], lean: list[str], young_s: int) -> int:
    repo.ensure()
    before = _size(repo.objects)
    lines = _lines(repo)
    young = {tree for tree, line in lines.items() if time.time() - _time_of(line) < young_s}
    try:
        _rewrite(repo, trees | _remembered(repo) | young, lines)
    except OSError as error:
        raise SnapshotError(f"cannot write {repo.path}: {error.strerror}") from None
    expire = f"{young_s}.seconds.ago" if young_s else "now"
    words = ("-A", "-d", "-l", "-q", f"--unpack-unreachable={expire}")
    repo.must(repo.path, "repack", *words, borrow=lean)
    repo.must(repo.path, "prune", f"--expire={expire}", borrow=lean)
    return max(0, before - _size(repo.objects))


def _rewrite(repo: Repository, trees: set[str], lines: dict[str, str]) -> None:
    """Keep these trees, each with the time it had: a new one would make it young for ever."""
    log = os.path.join(repo.path, "logs", SNAPSHOTS)
    ref = os.path.join(repo.path, SNAPSHOTS)
    for path in (log, ref):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    ordered = sorted(trees)
    text = "".join(lines.get(tree) or reflog_line(tree) for tree in ordered)
    write_file(log, text.encode())
    if ordered:
        write_file(ref, f"{ordered[-1]}\n".encode())
    elif os.path.exists(ref):
        os.unlink(ref)


def _remembered(repo: Repository) -> set[str]:
    """Return the trees that the next snapshots build upon."""
    found = set()
    folder = os.path.join(repo.path, "roots")
    for name in os.listdir(folder):
        try:
            state = read_json(os.path.join(folder, name, "state.json")) or {}
        except JournalError:
            continue
        found.add(str(state.get("tree", "")))
    return found - {""}


def _lines(repo: Repository) -> dict[str, str]:
    """Return the last line of each tree: trees of late may be of trials that are about to begin."""
    found = {}
    try:
        with open(os.path.join(repo.path, "logs", SNAPSHOTS), encoding="utf-8") as lines:
            for line in lines:
                if _time_of(line) and line.endswith("\n"):
                    found[line.split()[1]] = line
    except (OSError, ValueError):
        pass
    return found


def _time_of(line: str) -> int:
    """Return when a line of the reflog was written; 0 if it is not one of ours."""
    words = line.split()
    return int(words[4]) if len(words) > 4 and words[4].isdecimal() else 0


def _size(folder: str) -> int:
    total = 0
    for here, _, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(here, name)).st_blocks * 512
            except OSError:
                pass
    return total
