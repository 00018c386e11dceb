"""Checkouts in which commits are tried, several at once; nothing of the user's repository changes.

    PARENT/N/lock   held while the checkout is in use; the kernel drops it when we are killed
    PARENT/N/tree   the work tree; beside it what `checkouts/twin.py` keeps

A checkout that is given back stays, with its bytecode, for whoever is next; `sweep` removes it.
"""

from __future__ import annotations

import fcntl
import os
import time

from relaunch.errors import PlaceError
from relaunch.inside.layout import built_root
from relaunch.trial.place.checkouts.clean import open_up, remove_all
from relaunch.trial.place.checkouts.gitcall import GitFault
from relaunch.trial.place.checkouts.index import time_of_content
from relaunch.trial.place.checkouts.lender import lender_at
from relaunch.trial.place.checkouts.twin import Twin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from relaunch.trial.place.checkouts.lender import Lender

_MOST = 64
_TRASH = ".trash-"


class Checkout:
    """A work tree that is ours until `close`; another process at the same time gets another one."""

    def __init__(self, folder: str, lock: int, lender: Lender) -> None:
        """Take over the locked folder; nothing is written before `go_to`."""
        self.path = os.path.join(folder, "tree")
        self.missing: tuple[str, ...] = ()
        """What could not be put there: submodules and large files that the user has not got."""
        self._folder = folder
        self._lock = lock
        self._lender = lender
        self._twin = Twin(folder, self.path, lender)

    def go_to(self, commit: str) -> None:
        """Put exactly the files of a commit there, named by its full id; leftovers are gone."""
        if len(commit) not in (40, 64) or commit.strip("0123456789abcdef"):
            raise PlaceError(f"`{commit}` is no full commit id", hint=f"git rev-parse {commit}")
        if not _is_same(self._lock, os.path.join(self._folder, "lock")):
            raise PlaceError(f"{self._folder} was removed while it was in use")
        try:
            self._try(commit)
        except (GitFault, OSError, ValueError) as error:
            raise PlaceError(f"cannot put commit {commit[:12]} into {self.path}: {error}") from None
        self.missing = tuple(self._twin.missing)

    def _try(self, commit: str) -> None:
        try:
            self._twin.go_to(commit)
        except (GitFault, OSError, ValueError):
            self._start_over()
            self._twin.mend(commit)
            if not self._twin.has(commit):
                raise PlaceError(
                    f"commit {commit[:12]} is not in {self._lender.top}",
                    hint=f"git -C {self._lender.top} fetch",
                ) from None
            self._twin.go_to(commit)

    def _start_over(self) -> None:
        """Move all that is there out of the way; a program may have left what we cannot remove."""
        open_up(os.fsencode(self._folder))
        trash = os.path.join(self._folder, f"{_TRASH}{time.monotonic_ns():x}")
        os.mkdir(trash, 0o700)
        for name in os.listdir(self._folder):
            path = os.path.join(self._folder, name)
            if name != "lock" and path != trash:
                if os.path.isdir(path) and not os.path.islink(path):
                    open_up(os.fsencode(path))
                os.rename(path, os.path.join(trash, name))
        _try_to_remove(trash)
        self._twin = Twin(self._folder, self.path, self._lender)

    def tree_of(self, commit: str) -> str:
        """Return the id of all the files of a commit: two commits may have the same."""
        try:
            return self._twin.tree_of(commit)
        except GitFault as error:
            raise PlaceError(f"commit {commit[:12]} cannot be read: {error}") from None

    def pythonpath(self) -> tuple[str, ...]:
        """What to put first on PYTHONPATH, so that the package is loaded from this checkout."""
        root = built_root(self.path)
        return (root,) if root else ()

    def env(self) -> dict[str, str]:
        """What to set for a probe: without `.git` in the tree, git must not find one above it."""
        return {"GIT_CEILING_DIRECTORIES": self._folder}

    def overlay(self, files: Mapping[str, str]) -> None:
        """Put files over the commit, relative path to source, until the next `go_to`."""
        for name, source in files.items():
            try:
                self._put_over(name, source)
            except OSError as error:
                raise PlaceError(f"cannot put {source} over {name}: {error.strerror}") from None

    def _put_over(self, name: str, source: str) -> None:
        target = os.path.normpath(os.path.join(self.path, name))
        around = os.path.realpath(os.path.dirname(target))
        top = os.path.realpath(self.path)
        if not f"{around}/".startswith(f"{top}/"):
            raise PlaceError(f"{name} is not inside the checkout {self.path}")
        with open(source, "rb") as file:
            data, mode = file.read(), os.fstat(file.fileno()).st_mode
        os.makedirs(around, exist_ok=True)
        remove_all(os.fsencode(target))
        with open(target, "wb") as file:
            file.write(data)
            if mode & 0o100:
                os.fchmod(file.fileno(), os.fstat(file.fileno()).st_mode | (mode & 0o111))
        when = time_of_content(data)
        os.utime(target, ns=(when, when))

    def close(self) -> None:
        """Let another have the checkout."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        """Use it as a context, to give it free at the end."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let another have the checkout."""
        self.close()


def open_checkout(parent: str, top: str) -> Checkout:
    """Take a free checkout below `parent`, or make one, for commits of the work tree `top`."""
    lender = lender_at(os.path.abspath(top))
    for number in range(1, _MOST + 1):
        folder = os.path.join(os.path.abspath(parent), str(number))
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            lock = _lock(folder)
        except OSError as error:
            raise PlaceError(f"cannot write {folder}: {error.strerror}") from None
        if lock is not None:
            return Checkout(folder, lock, lender)
    raise PlaceError(f"all {_MOST} checkouts in {parent} are in use", hint="rl log")


def count(parent: str) -> int:
    """Count the checkouts that there are."""
    try:
        return sum(name.isdigit() for name in os.listdir(parent))
    except OSError:
        return 0


def sweep(parent: str) -> int:
    """Remove the checkouts that nobody holds; return how many."""
    removed = 0
    try:
        names = os.listdir(parent)
    except OSError:
        return 0
    for name in names:
        folder = os.path.join(parent, name)
        if name.startswith(_TRASH):
            _try_to_remove(folder)
        elif name.isdigit() and _take_away(folder):
            removed += 1
    return removed


def _take_away(folder: str) -> bool:
    """Rename first: whoever comes meanwhile makes a new folder, and never sees half of one."""
    try:
        lock = _lock(folder)
        if lock is None:
            return False
        trash = f"{os.path.dirname(folder)}/{_TRASH}{os.getpid()}-{time.monotonic_ns():x}"
        try:
            os.rename(folder, trash)
        finally:
            os.close(lock)
    except OSError:
        return False
    _try_to_remove(trash)
    return True


def _lock(folder: str) -> int | None:
    """Lock a folder; None if somebody has it."""
    path = os.path.join(folder, "lock")
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:  # swept away since we looked
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same(lock, path):
            return lock
    except BlockingIOError:
        pass
    os.close(lock)
    return None


def _is_same(lock: int, path: str) -> bool:
    """Tell whether the file that we have locked is still the one that others would lock."""
    try:
        return os.path.samestat(os.fstat(lock), os.stat(path))
    except FileNotFoundError:
        return False


def _try_to_remove(path: str) -> None:
    try:
        remove_all(os.fsencode(path))
    except OSError:
        pass  # a program may have left files of another user
