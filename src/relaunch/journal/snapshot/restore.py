"""Gives the code of a snapshot back, byte for byte, into a new directory."""

from __future__ import annotations

import os

from relaunch.errors import SnapshotError
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot import borrow
from relaunch.journal.snapshot.code import Code, Root
from relaunch.journal.snapshot.repository import Repository
from relaunch.journal.snapshot.state import remove
from relaunch.journal.snapshot.unsynced import forget_states, remove_broken
from relaunch.proc.capture import complaint

ROOTS = ".relaunch-roots"


def restore(home: Home, code: Code, target: str) -> tuple[str, ...]:
    """Write the code into the empty or new directory `target`; returns what is not as it was.

    Roots from outside the project go to `.relaunch-roots/NAME`, and are told with their place.
    """
    try:
        os.makedirs(target, exist_ok=True)
        if os.listdir(target):
            raise SnapshotError(f"{target} is not empty", hint=f"ls -A {target}")
    except OSError as error:
        raise SnapshotError(f"cannot write {target}: {error.strerror}") from None
    target = os.path.realpath(target)
    told: list[str] = []
    for root, place in places(relocated(home, code), target):
        inside = os.path.relpath(place, target)
        if inside.startswith(ROOTS):
            told.append(f"{root.path}: is in {inside}")
        prefix = "" if inside == "." else f"{inside}/"
        check_way(target, place)
        lost = write_root(home, root, place) if root.tree else []
        told += [prefix + line for line in left_out(root) + lost]
    return tuple(told)


def relocated(home: Home, code: Code) -> Code:
    """Follow a project that was moved or copied, or a linked worktree that is gone.

    The journal went with the project, so what was borrowed is to be found where it is now.
    """
    top = code.roots[0].path if code.roots else home.project
    here = find_home(top)
    if top == home.project or (here.project == top and here.common_dir == home.common_dir != ""):
        return code
    moved = [
        root.but(path=home.project + root.path[len(top) :])
        if f"{root.path}/".startswith(f"{top}/")
        else root
        for root in code.roots
    ]
    return Code(roots=tuple(moved))


def places(code: Code, target: str) -> list[tuple[Root, str]]:
    """Pair each root with its place below `target`."""
    top = code.roots[0].path if code.roots else ""
    found, names = [], set[str]()
    for root in code.roots:
        if f"{root.path}/".startswith(f"{top}/"):
            found.append((root, os.path.normpath(f"{target}/{root.path[len(top) :]}")))
            continue
        name = os.path.basename(root.path) or "root"
        while name in names:
            name += "_"
        names.add(name)
        found.append((root, os.path.join(target, ROOTS, name)))
    return found


def check_way(target: str, place: str) -> None:
    """SnapshotError where a link that was restored leads out of `target` on the way to a root."""
    inside = os.path.relpath(place, target)
    if os.path.realpath(place) != os.path.normpath(f"{os.path.realpath(target)}/{inside}"):
        raise SnapshotError(f"{place} is behind a link: no code of a trial is written there")


def left_out(root: Root) -> list[str]:
    """Tell what the snapshot of a root does not hold."""
    told = [f"{out.path}: {out.why}, not kept" for out in root.left_out]
    return [*told, root.problem] if root.problem else told


def repository_of(home: Home, root: Root) -> Repository:
    """Return the private repository that holds the root's tree."""
    return Repository(home.journal, sha256=len(root.tree) == 64)


def borrowed_by(root: Root) -> list[str]:
    """List the folders of objects the root's tree may lean on."""
    its_home = find_home(root.path)
    return [borrow.objects_of(its_home)] if its_home.common_dir else []


def write_root(home: Home, root: Root, place: str, index: str = "") -> list[str]:
    """Write the files of one root to `place`, over what an earlier `index` put there.

    Returns what is lost: borrowed from a repository that was deleted, or damaged.
    """
    repo = repository_of(home, root)
    repo.ensure()
    lean = borrowed_by(root)
    own = index or os.path.join(repo.path, f"restore-{os.getpid()}")
    try:
        os.makedirs(place, exist_ok=True)
        repo.must(place, "read-tree", *_merge(own), root.tree, index=own, borrow=lean)
        done = repo.git(place, "checkout-index", "-a", "-f", "-u", "-q", index=own, borrow=lean)
        for folder in root.empty_dirs:
            os.makedirs(os.path.join(place, folder), exist_ok=True)
        if not done.code:
            return []
        gone = repo.must(place, "ls-files", "-z", "-d", index=own, borrow=lean).split(b"\0")[:-1]
        if not gone:
            raise SnapshotError(f"cannot write {place}: {complaint(done)}")
        _store_again(home, repo)
        lost = _write_rest(repo, place, gone, own, lean)
        return [f"{os.fsdecode(path)}: its contents are lost" for path in lost]
    except OSError as error:
        raise SnapshotError(f"cannot write {place}: {error.strerror}") from None
    finally:
        remove(own + ".lock")
        if not index:
            remove(own)


def _store_again(home: Home, repo: Repository) -> None:
    """Remove what is broken, and keep it anew if the files of the project still have it."""
    from relaunch.journal.snapshot.take import take

    if remove_broken(repo):
        forget_states(repo)
        try:
            take(home)
        except SnapshotError:
            pass  # then it stays lost, and is named


def _write_rest(
    repo: Repository, place: str, paths: list[bytes], index: str, lean: list[str]
) -> list[bytes]:
    """Write these files one by one where need be: git stops at the first that is lost."""
    words = ("checkout-index", "-f", "-u", "-q", "-z", "--stdin")
    data = b"".join(path + b"\0" for path in paths)
    if not repo.git(place, *words, index=index, borrow=lean, data=data).code:
        return []
    half = len(paths) // 2
    if not half:
        return paths
    both = (paths[:half], paths[half:])
    return [one for part in both for one in _write_rest(repo, place, part, index, lean)]


def _merge(index: str) -> tuple[str, ...]:
    return ("-m", "-i") if os.path.exists(index) else ()
