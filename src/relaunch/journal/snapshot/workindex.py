"""Our own git index of one work tree: all that git is asked to do with it.

A snapshot works on a copy and publishes it at the end: a kill at any moment leaves the last one.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import SnapshotError
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot import borrow
from relaunch.journal.snapshot.code import PROJECT
from relaunch.journal.snapshot.listing import LIST, TOUCHED, Listing, read_listing
from relaunch.journal.snapshot.repository import Repository
from relaunch.journal.snapshot.state import TICK_NS, Remembered, remove
from relaunch.journal.snapshot.stats import stat_dirty
from relaunch.journal.snapshot.unsynced import Mark, repair_after_cut
from relaunch.proc.capture import complaint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

RACES = 20
"""How often a snapshot is begun anew because others were quicker."""
# When one of these is said, the next file will not do better.
_OUR_FAULT = (b"No space left", b"insert into database", b"unable to write", b"unable to create")


class Stale(Exception):
    """What we remembered cannot be used: forget it and look anew."""


class Raced(Stale):
    """Another snapshot was published while we looked: what it left is good, look at that."""


class WorkIndex:
    """The index of one work tree; reading uses the published one until `own` makes a copy."""

    def __init__(self, journal: str, home: Home) -> None:
        """Find the private repository for the work tree of `home`, and make it if need be."""
        self.top = home.project
        self.home = home
        self.repo = Repository(journal, sha256=borrow.uses_sha256(home))
        self.repo.ensure()
        repair_after_cut(self.repo)
        self.remembered = Remembered(self.repo.path, self.top)
        self.lean = [borrow.objects_of(home)] if home.common_dir else []
        self.copy = ""
        self._made = False
        self._mark: Mark | None = None
        """Set while what we stored may not be on the disk."""
        self._written: list[str] = []
        self._git_stored = False
        self.passing = False
        """The repository may be gone tomorrow: nothing is borrowed from it."""
        self.asked_git = True
        """What was last found touched differs in its bytes, and not only in its looks."""
        self._tree = ""
        """The tree of our copy as it stands, while we know it."""
        self._looked_ns = 0
        """When all files were last compared with the index; none changed before and was missed."""
        self.olds: dict[str, str] = {}
        """Files that we stored with other bytes than before, and the blobs that they had then."""
        inside = journal.startswith(os.path.join(self.top, "")) and not home.git_dir
        self._ours = ["-x", f"/{os.path.relpath(journal, self.top)}/"] if inside else []

    @property
    def path(self) -> str:
        """The index that is read now."""
        if not self.copy:
            return self.remembered.index
        if not self._made:
            self._made = True
            known = bool(self.remembered.data)
            self.remembered.copy(self.copy)
            if known and not self.remembered.data:
                raise Raced(f"other snapshots of {self.top} were quicker every time")
        return self.copy

    def own(self) -> None:
        """Change a copy from now on; it is made when git is to change it."""
        if self._mark is None:
            self._mark = Mark(self.repo)
        if not self.copy:
            self.copy = self.remembered.fresh()
            self._made = False
            self._tree = self.remembered.data.get("tree", "")
            self.olds = {}

    def discard(self) -> None:
        """Remove the copy unless it was published; what was stored is on the disk soon."""
        if self._mark is not None:
            self._mark.settle(self._written, others=self._git_stored)
            self._mark, self._written, self._git_stored = None, [], False
        if self.copy and self.copy != self.remembered.index:
            remove(self.copy)
            remove(self.copy + ".lock")
        self.copy = ""

    def git(self, *args: str, lean: bool = False, data: bytes = b"") -> bytes:
        """Run git with this index; Stale if it fails. With `lean`, borrowed objects can be read."""
        done = self.repo.git(
            self.top, *args, index=self.path, borrow=self.lean if lean else (), data=data
        )
        if done.code:
            fault = f"git {args[0]} in {self.top}: {complaint(done)}"
            raise SnapshotError(fault) if b"No space left" in done.err else Stale(fault)
        return done.out

    def differences(self, excludes: str, *below: str) -> Listing:
        """Ask git what differs from the index; with `below`, each new file in those folders."""
        self.asked_git = True
        self._look()
        words = [word for word in LIST if word != "--directory"] if below else LIST
        args = self._excluding(excludes, words)
        done = self.repo.git(self.top, *args, "--", *below, index=self.path, borrow=self.lean)
        self._check()
        if done.code:
            raise Stale(f"git ls-files in {self.top}: {complaint(done)}")
        return read_listing(done.out)

    def _excluding(self, excludes: str, words: Sequence[str]) -> list[str]:
        """Follow the user's excludes, or outside git our own few."""
        if not self.home.git_dir:
            return [*words, "-X", self.repo.outside_git, *self._ours]
        mine = os.path.join(self.home.common_dir, "info", "exclude")
        found = ["-X", mine] if os.path.exists(mine) else []
        return ["-c", f"core.excludesFile={excludes}", *words, *found, *self._ours]

    def ignored(self) -> list[str]:
        """List what git ignores and we do not hold, folders as one."""
        words = ("ls-files", "-z", "-o", "-i", "--directory", "--exclude-standard")
        out = self.git(*self._excluding(self.remembered.data.get("excludes", ""), words))
        return [name.rstrip("/") for name in os.fsdecode(out).split("\0")[:-1]]

    def touched(self, *, exact: bool = True) -> frozenset[str]:
        """Name the files of the index that are modified or gone; or, if not `exact`, may be."""
        self._look()
        dirty = stat_dirty(self.path, self.top, oid_bytes=32 if self.repo.sha256 else 20)
        self.asked_git = dirty is None or bool(dirty and exact)
        if dirty is not None and not self.asked_git:
            self._check()
            return frozenset(dirty)
        out = self.git(*TOUCHED, lean=True)
        self._check()
        return read_listing(out).touched

    def _look(self) -> None:
        self._looked_ns = time.time_ns() - TICK_NS  # times of files lag behind by as much

    def _check(self) -> None:
        """Make sure that git has read the very index we mean, and not found it gone."""
        if not self.copy and self.remembered.data and not self.remembered.holds():
            raise Raced(f"other snapshots of {self.top} were quicker every time")

    def entries(self) -> Iterator[tuple[str, str, str]]:
        """Give mode, object and path of all that is in the index."""
        for entry in os.fsdecode(self.git("ls-files", "-z", "-s")).split("\0")[:-1]:
            words, _, path = entry.partition("\t")
            mode, oid, _ = words.split(" ")
            yield mode, oid, path

    def read_tree(self, tree: str) -> None:
        """Make the index hold `tree`, and keep what it knows of files that are the same there."""
        self._tree = ""
        merge = ("-m", "-i") if os.path.exists(self.path) else ()
        self.git("read-tree", *merge, tree, lean=True)

    def refresh(self) -> None:
        """Have git hash what it is not sure of, and remember the times of what is the same."""
        self.repo.git(self.top, "update-index", "-q", "--refresh", index=self.path)

    def drop(self, paths: Sequence[str]) -> None:
        """Take paths out of the index."""
        if paths:
            self._tree = ""
            self.git("update-index", "-z", "--force-remove", "--stdin", data=_nul(paths))

    def put(self, entries: Iterable[tuple[str, str, str]]) -> None:
        """Put objects that exist at paths, then let git learn the files' times."""
        self._tree = ""
        lines = (f"{mode} {oid}\t{path}" for mode, oid, path in entries)
        self.git("update-index", "-z", "--index-info", data=_nul(lines))
        self.refresh()

    def add(self, paths: Sequence[str]) -> list[str]:
        """Store files, or take them out if they are gone; returns those that cannot be read."""
        if not paths:
            return []
        if self._stored_plainly(paths):
            return []
        self._git_stored = True
        args = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        done = self.repo.git(self.top, *args, index=self.path, data=_nul(paths))
        if not done.code:
            return []
        if any(word in done.err for word in _OUR_FAULT):
            raise SnapshotError(f"the code cannot be kept: {complaint(done)}")
        if b"Unable to process path" not in done.err:
            raise Stale(f"git update-index in {self.top}: {complaint(done)}")
        half = len(paths) // 2
        if half:
            return self.add(paths[:half]) + self.add(paths[half:])
        return list(paths) if os.path.lexists(os.path.join(self.top, paths[0])) else []

    def _stored_plainly(self, paths: Sequence[str]) -> bool:
        """Store edited files without git, if they and the index are of the plain kind."""
        from relaunch.journal.snapshot.loose import Objects
        from relaunch.journal.snapshot.patch import store_edits

        objects = Objects(self.repo.objects)
        index = self.copy if self._made else self.remembered.index
        stored = store_edits(
            objects, self._tree, (index, self.copy), self.top, paths, looked_ns=self._looked_ns
        )
        self._written += objects.written
        self._made = self._made or bool(stored)
        self._tree = stored.tree if stored else ""
        self.olds |= stored.olds if stored else {}
        return bool(stored)

    def write_tree(self) -> str:
        """Store the folders of the index. Files may be missing here: those are borrowed."""
        self._git_stored = self._git_stored or not self._tree
        tree = self._tree or os.fsdecode(self.git("write-tree", "--missing-ok")).strip()
        if self._git_stored and self._mark is not None and self._mark.has_broken():
            raise Stale(f"broken objects in {self.repo.objects}")
        return tree

    def against(self, base: str, tree: str) -> list[tuple[str, str, str]]:
        """List how `tree` differs from `base`: a letter (A, D, M, T), its blob there, the path."""
        out = self.git(
            "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
            "--ignore-submodules=all", base, tree, lean=True,
        )  # fmt: skip
        words = os.fsdecode(out).split("\0")
        if words[0][:1] != ":":  # the commit, where one was given
            words = words[1:]
        pairs = zip(words[::2], words[1::2], strict=False)
        return [(facts.split()[4], facts.split()[2], path) for facts, path in pairs]

    def in_base(self, base: str, paths: Sequence[str]) -> dict[str, tuple[str, str, int]]:
        """Return mode, object and size of those paths that are files in `base`."""
        found = {}
        out = self.git("ls-tree", "-z", "-l", base, "--", *paths, lean=True)
        for entry in os.fsdecode(out).split("\0")[:-1]:
            words, _, path = entry.partition("\t")
            mode, kind, oid, size = words.split()
            if kind == "blob":
                found[path] = (mode, oid, int(size))
        return found

    def sizes(self, oids: Sequence[str]) -> list[str]:
        """Return the sizes of objects, as text; other words for those that are missing."""
        if not oids:
            return []
        asked = "".join(f"{oid}\n" for oid in oids).encode()
        out = self.git("cat-file", "--batch-check=%(objectsize)", lean=True, data=asked)
        return os.fsdecode(out).splitlines()

    def hash(self, path: str) -> str:
        """Return the object name a file would have; stores nothing."""
        full = os.path.join(self.top, path)
        return self.repo.git(self.top, "hash-object", "--no-filters", "--", full).text.strip()

    def keep_all_of(self, commit: str) -> None:
        """Store the files of a commit here, for they cannot be borrowed."""
        pack = os.path.join(self.repo.objects, "pack/pack")
        data = f"{commit}^{{tree}}\n".encode()
        self.git("pack-objects", "-q", "--revs", pack, lean=True, data=data)


def home_of(home: Home, kind: str, path: str) -> Home:
    """Find the git directory of a root; a folder inside another work tree is taken by itself."""
    if kind == PROJECT:
        return home
    its_home = find_home(path)
    if its_home.project != path:
        return Home(project=path, journal=home.journal)
    return its_home


def _nul(words: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(word) + b"\0" for word in words)
