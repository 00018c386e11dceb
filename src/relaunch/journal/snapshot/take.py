"""Takes a snapshot of the code: one git process when nothing changed since the last one.

Our own index of each work tree is seeded from HEAD (never copied from the user's, whose flags hide
edits), kept between snapshots, and compared with the files by git. What git sees too coarsely or
cannot hold (times within a second, big files, empty folders, nested repositories) is seen to here.
"""

from __future__ import annotations

import os
import time

from relaunch.errors import SnapshotError
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot import borrow
from relaunch.journal.snapshot.base import follow
from relaunch.journal.snapshot.choose import choose
from relaunch.journal.snapshot.code import NESTED, PROJECT, Caps, Code, LeftOut, Root
from relaunch.journal.snapshot.folders import RULES, Folders
from relaunch.journal.snapshot.listing import (
    SPECIAL,
    Listing,
    folders_of,
    is_repository,
    walk,
)
from relaunch.journal.snapshot.repository import SKIPPED_OUTSIDE_GIT
from relaunch.journal.snapshot.state import look, suspects_in
from relaunch.journal.snapshot.unsynced import remove_broken
from relaunch.journal.snapshot.workindex import RACES, Raced, Stale, WorkIndex, home_of
from relaunch.textfile import IN_TREE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from relaunch.journal.snapshot.choose import Choice, Left

DEFAULT_CAPS = Caps()
_LOOKS = 4
"""How often git is asked anew when a folder took the place of a file, and the like."""


def take(
    home: Home, *, extra_roots: Sequence[tuple[str, str]] = (), caps: Caps = DEFAULT_CAPS
) -> Code:
    """Keep the code as it is now. SnapshotError if it cannot be: the caller runs on without."""
    if home.too_wide:
        raise SnapshotError(
            f"{home.project} is too wide to keep its code",
            hint=f"mkdir {IN_TREE}  # in the project",
        )
    roots: list[Root] = []
    seen: set[str] = set()
    todo = [(PROJECT, home.project), *extra_roots]
    while todo:
        kind, path = todo.pop(0)
        path = os.path.abspath(path)
        if path in seen:
            continue
        seen.add(path)
        root, nested = _take_root(home, kind, path, caps)
        roots.append(root)
        todo += [(NESTED, os.path.join(path, name)) for name in nested]
    return Code(roots=tuple(roots))


def _take_root(home: Home, kind: str, path: str, caps: Caps) -> tuple[Root, list[str]]:
    """Take one work tree; the project's fault is raised, another's is told in its root."""
    try:
        its_home = home_of(home, kind, path)
        index = WorkIndex(home.journal, its_home)
        # Another repository can be thrown away any time, with what would be borrowed from it; and
        # nothing is ever written into it, so that a ref of ours could keep it there.
        inside = its_home.common_dir.startswith(home.common_dir or "/nowhere")
        index.passing = kind != PROJECT and not inside
        taker = _Taker(index, caps if kind == PROJECT else caps.but(also=()))
        return taker.take().but(kind=kind), sorted(taker.nested)
    except (SnapshotError, OSError) as error:
        if kind == PROJECT and isinstance(error, SnapshotError):
            raise
        fault = f"the code in {path} cannot be kept: {error}"
        if kind == PROJECT:
            raise SnapshotError(fault) from None
        return Root(path=path, kind=kind, base="", tree="", problem=fault), []


class _Taker:
    """The work of one snapshot of one work tree."""

    def __init__(self, index: WorkIndex, caps: Caps) -> None:
        self.index = index
        self.home = index.home
        self.top = index.top
        self.caps = caps
        self.data: dict[str, Any] = {}
        self.folders = Folders(self.top, {})
        self.nested: list[str] = []
        self._stored: set[str] = set()
        self._modified: frozenset[str] = frozenset()

    def take(self) -> Root:
        """Take it; what cannot be used of the past is forgotten, and all is looked at anew."""
        patience, races = 2, 0
        while True:
            try:
                return self._take(alone=races > 0)
            except Raced as error:
                races += 1
                if races > RACES:
                    raise SnapshotError(str(error)) from None
            except Stale as error:
                if not patience:
                    raise SnapshotError(str(error)) from None
                patience -= 1
                self.index.remembered.forget()
                self._mend()
            finally:
                self.index.discard()

    def _mend(self) -> None:
        try:
            self.index.repo.mend()
            remove_broken(self.index.repo)
        except OSError as error:
            raise SnapshotError(f"{self.index.repo.path}: {error.strerror}") from None

    def _take(self, alone: bool) -> Root:
        """Take it once; `alone` works on a copy from the start, which nobody can take away."""
        self.nested = []
        self._stored = set()
        self._modified = frozenset()
        remembered = self.index.remembered
        remembered.load()
        before = remembered.data
        if alone:
            self.index.own()
        if before and not self.index.repo.has(before["tree"]):
            remembered.data = before = {}
        self.data = {"left": {}, "unsettled": {}, "links": [], "folders": {}, **before}
        self.folders = Folders(self.top, self.data["folders"])
        quiet = self.folders.look() and before.get("problem") == ""
        quiet = self._follow_excludes() and quiet
        suspects, self.data["unsettled"] = suspects_in(self.top, self.data["unsettled"])
        head = borrow.read_head(self.home)
        if not before or before["head"] != head or borrow.has_broken_pin(self.home):
            self._seed(head, suspects)
            suspects = []
            quiet = False
        self._follow_user_index()
        for _ in range(_LOOKS):
            if not self._step(suspects, quiet):
                break
            suspects = []
            quiet = False
        self._finish(before)
        return self._root()

    def _follow_excludes(self) -> bool:
        """Find the user's own excludes again when a settings file changed; True if none did."""
        if not self.home.git_dir:
            return True
        signature = borrow.settings_signature(self.home, self.data.get("excludes", ""))
        if self.data.get("settings") == signature:
            return True
        excludes = borrow.excludes_file(self.home)
        signature = borrow.settings_signature(self.home, excludes)
        self.data |= {"settings": signature, "excludes": excludes}
        return False

    def _follow_user_index(self) -> None:
        """Know the ignored files that the user added by force and has not committed yet."""
        if not self.home.git_dir:
            return
        signature = borrow.index_signature(self.home)
        if self.data.get("user_index") != signature:
            staged = borrow.staged_files(self.home, self.data["head"])
            self.data |= {"user_index": signature, "staged": staged}

    # -- the first time, and when HEAD moved

    def _seed(self, head: str, suspects: list[str]) -> None:
        """Start from HEAD: what is the same there is borrowed, not stored again."""
        unknown = not self.home.git_dir and not self.index.remembered.data
        if unknown and walk(self.top, "", self.caps.max_files, SKIPPED_OUTSIDE_GIT).too_many:
            self._refuse()
        self.index.own()
        self.index.drop(suspects)
        if head:
            drafts = self.index.repo.path
            if self.index.passing or not borrow.pin(self.home, head, drafts=drafts):
                self.index.keep_all_of(head)
            self.index.read_tree(head)
        self.data |= {"head": head, "forced": [], "tree": "", "user_index": None}
        self._look_at_entries()
        self.index.refresh()

    def _look_at_entries(self) -> None:
        """Before git hashes: note submodules, fresh times, and big files that cannot be the same.

        Those are dropped unhashed: gigabytes of large-file storage would be read each time.
        """
        links, big, files = [], {}, {}
        recent = time.time_ns() - 2_000_000_000
        for mode, oid, path in self.index.entries():
            if mode == "160000":
                links.append(path)
                continue
            full = os.path.join(self.top, path)
            try:
                found = os.lstat(full)
            except OSError:
                continue
            files[path] = look(full) if found.st_ctime_ns > recent else None
            if found.st_size > self.caps.max_file:
                big[path] = (oid, str(found.st_size))
        sizes = self.index.sizes([oid for oid, _ in big.values()])
        other = [path for path, size in zip(big, sizes, strict=True) if big[path][1] != size]
        self.index.drop(other)
        same = files.keys() - set(other)
        left = {path: was for path, was in self.data["left"].items() if path not in same}
        self.folders.only(folders_of([*files, *links]))
        unsettled = {path: was for path, was in files.items() if was is not None}
        self.data |= {"links": links, "left": left, "unsettled": unsettled}
        self.data["dropped"] = other

    # -- each time

    def _step(self, suspects: list[str], quiet: bool) -> bool:
        """Bring the index up to the files; True if git has to look again.

        With `quiet`, no folder changed: there are no new files, and what is empty still is.
        """
        listing = self._list(quiet)
        rules = any(os.path.basename(path) == RULES for path in (*listing.touched, *suspects))
        if quiet and rules:
            listing = self._list(False)
        if quiet and not rules:
            inner = Listing()
            self.nested = list(self.data["nested"])
        else:
            inner = self._look_into(listing.folders)
        lost = self._lost_links(listing.touched)
        files = (*listing.files, *inner.files)
        forced = self._forced()
        left = [path for path in self.data["left"] if path[-1] != "/"]  # no closed folders
        names = {*listing.touched, *files, *suspects, *left, *forced}
        names.update(self.data.pop("dropped", ()))
        names -= self._of_nested(names - listing.touched)
        choice = choose(
            self.top, names - {*self.data["links"]} - lost, self.data["left"], self.caps
        )
        self._limit(files, choice)
        self._take_back(choice)
        # Git stores a file anew only if it sees that it changed: what it missed is dropped first.
        missed = {path for path in suspects if path in choice.add} - listing.touched
        known = listing.touched.union(suspects)
        drop, gone = choice.drop & known, choice.gone & known
        if not gone.isdisjoint(self.data["forced"]):
            self.data["forced"] = [path for path in self.data["forced"] if path not in gone]
        self._store(drop | missed | lost, [*choice.add, *gone], choice)
        self.data["left"] = choice.left
        self._name()
        grown = inner.files or forced  # where there seemed to be folders without files
        return bool(grown or lost or choice.covered or self._emptied(drop | gone))

    def _of_nested(self, names: Iterable[str]) -> set[str]:
        """Name the files that belong to a repository of their own by now."""
        tops = tuple(f"{nested}/" for nested in self.nested)
        return {path for path in names if path.startswith(tops)} if tops else set()

    def _emptied(self, paths: Iterable[str]) -> bool:
        """Tell whether a folder is left from which a file of ours is gone: it may be empty."""
        return any(os.path.isdir(os.path.join(self.top, os.path.dirname(path))) for path in paths)

    def _list(self, quiet: bool) -> Listing:
        """Ask git; when it had to hash much to know, let it remember the times it saw."""
        start = time.monotonic()
        if quiet:
            listing = Listing(touched=self.index.touched(exact=False))
        else:
            listing = self.index.differences(self.data.get("excludes", ""))
        if self.index.asked_git:  # else they only look touched
            self._modified = listing.touched
        took = time.monotonic() - start
        quick = self.data.get("quick_s")
        if quick is None:
            self.data["quick_s"] = took
        elif took > 4 * quick + 0.05 and not self.index.copy:
            self.index.own()
            self.index.refresh()
        return listing

    def _look_into(self, folders: Iterable[str]) -> Listing:
        """See to folders without files of ours: repositories, empty folders, pipes, new files."""
        empty: list[str] = []
        named: dict[str, str] = {}
        ask = []
        for folder in folders:
            if is_repository(os.path.join(self.top, folder)):
                self._meet(folder)
                continue
            walked = walk(self.top, folder, self.caps.max_files)
            # A folder that holds nothing but what git ignores, such as a cache, is not empty.
            empty += walked.hollow or ([] if walked.has_files else [folder])
            named.update(walked.named)
            self.folders.add(walked.seen)
            if walked.has_files:
                ask.append(folder)
        inner = self.index.differences(self.data.get("excludes", ""), *ask) if ask else Listing()
        for folder in inner.folders:
            self._meet(folder)
        self.folders.add(self.nested)
        self.data |= {"empty": sorted(empty), "named": named, "nested": sorted(self.nested)}
        return inner

    def _meet(self, nested: str) -> None:
        path = os.path.join(self.top, nested)
        if nested not in self.nested and find_home(path).project == path:
            self.nested.append(nested)

    def _lost_links(self, touched: frozenset[str]) -> set[str]:
        """Name the submodules that are none any more: files of the project stand there."""
        lost = set()
        for path in self.data["links"]:
            full = os.path.join(self.top, path)
            if is_repository(full):
                self._meet(path)
            elif not os.path.isdir(full) or os.path.islink(full) or os.listdir(full):
                lost.add(path)
        if lost:
            self.data["links"] = [path for path in self.data["links"] if path not in lost]
        return lost

    def _forced(self) -> list[str]:
        """Name the ignored files that are to be kept all the same and are not known yet."""
        wanted = list(self.data.get("staged", ()))
        if self.caps.also:
            import glob

            for pattern in self.caps.also:
                wanted += glob.glob(pattern, root_dir=self.top, recursive=True, include_hidden=True)
        known = set(self.data["forced"])
        found = [path for path in wanted if path not in known]
        found = [path for path in found if not os.path.isdir(os.path.join(self.top, path))]
        if found:
            self.data["forced"] = sorted({*known, *found})
        return found

    def _limit(self, untracked: Sequence[str], choice: Choice) -> None:
        """Give up on untracked files when there are too many to be code."""
        self.data["problem"] = ""
        if len(untracked) <= self.caps.max_files:
            return
        if not self.home.git_dir:
            self._refuse()
        self.data["problem"] = f"over {self.caps.max_files:,} untracked files: none of them kept"
        for path in untracked:
            choice.add.pop(path, None)
            choice.left.pop(path, None)

    def _refuse(self) -> None:
        raise SnapshotError(
            f"too many files in {self.top} to keep the code: over {self.caps.max_files:,}",
            hint="git init  # and ignore what is not code",
        )

    def _take_back(self, choice: Choice) -> None:
        """Borrow what is too big to store and is again as HEAD has it."""
        known = self.data["left"]
        fresh = [path for path, was in choice.left.items() if was[1] and was != known.get(path)]
        if not fresh or not self.data["head"]:
            return
        same = []
        for path, (mode, oid, size) in self.index.in_base(self.data["head"], fresh).items():
            executable = os.access(os.path.join(self.top, path), os.X_OK)
            alike = size == choice.left[path][0] and executable == (mode == "100755")
            if alike and self.index.hash(path) == oid:
                same.append((mode, oid, path))
        if same:
            self.index.own()
            self.index.put(same)
            self.data["tree"] = ""
        for _, _, path in same:
            choice.drop.discard(path)
            del choice.left[path]

    def _store(self, drop: set[str], add: list[str], choice: Choice) -> None:
        if not drop and not add:
            return
        self.data["tree"] = ""
        self._stored.update(drop, add)
        self.index.own()
        self.index.drop(sorted(drop))
        self.folders.add(folders_of(choice.add))
        looks = {path: look(os.path.join(self.top, path)) for path in choice.add}
        self.data["unsettled"] = {**self.data["unsettled"], **looks}
        for path in self.index.add(sorted(add)):
            choice.left[path] = [0, [], "", "unreadable"]

    def _name(self) -> None:
        """Name what cannot be kept: closed folders, pipes, sockets and devices."""
        left: dict[str, Left] = self.data["left"]
        found = {**self.data["named"], **dict.fromkeys(self.folders.special_files(), SPECIAL)}
        for path, why in found.items():
            left[path] = [0, [], "", why]

    # -- the end

    def _finish(self, before: dict[str, Any]) -> None:
        """Make the tree of the index and publish what we know."""
        self.data["folders"] = self.folders.as_data()
        if not self.data["tree"]:
            self.data["tree"] = tree = self.index.write_tree()
            self.data |= self._followed(before) or self._against_base(tree)
            if tree != before.get("tree"):
                self.index.repo.remember(tree)
        if self.index.copy or self.data != before:
            self.index.remembered.publish(self.index.path, self.data)

    def _followed(self, before: dict[str, Any]) -> dict[str, Any] | None:
        """Say how the code differs from its base by what was stored since; None: git has to."""
        same_base = self._stored and before.get("head") == self.data["head"] != ""
        if not same_base or before.get("left") != self.data["left"] or self.data["left"]:
            return None
        modified = {**dict.fromkeys(self._modified, ""), **self.index.olds}
        return follow(before, self.top, self._stored, modified)

    def _against_base(self, tree: str) -> dict[str, Any]:
        sides: dict[str, list[str]] = {"A": [], "D": [], "M": []}
        oids = {}
        if self.data["head"]:
            for letter, oid, path in self.index.against(self.data["head"], tree):
                changed = letter not in sides or path in self.data["left"]
                sides["M" if changed else letter].append(path)
                if letter == "M":
                    oids[path] = oid
        sides["M"].sort()
        return {
            "changed": sides["M"],
            "new": sides["A"],
            "deleted": sides["D"],
            "base_oids": oids,
        }

    def _root(self) -> Root:
        data = self.data
        return Root(
            path=self.top,
            kind="",
            base=data["head"],
            tree=data["tree"],
            changed=tuple(data["changed"]),
            new=tuple(data["new"]),
            deleted=tuple(data["deleted"]),
            left_out=tuple(
                LeftOut(path=path, size=size, digest=digest, why=why)
                for path, (size, _, digest, why) in sorted(data["left"].items())
            ),
            empty_dirs=tuple(data["empty"]),
            problem=data["problem"],
        )
