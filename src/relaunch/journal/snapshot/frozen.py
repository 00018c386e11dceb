"""A copy of the code to run from, which later edits cannot reach; kept, and brought up to date.

What git ignores and what was too big to keep is no code: it is linked from the project, so that the
program finds its data, and its results outlive the copy.
"""

from __future__ import annotations

import fcntl
import os

from relaunch.errors import JournalError, SnapshotError
from relaunch.inside.layout import built_root, source_root
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot.code import EDITABLE, Code, Root, is_inner
from relaunch.journal.snapshot.restore import (
    borrowed_by,
    check_way,
    left_out,
    places,
    relocated,
    repository_of,
    write_root,
)
from relaunch.journal.snapshot.state import remove
from relaunch.journal.snapshot.workindex import WorkIndex
from relaunch.journal.store import read_json, write_exactly

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
        self.also_known: list[tuple[str, str]] = []
        """Where the roots lay when the snapshot was taken, each with its place in the copy."""
        self._lock = lock
        self._pairs = pairs

    @property
    def pythonpath(self) -> tuple[str, ...]:
        """What to put first on PYTHONPATH, so that installed checkouts are loaded from the copy."""
        return led_by([(root.kind, place) for root, place in self._pairs])

    def map(self, path: str) -> str:
        """Return where a path of the project, or of another root, lies in the copy."""
        best, place = "", ""
        for top, where in [*((root.path, at) for root, at in self._pairs), *self.also_known]:
            if f"{path}/".startswith(f"{top}/") and len(top) > len(best):
                best, place = top, where
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


def led_by(roots: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Return what a copy of these roots, each a kind and a place, puts first on PYTHONPATH."""
    found = []
    for number, (kind, place) in enumerate(roots):
        if kind == EDITABLE:
            found.append(source_root(place))
        elif number == 0 and (built := built_root(place)):
            found.append(built)
    return tuple(found)


def frozen_copy(home: Home, code: Code) -> FrozenCopy:
    """Return a copy of the project as in `code`; the time it takes goes with what differs."""
    folder, lock = _lock_one(os.path.join(home.journal, "frozen"))
    try:
        tree = os.path.join(folder, "tree")
        pairs = _places(relocated(home, code), folder, tree)
        copy = FrozenCopy(folder, lock, pairs)
        copy.also_known = [
            (root.path, place) for root, (_, place) in zip(code.roots, pairs, strict=True)
        ]
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
        if before.get(place) != root.path or not _is_whole(index, sha256=len(root.tree) == 64):
            remove(index)
        if os.path.islink(place):  # of a program that ran there
            remove(place)
        check_way(folder, place)
        _clean(home, root, place, index, keep)
        if root.tree:
            missing += write_root(home, root, place, index)
            _lead_out(home, root, place, index)
        shared, absent = _link(home, root, place)
        linked += shared
        missing += absent
    copy.linked = tuple(linked)
    copy.missing = tuple(missing)
    write_exactly(state, {place: root.path for root, place in copy._pairs})


def _lead_out(home: Home, root: Root, place: str, index: str) -> None:
    """Let links that lead out of the root, as `data -> ../data`, lead where they do from there."""
    repo = repository_of(home, root)
    listed = repo.must(place, "ls-files", "-z", "-s", index=index, borrow=borrowed_by(root))
    for line in os.fsdecode(listed).split("\0"):
        if not line.startswith("120000 "):
            continue
        path = line.partition("\t")[2]
        link = os.path.join(place, path)
        target = os.readlink(link) if os.path.islink(link) else os.sep
        inner = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if not os.path.isabs(target) and inner.split(os.sep)[0] == os.pardir:
            os.unlink(link)
            os.symlink(os.path.normpath(os.path.join(root.path, inner)), link)


def _index(folder: str, place: str) -> str:
    from _blake2 import blake2b

    name = blake2b(os.fsencode(os.path.relpath(place, folder)), digest_size=8).hexdigest()
    return os.path.join(folder, f"index-{name}")


def _is_whole(index: str, *, sha256: bool) -> bool:
    """Tell whether an index ends with its own checksum; git writes it without waiting for disks."""
    from hashlib import new

    try:
        with open(index, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return False
    checksum = new("sha256" if sha256 else "sha1")
    checksum.update(data[: -checksum.digest_size])
    return bool(data) and data.endswith(checksum.digest())


def _clean(home: Home, root: Root, place: str, index: str, keep: set[str]) -> None:
    """Take away what is not of the new tree: results of the last trial, stale bytecode."""
    if not os.path.exists(index) or not root.tree or not os.path.isdir(place):
        _remove(place, keep - {place})
        return
    repo, lean = repository_of(home, root), borrowed_by(root)
    out = repo.must(place, "ls-files", "-z", "-o", "--directory", index=index, borrow=lean)
    for name in os.fsdecode(out).split("\0")[:-1]:
        if os.path.basename(name.rstrip("/")) != _BYTECODE:
            _remove(os.path.join(place, name.rstrip("/")), keep)
    args = ("diff-index", "-z", "--name-status", "--no-renames", "--cached", root.tree)
    words = os.fsdecode(repo.must(place, *args, index=index, borrow=lean)).split("\0")
    for letter, name in zip(words[::2], words[1::2], strict=False):
        if not is_inner(name):  # git takes what an index says, whoever wrote it
            continue
        path = os.path.join(place, name)
        _forget_bytecode(path)
        if letter == "A":  # in the copy, and not in the new tree
            _remove(path, keep)
            _remove_hollow(os.path.dirname(path), place)


def _remove(path: str, keep: set[str]) -> None:
    """Remove a file, a link, or a folder with all in it but the places to keep."""
    if os.path.islink(path) or not os.path.isdir(path):
        remove(path)
    elif any(f"{place}/".startswith(f"{path}/") for place in keep):
        if path not in keep:
            for name in os.listdir(path):
                _remove(os.path.join(path, name), keep)
    else:
        import shutil

        shutil.rmtree(path)


def _remove_hollow(folder: str, place: str) -> None:
    while folder != place:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = os.path.dirname(folder)


def _forget_bytecode(path: str) -> None:
    """Remove what Python compiled of a file: two versions can have one size in one second."""
    folder = os.path.join(os.path.dirname(path), _BYTECODE)
    stem = os.path.basename(path).removesuffix(".py")
    if path.endswith(".py") and os.path.isdir(folder):
        for name in os.listdir(folder):
            if name.startswith(f"{stem}."):
                remove(os.path.join(folder, name))


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
