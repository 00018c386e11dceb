"""Marks that code is being stored and not known to be on the disk; finds what a power cut broke.

A mark is a file in `unsynced/`, held locked by who stores. File systems keep the order of names, so
whatever names of new objects a power cut leaves, the mark is there as well, and nobody holds it:
the next snapshot then looks at what was stored since. Git itself would not: to it, an object is
stored when there is a file of its name, and be it empty.
"""

from __future__ import annotations

import fcntl
import os
import time
from itertools import islice

from relaunch.journal import to_disk
from relaunch.journal.snapshot.state import remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relaunch.journal.snapshot.repository import Repository

_MOST_CHECKED = 500
_SLACK_S = 60
"""Clocks of servers and of their clients differ."""


class Mark:
    """One that is storing; from `settle` on, a thread waits for the disk and takes it away."""

    def __init__(self, repo: Repository) -> None:
        """Set it before anything is stored."""
        self._repo = repo
        folder = os.path.join(repo.path, "unsynced")
        self._path = os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns():x}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            self._fd = os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            self._fd = os.open(self._path, flags, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass  # somebody looks at it, or there are no locks: then all is looked at once more
        self._since_ns = os.fstat(self._fd).st_ctime_ns

    def has_broken(self) -> bool:
        """Tell whether git took a broken object for one that is stored, and only touched it."""
        from relaunch.journal.snapshot.loose import is_whole

        touched = _since(self._repo.objects, self._since_ns, touched=True)
        found = list(islice(touched, _MOST_CHECKED + 1))
        if len(found) > _MOST_CHECKED:
            return False  # a first snapshot: git has written these itself
        return not all(is_whole(path, sha256=self._repo.sha256) for path in found)

    def settle(self, stored: Sequence[str], *, others: bool) -> None:
        """Have what was stored on the disk soon: these files, and `others` that git stored."""

        def settle() -> None:
            try:
                found = [*stored, *(_since(self._repo.objects, self._since_ns) if others else ())]
                to_disk.sync([*found, *{os.path.dirname(path): None for path in found}])
                remove(self._path)
            finally:
                os.close(self._fd)

        to_disk.soon(settle)


def repair_after_cut(repo: Repository) -> None:
    """Remove what is broken of what was being stored when the power went; cheap if it did not."""
    folder = os.path.join(repo.path, "unsynced")
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            since_ns = os.fstat(fd).st_mtime_ns - _SLACK_S * 10**9
            remove_broken(repo, since_ns=since_ns)
            forget_states(repo)
            remove(path)
        except OSError:
            continue  # it is held: they are at work
        finally:
            os.close(fd)


def remove_broken(repo: Repository, *, since_ns: int = 0) -> list[str]:
    """Remove the loose objects that are not what their names say; returns those names."""
    from relaunch.journal.snapshot.loose import is_whole

    gone = []
    for path in _since(repo.objects, since_ns):
        if not is_whole(path, sha256=repo.sha256):
            remove(path)
            gone.append(os.path.basename(os.path.dirname(path)) + os.path.basename(path))
    return gone


def forget_states(repo: Repository) -> None:
    """Have the next snapshots look at everything anew: what they build upon may be gone."""
    roots = os.path.join(repo.path, "roots")
    for name in os.listdir(roots):
        remove(os.path.join(roots, name, "state.json"))


def _since(objects: str, since_ns: int, *, touched: bool = False) -> Iterator[str]:
    """Give the loose objects that were stored since then, or only touched.

    A folder's time is that of its last new name.
    """
    is_new = since_ns and not touched
    for name in os.listdir(objects):
        folder = os.path.join(objects, name)
        if len(name) != 2 or (is_new and os.stat(folder).st_mtime_ns < since_ns):
            continue
        with os.scandir(folder) as files:
            for file in files:
                if file.name.startswith("tmp_"):
                    continue
                if not since_ns or file.stat().st_ctime_ns >= since_ns:
                    yield file.path
