"""Takes a snapshot of the code: one git process when nothing changed since the last one.

Our own index of each work tree is seeded from HEAD (never copied from the user's, whose flags hide
edits), kept between snapshots, and compared with the files by git. What git sees too coarsely or
cannot hold (times within a second, big files, empty folders, nested repositories) is seen to here.
"""

from __future__ import annotations

import os
import stat
import time

from relaunch.errors import SnapshotError
from relaunch.journal.home import MARKER, Home, find_home
from relaunch.journal.snapshot import borrow
from relaunch.journal.snapshot.code import NESTED, PROJECT, Caps, Code, LeftOut, Root
from relaunch.journal.snapshot.listing import (
    LIST,
    Listing,
    is_repository,
    kind_of,
    read_listing,
    sample_digest,
    walk,
)
from relaunch.journal.snapshot.repository import Repository, complaint
from relaunch.journal.snapshot.state import Remembered, fingerprint, look, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

DEFAULT_CAPS = Caps()
_OUR_FAULT = (b"No space left", b"insert into database", b"unable to write", b"unable to create")


class _Stale(Exception):
    """What we remembered cannot be used: forget it and look anew."""


def take(
    home: Home, *, extra_roots: Sequence[tuple[str, str]] = (), caps: Caps = DEFAULT_CAPS
) -> Code:
    """Keep the code as it is now. SnapshotError if it cannot be: the caller runs on without."""
    if home.too_wide:
        raise SnapshotError(
            f"{home.project} is too wide to keep its code", hint=f"mkdir {MARKER}  # in the project"
        )
    roots: list[Root] = []
    seen: set[str] = set()
    todo = [(PROJECT, home.project), *extra_roots]
    while todo:
        kind, path = todo.pop(0)
        if path in seen:
            continue
        seen.add(path)
        its_home = home if kind == PROJECT else find_home(path)
        try:
            root, nested = _Taker(home.journal, its_home.but(project=path), kind, caps).take()
        except SnapshotError as error:
            if kind == PROJECT:
                raise
            root, nested = Root(path=path, kind=kind, base="", tree="", problem=error.message), []
        roots.append(root)
        todo += [(NESTED, os.path.join(path, name)) for name in nested]
    return Code(roots=tuple(roots))


def changed_since(home: Home, code: Code) -> tuple[str, ...]:
    """Name the files of a snapshot that are no longer as they were; new files are not told."""
    found: list[str] = []
    for root in code.roots:
        if not root.tree:
            continue
        its_home = home if root.kind == PROJECT else find_home(root.path)
        taker = _Taker(home.journal, its_home.but(project=root.path), root.kind, Caps())
        prefix = os.path.join(root.path, "")
        if root.path == home.project:
            prefix = ""
        elif prefix.startswith(os.path.join(home.project, "")):
            prefix = prefix[len(home.project) + 1 :]
        found += [prefix + path for path in taker.changed_since(root)]
    return tuple(sorted(found))


class _Taker:
    """The work of one snapshot of one work tree."""

    def __init__(self, journal: str, home: Home, kind: str, caps: Caps) -> None:
        self.home = home
        self.kind = kind
        self.caps = caps
        self.top = home.project
        self.repo = Repository(journal, sha256=borrow.uses_sha256(home))
        self.repo.ensure()
        self.remembered = Remembered(self.repo.path, self.top)
        self.borrowed = [borrow.objects_of(home)] if home.common_dir else []
        self.inside = os.path.relpath(journal, self.top) if _is_in(journal, self.top) else ""
        self.index = ""
        self.data: dict[str, Any] = {}
        self.nested: list[str] = []
        self.again = False

    def take(self) -> tuple[Root, list[str]]:
        """Return the snapshot and the nested work trees that were met."""
        for last in (False, False, True):
            try:
                return self._take(), self.nested
            except _Stale as error:
                if last:
                    raise SnapshotError(str(error)) from None
                self.remembered.forget()
                try:
                    self.repo.mend()
                except OSError as fault:
                    raise SnapshotError(f"{self.repo.path}: {fault.strerror}") from None
            finally:
                if self.index and self.index != self.remembered.index:
                    remove(self.index)
                    remove(self.index + ".lock")
        raise AssertionError

    def _take(self) -> Root:
        self.index = ""
        self.nested = []
        self.remembered.load()
        before = self.remembered.data
        if before and not self.repo.has(before["tree"]):
            self.remembered.data = before = {}
        self.data = dict(before)
        self._follow_excludes()
        suspects = self._suspects()
        head = borrow.read_head(self.home)
        if not before or before["head"] != head:
            self._seed(head, suspects)
            suspects = []
        for _ in range(4):
            if not self._step(self._list(), suspects):
                break
            suspects = []
        self._finish(before)
        return self._root()

    # -- looking ---------------------------------------------------------------------------------

    def _suspects(self) -> list[str]:
        """Name the files whose edit git could miss: its times have whole seconds only."""
        kept, suspects = {}, []
        now = time.time() - 2
        for path, was in self.data.get("unsettled", {}).items():
            if not was or look(os.path.join(self.top, path)) != was:
                suspects.append(path)
            elif was[0] / 1e9 > now:
                kept[path] = was
        self.data["unsettled"] = kept
        return suspects

    def _follow_excludes(self) -> None:
        """Find the user's own excludes file again when a settings file of git changed."""
        if self.home.git_dir:
            signature = borrow.settings_signature(self.home)
            if self.data.get("settings") != signature:
                self.data["settings"] = signature
                self.data["excludes"] = borrow.excludes_file(self.home)

    def _list(self, *pathspec: str) -> Listing:
        """Ask git what differs from our index; with a pathspec, for the files below it."""
        args: list[str] = []
        if self.home.git_dir:
            mine = os.path.join(self.home.common_dir, "info", "exclude")
            config = ["-c", f"core.excludesFile={self.data.get('excludes', '')}"]
            if os.path.exists(mine):
                args += ["-X", mine]
        else:
            config = []
            args += ["-X", self.repo.outside_git]
        if self.inside:
            args += ["-x", f"/{self.inside}/"]
        listing = [word for word in LIST if not pathspec or word != "--directory"]
        done = self.repo.git(
            self.top, *config, *listing, *args, "--", *pathspec,
            index=self.index or self.remembered.index, borrow=self.borrowed,
        )  # fmt: skip
        if done.code or (not self.index and not self.remembered.holds()):
            raise _Stale(f"git ls-files in {self.top}: {complaint(done)}")
        return read_listing(done.out)

    # -- bringing our index up to the files --------------------------------------------------------

    def _seed(self, head: str, suspects: list[str]) -> None:
        """Start from HEAD: what is the same there is borrowed, not stored again."""
        unknown = not self.home.git_dir and not self.remembered.data
        if unknown and walk(self.top, "", self.caps.max_files).too_many:
            raise SnapshotError(f"too many files in {self.top}: over {self.caps.max_files:,}")
        self._own_index()
        self._drop(suspects)
        if head:
            if not borrow.pin(self.home, head):
                self._copy_objects(head)
            merge = ["-m", "-i"] if os.path.exists(self.index) else []
            self._git_or_stale("read-tree", *merge, head, borrow=self.borrowed)
        self.data |= {"head": head, "forced": [], "tree": ""}
        self._look_at_entries()
        self.repo.git(self.top, "update-index", "-q", "--refresh", index=self.index)

    def _look_at_entries(self) -> None:
        """Before git hashes: note nested repositories, big files that differ, and fresh times."""
        links, big, unsettled, have = [], {}, {}, set()
        recent = time.time_ns() - 2_000_000_000
        out = self.repo.must(self.top, "ls-files", "-z", "-s", index=self.index)
        for entry in os.fsdecode(out).split("\0")[:-1]:
            head, _, path = entry.partition("\t")
            mode, oid, _ = head.split(" ")
            if mode == "160000":
                links.append(path)
                continue
            try:
                found = os.lstat(os.path.join(self.top, path))
            except OSError:
                continue
            if found.st_ctime_ns > recent:
                unsettled[path] = look(os.path.join(self.top, path))
            if found.st_size > self.caps.max_file:
                big[path] = oid
            have.add(path)
        self.data["links"] = links
        self.data["unsettled"] = unsettled
        other = self._other_size(big)
        self._drop(other)
        left = self.data.get("left", {})
        have.difference_update(other)
        self.data["left"] = {path: was for path, was in left.items() if path not in have}
        self.data["big"] = other

    def _other_size(self, big: dict[str, str]) -> list[str]:
        """Name the big files that cannot be as in HEAD: hashing gigabytes would tell no more."""
        if not big:
            return []
        asked = "".join(f"{oid}\n" for oid in big.values()).encode()
        out = self.repo.must(
            self.top, "cat-file", "--batch-check=%(objectsize)", borrow=self.borrowed, data=asked
        )
        found = []
        for path, size in zip(big, out.decode().split("\n"), strict=False):
            try:
                if str(os.lstat(os.path.join(self.top, path)).st_size) != size:
                    found.append(path)
            except OSError:
                pass
        return found

    def _copy_objects(self, head: str) -> None:
        """Nothing can be pinned there, so nothing is borrowed: keep all of HEAD's files here."""
        self.repo.must(
            self.top, "pack-objects", "-q", "--revs", os.path.join(self.repo.objects, "pack/pack"),
            borrow=self.borrowed, data=f"{head}^{{tree}}\n".encode(),
        )  # fmt: skip

    def _step(self, listing: Listing, suspects: list[str]) -> bool:
        """Bring the index nearer to the files; True if another look is needed."""
        folders, inner = self._sort_folders(listing.folders)
        drop, links = self._links(listing.touched)
        self.again = bool(inner.files or drop)
        names = {*listing.touched, *listing.files, *inner.files, *suspects}
        names |= {*self.data.get("left", ()), *self.data.pop("big", ()), *self._forced()}
        names -= links
        add, left, gone = self._sort_files(names)
        for path in folders.pop("specials"):
            left[path] = [0, [], "", "a pipe, socket or device"]
        drop |= gone | {path for path in suspects if path in add}
        untracked = len(listing.files) + len(inner.files)
        self.data["problem"] = ""
        if untracked > self.caps.max_files:
            self._too_many(add, left, listing, inner)
        changed = bool(add or drop & {*listing.touched, *suspects, *links})
        if changed:
            self._own_index()
            self._drop(sorted(drop))
            self._add(sorted(add), left)
        self.data["left"] = left
        self.data["empty"] = sorted(folders["hollow"])
        if changed:
            self.data["tree"] = ""
        return self.again and changed

    def _too_many(
        self, add: dict[str, int], left: dict[str, Any], listing: Listing, inner: Listing
    ) -> None:
        if not self.home.git_dir:
            raise SnapshotError(f"too many files in {self.top}: over {self.caps.max_files:,}")
        self.data["problem"] = f"over {self.caps.max_files:,} untracked files: none of them kept"
        for path in (*listing.files, *inner.files):
            add.pop(path, None)
            left.pop(path, None)

    def _sort_folders(self, folders: Iterable[str]) -> tuple[dict[str, list[str]], Listing]:
        """Look into folders without files of ours: repositories, empty folders, new files."""
        found: dict[str, list[str]] = {"hollow": [], "specials": []}
        ask = []
        for folder in folders:
            if is_repository(os.path.join(self.top, folder)):
                self._meet(folder)
                continue
            walked = walk(self.top, folder, self.caps.max_files)
            found["hollow"] += walked.hollow or [folder]
            found["specials"] += walked.specials
            if walked.has_files:
                ask.append(folder)
        if not ask:
            return found, Listing(touched=frozenset(), files=(), folders=())
        inner = self._list(*ask)
        for folder in inner.folders:
            self._meet(folder)
        return found, inner

    def _meet(self, nested: str) -> None:
        path = os.path.join(self.top, nested)
        if nested not in self.nested and find_home(path).project == path:
            self.nested.append(nested)

    def _links(self, touched: frozenset[str]) -> tuple[set[str], set[str]]:
        """Split the submodules: those that are none any more, and all."""
        gone = set()
        links = self.data.get("links", [])
        for path in links:
            full = os.path.join(self.top, path)
            if is_repository(full):
                self._meet(path)
            elif path in touched or not os.path.isdir(full) or os.listdir(full):
                gone.add(path)
        if gone:
            self.data["links"] = [path for path in links if path not in gone]
        return gone, set(links)

    def _forced(self) -> list[str]:
        """Name the ignored files that are to be kept all the same, unless we have them already."""
        have = set(self.data.get("forced", ()))
        found = [path for path in self._also() if path not in have]
        self.data["forced"] = sorted(have.union(found))
        return found

    def _also(self) -> Iterable[str]:
        if not self.caps.also or self.kind != PROJECT:
            return []
        import glob

        found: list[str] = []
        for pattern in self.caps.also:
            found += glob.glob(pattern, root_dir=self.top, recursive=True, include_hidden=True)
        return [path for path in found if os.path.isfile(os.path.join(self.top, path))]

    def _sort_files(self, names: Iterable[str]) -> tuple[dict[str, int], dict[str, Any], set[str]]:
        """Decide for each name: into the index, left out by name, or out of the index."""
        before = self.data.get("left", {})
        add: dict[str, int] = {}
        left: dict[str, Any] = {}
        drop: set[str] = set()
        for path in names:
            full = os.path.join(self.top, path)
            try:
                found = os.lstat(full)
            except (FileNotFoundError, NotADirectoryError):
                drop.add(path)
                continue
            except OSError as error:
                left[path] = [0, [], "", error.strerror]
                continue
            if stat.S_ISDIR(found.st_mode) or self._beyond_link(path):
                drop.add(path)
                self.again = True
                continue
            mark = fingerprint(found)
            if path in before and before[path][1] == mark:
                left[path] = before[path]
                drop.add(path)
                continue
            why = self._why_not(full, found)
            if why:
                left[path] = self._leave(path, found, why)
                drop.add(path)
            else:
                add[path] = found.st_size
        self._keep_within(add, left, drop)
        self._take_back(left, drop, before)
        return add, left, drop

    def _take_back(self, left: dict[str, Any], drop: set[str], before: dict[str, Any]) -> None:
        """Borrow big files that are again as HEAD has them: those need no storing."""
        fresh = [path for path, was in left.items() if was[1] and was != before.get(path)]
        if not fresh or not self.data["head"]:
            return
        out = self.repo.must(
            self.top, "ls-tree", "-z", "-l", self.data["head"], "--", *fresh, borrow=self.borrowed
        )
        lines = []
        for entry in os.fsdecode(out).split("\0")[:-1]:
            words, _, path = entry.partition("\t")
            mode, _, oid, size = words.split()
            full = os.path.join(self.top, path)
            if size != str(left[path][0]) or not self._is_blob(full, mode, oid):
                continue
            lines.append(f"{mode} {oid}\t{path}\0")
            del left[path]
            drop.discard(path)
        if lines:
            self._own_index()
            data = os.fsencode("".join(lines))
            self._git_or_stale("update-index", "-z", "--index-info", data=data)
            self.data["tree"] = ""

    def _is_blob(self, full: str, mode: str, oid: str) -> bool:
        if os.access(full, os.X_OK) != (mode == "100755"):
            return False
        done = self.repo.git(self.top, "hash-object", "--no-filters", "--", full)
        return done.text.strip() == oid

    def _keep_within(self, add: dict[str, int], left: dict[str, Any], drop: set[str]) -> None:
        """Leave out the biggest files when all together are over the cap."""
        total = sum(add.values())
        if total <= self.caps.max_new:
            return
        why = f"over {_mib(self.caps.max_new)} of new files at once"
        for path in sorted(add, key=lambda name: (-add[name], name)):
            if total <= self.caps.max_new:
                break
            total -= add.pop(path)
            try:
                left[path] = self._leave(path, os.lstat(os.path.join(self.top, path)), why)
            except OSError:
                pass
            drop.add(path)

    def _why_not(self, full: str, found: os.stat_result) -> str:
        special = kind_of(found.st_mode)
        if special:
            return special
        if stat.S_ISLNK(found.st_mode):
            return ""
        if found.st_size > self.caps.max_file:
            return f"over {_mib(self.caps.max_file)}"
        return "" if os.access(full, os.R_OK) else "unreadable"

    def _leave(self, path: str, found: os.stat_result, why: str) -> list[Any]:
        digest = ""
        if stat.S_ISREG(found.st_mode):
            digest = sample_digest(os.path.join(self.top, path), found.st_size)
        return [found.st_size, fingerprint(found), digest, why]

    def _beyond_link(self, path: str) -> bool:
        """Tell whether a folder on the way to a file of ours has become a link."""
        parent = os.path.dirname(path)
        while parent:
            if os.path.islink(os.path.join(self.top, parent)):
                return True
            parent = os.path.dirname(parent)
        return False

    # -- git's part

    def _own_index(self) -> None:
        if not self.index:
            self.index = self.remembered.copy()
            if self.data.get("tree") and not self.remembered.data:
                raise _Stale("another snapshot was quicker")

    def _git_or_stale(self, *args: str, borrow: Sequence[str] = (), data: bytes = b"") -> bytes:
        done = self.repo.git(self.top, *args, index=self.index, borrow=borrow, data=data)
        if done.code:
            raise _Stale(f"git {args[0]} in {self.top}: {complaint(done)}")
        return done.out

    def _drop(self, paths: Sequence[str]) -> None:
        if paths:
            self._git_or_stale("update-index", "-z", "--force-remove", "--stdin", data=_nul(paths))

    def _add(self, paths: Sequence[str], left: dict[str, Any]) -> None:
        """Store files; one that cannot be read is named and does not stop the others."""
        if not paths:
            return
        unsettled = {path: look(os.path.join(self.top, path)) for path in paths}
        args = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
        done = self.repo.git(self.top, *args, index=self.index, data=_nul(paths))
        if not done.code:
            self.data["unsettled"] = {**self.data["unsettled"], **unsettled}
        elif any(word in done.err for word in _OUR_FAULT):
            raise SnapshotError(f"the code cannot be kept: {complaint(done)}")
        elif b"Unable to process path" not in done.err:
            raise _Stale(f"git update-index in {self.top}: {complaint(done)}")
        elif len(paths) > 1:
            self._add(paths[: len(paths) // 2], left)
            self._add(paths[len(paths) // 2 :], left)
        elif os.path.lexists(os.path.join(self.top, paths[0])):
            left[paths[0]] = [0, [], "", "unreadable"]

    def _finish(self, before: dict[str, Any]) -> None:
        """Make the tree of the index and publish what we know."""
        if self.index and not self.data["tree"]:
            out = self.repo.git(self.top, "write-tree", "--missing-ok", index=self.index)
            if out.code:
                fault = f"git write-tree in {self.top}: {complaint(out)}"
                raise SnapshotError(fault) if b"No space" in out.err else _Stale(fault)
            self.data["tree"] = out.text.strip()
            self.data |= self._against_base()
            if self.data["tree"] != before.get("tree"):
                self.repo.remember(self.data["tree"])
        if self.index or self.data != before:
            self.remembered.publish(self.index or self.remembered.index, self.data)

    def _against_base(self) -> dict[str, list[str]]:
        sides: dict[str, list[str]] = {"A": [], "D": [], "M": []}
        if self.data["head"]:
            out = self.repo.must(
                self.top, "diff-tree", "-r", "-z", "--name-status", "--no-renames",
                "--ignore-submodules=all", self.data["head"], self.data["tree"],
                borrow=self.borrowed,
            )  # fmt: skip
            words = os.fsdecode(out).split("\0")
            left = self.data["left"]
            for letter, path in zip(words[::2], words[1::2], strict=False):
                side = "M" if letter not in sides or path in left else letter
                sides[side].append(path)
        return {"changed": sides["M"], "new": sides["A"], "deleted": sides["D"]}

    def _root(self) -> Root:
        data = self.data
        return Root(
            path=self.top,
            kind=self.kind,
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

    # -- afterwards

    def changed_since(self, root: Root) -> list[str]:
        """Name the files of the snapshot that differ now; stores nothing."""
        self.remembered.load()
        self.data = dict(self.remembered.data)
        suspects: list[str] = []
        try:
            if self.data.get("tree") == root.tree:
                suspects = self._suspects()
            if self.data.get("tree") != root.tree or suspects:
                self._own_index()
                self._drop(suspects)
                merge = ["-m", "-i"] if os.path.exists(self.index) else []
                self._git_or_stale("read-tree", *merge, root.tree, borrow=self.borrowed)
            out = self.repo.git(
                self.top, "ls-files", "-z", "-t", "-m", "-d",
                index=self.index or self.remembered.index, borrow=self.borrowed,
            )  # fmt: skip
            links = set(self.data.get("links", ()))
            return sorted(read_listing(out.out).touched - links)
        except _Stale as error:
            raise SnapshotError(str(error)) from None
        finally:
            if self.index:
                remove(self.index)
                remove(self.index + ".lock")


def _nul(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _mib(size: int) -> str:
    return f"{size / (1 << 20):g} MiB"


def _is_in(path: str, top: str) -> bool:
    return path.startswith(os.path.join(top, "")) and "/.git/" not in path
