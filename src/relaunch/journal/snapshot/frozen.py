"""A copy of the code to run from, which later edits cannot reach; kept, and brought up to date.

What git ignores and what was too big to keep is no code: it is linked from the project, so that the
program finds its data, and its results outlive the copy.
"""

from __future__ import annotations

import fcntl
import os

from relaunch.errors import JournalError, SnapshotError
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot.code import EDITABLE, Code, Root
from relaunch.journal.snapshot.restore import (
    borrowed_by,
    left_out,
    places,
    repository_of,
    write_root,
)
from relaunch.journal.snapshot.state import remove
from relaunch.journal.snapshot.workindex import WorkIndex
from relaunch.journal.store import read_json, write_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST = 64
_BYTECODE = "__pycache__"


class FrozenCopy:
    """A copy that is ours until `close`; another trial at the same time gets another one."""

    def __init__(self, folder: str, lock: int, pairs: list[tuple[Root, str]]) -> None:
        """Take over the locked folder and the places of its roots."""
        self.path = os.path.join(folder, "tree")
        self.linked: tuple[str, ...] = ()
        """What is shared with the project, relative to it: edits of these do reach the program."""
        self.missing: tuple[str, ...] = ()
        """What is not as it was, and not linked either."""
        self._lock = lock
        self._pairs = pairs

    @property
    def pythonpath(self) -> tuple[str, ...]:
        """What to put first on PYTHONPATH, so that installed checkouts are loaded from the copy."""
        found = []
        for number, (root, place) in enumerate(self._pairs):
            built = any(
                os.path.exists(f"{place}/{name}") for name in ("pyproject.toml", "setup.py")
            )
            if root.kind == EDITABLE or (number == 0 and built):
                inner = os.path.join(place, "src")
                found.append(inner if os.path.isdir(inner) else place)
        return tuple(found)

    def map(self, path: str) -> str:
        """Return where a path of the project, or of another root, lies in the copy."""
        best, place = "", ""
        for root, where in self._pairs:
            if f"{path}/".startswith(f"{root.path}/") and len(root.path) > len(best):
                best, place = root.path, where
        return place + path[len(best) :] if best else path

    def env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return what to set: PYTHONPATH led to the copy."""
        old = [part for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]
        words = [*self.pythonpath, *(self.map(os.path.abspath(part)) for part in old)]
        return {"PYTHONPATH": os.pathsep.join(dict.fromkeys(words))} if words else {}

    def close(self) -> None:
        """Let another trial have the copy."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> FrozenCopy:
        """Use it as a context, to give it free at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let another trial have the copy."""
        self.close()


def frozen_copy(home: Home, code: Code) -> FrozenCopy:
    """Return a copy of the project as in `code`; the time it takes goes with what differs."""
    folder, lock = _lock_one(os.path.join(home.journal, "frozen"))
    try:
        tree = os.path.join(folder, "tree")
        copy = FrozenCopy(folder, lock, _places(code, folder, tree))
        _update(home, folder, copy)
    except OSError as error:
        os.close(lock)
        raise SnapshotError(f"cannot write {folder}: {error.strerror}") from None
    except SnapshotError:
        os.close(lock)
        raise
    return copy


def _places(code: Code, folder: str, tree: str) -> list[tuple[Root, str]]:
    """Put the project and what is in it into `tree`, and other roots beside it."""
    found = []
    for root, place in places(code, tree):
        inside = f"{root.path}/".startswith(f"{code.roots[0].path}/")
        found.append((root, place if inside else f"{folder}/roots/{os.path.basename(place)}"))
    return found


def _lock_one(parent: str) -> tuple[str, int]:
    for number in range(1, _MOST + 1):
        folder = os.path.join(parent, str(number))
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            lock = os.open(
                os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
            )
        except OSError as error:
            raise SnapshotError(f"cannot write {folder}: {error.strerror}") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return folder, lock
    raise SnapshotError(f"all {_MOST} frozen copies are in use", hint="rl log")


def _update(home: Home, folder: str, copy: FrozenCopy) -> None:
    state = os.path.join(folder, "state.json")
    try:
        before = read_json(state) or {}
    except JournalError:
        before = {}
    remove(state)  # until all is written nothing of it is to be trusted
    missing: list[str] = []
    linked: list[str] = []
    keep = {place for _, place in copy._pairs}
    for root, place in copy._pairs:
        index = _index(folder, place)
        if before.get(place) != root.path:
            remove(index)
        _clean(home, root, place, index, keep)
        if root.tree:
            missing += write_root(home, root, place, index)
        shared, absent = _link(home, root, place)
        linked += shared
        missing += absent
    copy.linked = tuple(linked)
    copy.missing = tuple(missing)
    write_json(state, {place: root.path for root, place in copy._pairs})


def _index(folder: str, place: str) -> str:
    from _blake2 import blake2b

    name = blake2b(os.fsencode(os.path.relpath(place, folder)), digest_size=8).hexdigest()
    return os.path.join(folder, f"index-{name}")


def _clean(home: Home, root: Root, place: str, index: str, keep: Iterable[str]) -> None:
    """Take away what is not of the new tree: results of the last trial, stale bytecode."""
    import shutil

    if not os.path.lexists(place):
        return
    if not os.path.exists(index) or not root.tree:
        shutil.rmtree(place)
        return
    repo = repository_of(home, root)
    lean = borrowed_by(root)
    words = ("-z", "--name-only")
    out = repo.must(place, "ls-tree", "-r", *words, root.tree, borrow=lean)
    wanted = set(os.fsdecode(out).split("\0"))
    out = repo.must(place, "diff-index", "--cached", *words, root.tree, index=index, borrow=lean)
    differing = set(os.fsdecode(out).split("\0"))
    for here, folders, files in os.walk(place):
        inside = os.path.relpath(here, place)
        prefix = "" if inside == "." else f"{inside}/"
        if os.path.basename(here) == _BYTECODE:
            source = prefix[: -len(_BYTECODE) - 1]
            for name in files:
                if f"{source}{name.partition('.')[0]}.py" in differing:
                    os.unlink(os.path.join(here, name))
            folders.clear()
            continue
        for name in (*files, *folders):
            path = os.path.join(here, name)
            link = os.path.islink(path)
            if link or (name not in folders and prefix + name not in wanted):
                os.unlink(path)
        folders[:] = [name for name in folders if os.path.join(here, name) not in keep]
    _sweep_folders(place, keep)


def _sweep_folders(place: str, keep: Iterable[str]) -> None:
    """Remove folders that hold nothing."""
    for here, _, _ in os.walk(place, topdown=False):
        if here not in keep and os.path.basename(here) != _BYTECODE:
            try:
                os.rmdir(here)
            except OSError:
                pass


def _link(home: Home, root: Root, place: str) -> tuple[list[str], list[str]]:
    """Link what the tree does not hold from the project; returns what is linked and what is not."""
    linked, absent = [], []
    names = [out.path for out in root.left_out]
    for path in (*names, *_ignored(home, root)):
        source, target = os.path.join(root.path, path), os.path.join(place, path)
        if os.path.lexists(target) or _BYTECODE in path or path.endswith((".pyc", ".relaunch")):
            continue
        if not os.path.lexists(source):
            absent += [line for line in left_out(root) if line.startswith(f"{path}: ")]
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.symlink(source, target)
        linked.append(path)
    return linked, absent


def _ignored(home: Home, root: Root) -> list[str]:
    """List what git ignores in the root, folders as one."""
    if not os.path.isdir(root.path):
        return []
    its_home = find_home(root.path)
    if its_home.project != root.path:
        its_home = Home(project=root.path, journal=home.journal)
    index = WorkIndex(home.journal, its_home)
    index.remembered.load()
    return index.ignored()
