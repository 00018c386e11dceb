"""Throws away the code of trials that are gone, packs the rest, and repairs what is broken."""

from __future__ import annotations

import os
import time

from relaunch.errors import JournalError, SnapshotError
from relaunch.journal.home import Home
from relaunch.journal.snapshot.borrow import BASE, has_broken_pin, pin, read_head
from relaunch.journal.snapshot.code import Code
from relaunch.journal.snapshot.repository import SNAPSHOTS, Repository, reflog_line
from relaunch.journal.snapshot.restore import borrowed_by, relocated
from relaunch.journal.snapshot.state import remove
from relaunch.journal.snapshot.unsynced import forget_states, remove_broken
from relaunch.journal.store import read_json, write_file
from relaunch.proc.capture import complaint
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class Collected(Record):
    """What a collection did."""

    freed_bytes: int = 0
    repaired: tuple[str, ...] = ()
    """What was found broken, and what became of it, a line each."""
    damaged: frozenset[str] = frozenset()
    """Trees of which something is gone; while there are some, no code is thrown away."""


def collect(
    home: Home, keep: Iterable[Code], *, young_s: int = 3600, keep_all: bool = False
) -> Collected:
    """Keep only the code of `keep`, or with `keep_all` all there is, and repair what is broken.

    What is younger than `young_s` stays: a snapshot being taken right now is in no list yet.
    """
    roots = [root for code in keep for root in relocated(home, code).roots]
    lean = sorted({folder for root in roots for folder in borrowed_by(root)})
    done = Collected(repaired=tuple(_repair_pin(home)))
    for sha256 in (False, True):
        repo = Repository(home.journal, sha256=sha256)
        if os.path.isdir(repo.path):
            trees = {root.tree for root in roots if len(root.tree) == (64 if sha256 else 40)}
            before = _size(repo.objects)
            store = _Store(home=home, repo=repo, lean=lean)
            found = _collect(store, trees, young_s, keep_all=keep_all)
            done = Collected(
                freed_bytes=done.freed_bytes + max(0, before - _size(repo.objects)),
                repaired=done.repaired + found.repaired,
                damaged=done.damaged | found.damaged,
            )
    return done


class _Store(Record):
    """A private repository, and what it borrows from."""

    home: Home
    repo: Repository
    lean: list[str]


def _collect(store: _Store, trees: set[str], young_s: int, *, keep_all: bool) -> Collected:
    repo = store.repo
    repo.ensure()
    repaired = _repair_loose(store)
    lines = _lines(repo)
    young = {tree for tree, line in lines.items() if time.time() - _time_of(line) < young_s}
    wanted = trees | _remembered(repo) | young
    _rewrite(repo, wanted, lines)
    expire = f"{young_s}.seconds.ago" if young_s else "now"
    if not keep_all and not _pack(store, "-A", f"--unpack-unreachable={expire}"):
        repo.must(repo.path, "prune", f"--expire={expire}", borrow=store.lean)
        return Collected(repaired=tuple(repaired))
    repaired += _repair_packs(store)
    damaged = frozenset(tree for tree in wanted if not _is_whole(store, tree))
    _rewrite(repo, (wanted | _remembered(repo)) - damaged, lines)
    fault = _pack(store, "-a", "--keep-unreachable")
    if fault:
        raise SnapshotError(fault)
    return Collected(repaired=tuple(repaired), damaged=damaged & trees)


def _pack(store: _Store, *words: str) -> str:
    """Put what is kept into one pack; returns why that cannot be done."""
    repo = store.repo
    done = repo.git(repo.path, "repack", *words, "-d", "-l", "-q", borrow=store.lean)
    return f"git repack in {repo.path}: {complaint(done)}" if done.code else ""


def _is_whole(store: _Store, tree: str) -> bool:
    """Tell whether all that a tree has is there."""
    words = ("rev-list", "--objects", "--quiet", tree)
    return store.repo.git(store.repo.path, *words, borrow=store.lean).code == 0


def _repair_loose(store: _Store) -> list[str]:
    """Remove broken objects, and store anew what of them the work tree still has."""
    broken = remove_broken(store.repo)
    if not broken:
        return []
    back = _store_again(store, broken)
    count = f"{len(broken)} broken object{'s' if len(broken) > 1 else ''}"
    return [f"{count} of the code removed, {back} of them stored again from the files"]


def _repair_packs(store: _Store) -> list[str]:
    """Take packs apart that are broken; what cannot be read of them stays beside the objects."""
    repo = store.repo
    folder = os.path.join(repo.objects, "pack")
    found = []
    for name in sorted(os.listdir(folder)):
        pack = os.path.join(folder, name)
        index = pack[: -len(".pack")] + ".idx"
        if not name.endswith(".pack") or not repo.git(repo.path, "verify-pack", index).code:
            continue
        aside = os.path.join(repo.path, "broken")
        os.makedirs(aside, mode=0o700, exist_ok=True)
        there = os.path.join(aside, name)
        os.rename(pack, there)
        for end in (".idx", ".rev"):
            remove(pack[: -len(".pack")] + end)
        with open(there, "rb") as file:
            repo.git(repo.path, "unpack-objects", "-r", "-q", data=file.read())
        found.append(f"a broken pack of the code is now {there}; what can be read of it is kept")
    if found:
        _store_again(store, [])
    return found


def _repair_pin(home: Home) -> list[str]:
    """Write our ref in the user's repository anew where a power cut left it empty."""
    if not has_broken_pin(home) or not pin(home, read_head(home), drafts=home.journal):
        return []
    return [f"{BASE} in {home.common_dir} was empty and is written anew: git works there again"]


def _store_again(store: _Store, broken: Sequence[str]) -> int:
    """Store the project as it is now; returns how many of the broken objects are back."""
    from relaunch.journal.snapshot.take import take

    forget_states(store.repo)
    try:
        take(store.home)
    except SnapshotError:
        return 0
    return sum(store.repo.has_loose(oid) for oid in broken)


def _rewrite(repo: Repository, trees: set[str], lines: dict[str, str]) -> None:
    """Keep these trees, each with the time it had: a new one would make it young for ever."""
    try:
        _write_trees(repo, sorted(trees), lines)
    except OSError as error:
        raise SnapshotError(f"cannot write {repo.path}: {error.strerror}") from None


def _write_trees(repo: Repository, ordered: list[str], lines: dict[str, str]) -> None:
    log = os.path.join(repo.path, "logs", SNAPSHOTS)
    ref = os.path.join(repo.path, SNAPSHOTS)
    for path in (log, ref):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
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
