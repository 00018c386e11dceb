"""Gives the code of a snapshot back: into a new directory, or as a copy to run from."""

from __future__ import annotations

import os

from relaunch.errors import SnapshotError
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot import borrow
from relaunch.journal.snapshot.code import NESTED, PROJECT, Code, Root
from relaunch.journal.snapshot.repository import Repository

ROOTS = ".relaunch-roots"


def restore(home: Home, code: Code, target: str) -> tuple[str, ...]:
    """Write the code into the empty or new directory `target`; returns what is not as it was."""
    try:
        os.makedirs(target, exist_ok=True)
        if os.listdir(target):
            raise SnapshotError(f"{target} is not empty", hint=f"ls {target}")
    except OSError as error:
        raise SnapshotError(f"cannot write {target}: {error.strerror}") from None
    target = os.path.realpath(target)
    missing: list[str] = []
    for root, place in places(code, target):
        if root.kind not in (PROJECT, NESTED):
            missing.append(f"{root.path}: is in {os.path.relpath(place, target)}")
        prefix = "" if place == target else os.path.join(os.path.relpath(place, target), "")
        missing += _give_back(home, root, place, prefix)
    return tuple(missing)


def places(code: Code, target: str) -> list[tuple[Root, str]]:
    """Pair each root with its place below `target`."""
    top = code.roots[0].path if code.roots else ""
    found, names = [], set[str]()
    for root in code.roots:
        if root.kind in (PROJECT, NESTED) and (root.path + "/").startswith(top + "/"):
            found.append(
                (root, os.path.normpath(os.path.join(target, "." + root.path[len(top) :])))
            )
            continue
        name = os.path.basename(root.path) or "root"
        while name in names:
            name += "_"
        names.add(name)
        found.append((root, os.path.join(target, ROOTS, name)))
    return found


def repository_of(home: Home, root: Root) -> Repository:
    """Return the private repository that holds the root's tree."""
    return Repository(home.journal, sha256=len(root.tree) == 64)


def borrowed_by(root: Root) -> list[str]:
    """List the folders of objects the root's tree may lean on."""
    its_home = find_home(root.path)
    return [borrow.objects_of(its_home)] if its_home.common_dir else []


def _give_back(home: Home, root: Root, place: str, prefix: str) -> list[str]:
    missing = [f"{prefix}{out.path}: {out.why}, not kept" for out in root.left_out]
    if root.problem:
        missing.append(f"{root.path}: {root.problem}")
    if not root.tree:
        return missing
    repo = repository_of(home, root)
    repo.ensure()
    os.makedirs(place, exist_ok=True)
    index = os.path.join(repo.path, f"restore-{os.getpid()}")
    lean = borrowed_by(root)
    try:
        repo.must(place, "read-tree", root.tree, index=index, borrow=lean)
        done = repo.git(place, "checkout-index", "-a", "-q", index=index, borrow=lean)
        if done.code:
            missing += [prefix + line for line in _unwritten(repo, place, index, lean, done.err)]
        for folder in root.empty_dirs:
            os.makedirs(os.path.join(place, folder), exist_ok=True)
    except OSError as error:
        raise SnapshotError(f"cannot write {place}: {error.strerror}") from None
    finally:
        for path in (index, index + ".lock"):
            if os.path.exists(path):
                os.unlink(path)
    return missing


def _unwritten(repo: Repository, place: str, index: str, lean: list[str], why: bytes) -> list[str]:
    """Name the files that git could not write."""
    out = repo.must(place, "ls-files", "-z", "-d", index=index, borrow=lean)
    paths = os.fsdecode(out).split("\0")[:-1]
    if not paths:
        raise SnapshotError(f"cannot restore into {place}: {os.fsdecode(why).strip()}")
    return [f"{path}: its contents are lost" for path in paths]
