"""A repository of ours beside one of the user's: its objects are borrowed, its work tree is ours.

    FOLDER/git      the repository; `.git` of the work tree names it
    FOLDER/index    what lies in the work tree, as far as we put it there: no program reaches it
    FOLDER/draft    the index of the next commit, until all of that lies there
    FOLDER/left     which files a filter of the user would have changed, and we could not
    FOLDER/tree     the work tree; that of a submodule is here only while it has no place
    FOLDER/subs/    the same again for each submodule

The index is the truth: what does not match it to the nanosecond is removed and written anew. It is
replaced last, so whatever is interrupted is repaired by the next commit that is gone to. Nothing is
remembered in between: each commit may be gone to by another process.
"""

from __future__ import annotations

import os
from stat import S_ISREG

from relaunch.jsontext import dumps, loads
from relaunch.textfile import read_if_there
from relaunch.trial.place.checkouts.clean import (
    clean,
    distrust,
    forget_gone,
    open_up,
    put,
    remove_all,
)
from relaunch.trial.place.checkouts.gitcall import ask, must
from relaunch.trial.place.checkouts.index import Index, written_otherwise
from relaunch.trial.place.checkouts.lender import submodule_lenders
from relaunch.trial.place.checkouts.pointers import fill, pointer_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from relaunch.trial.place.checkouts.lender import Lender

_FOLDERS = ("objects/info", "objects/pack", "refs", "info")
_ALSO_OURS = ("index", "info", "objects", "refs")


class Twin:
    """One repository and its work tree; `missing` is what could not be put into it."""

    def __init__(self, folder: str, work: str, lender: Lender) -> None:
        """Use `folder`, which need not exist, for the work tree `work`."""
        self.folder = folder
        self.work = os.fsencode(work)
        self.missing: list[str] = []
        self._lender = lender
        self._git_dir = os.path.join(folder, "git")
        self._kept = os.path.join(folder, "index")
        self._draft = os.path.join(folder, "draft")
        self._subs: dict[bytes, Twin] = {}

    def go_to(self, commit: str) -> None:
        """Put exactly the files of a commit into the work tree. GitFault, OSError or ValueError."""
        self.mend(commit)
        self._mend_work_tree()
        old = self._kept_index()
        for path in clean(self.work, old):
            self._park(path)
        new = self._write(commit, old)
        forget_gone(self.work, old, new)
        written = {path for path, entry in new.files.items() if not entry.is_stamped}
        distrust(self.work, written, new)
        filled, left = self._fill_pointers(new, written, self._kept_left())
        new.stamp(self.work, written | filled)
        self._publish(new, left)
        self.missing = sorted(left)
        self._fill_submodules(commit, new)

    def has(self, commit: str) -> bool:
        """Tell whether the user has a commit."""
        words = ("cat-file", "-e", f"{commit}^{{commit}}")
        return not ask(*words, env=self._env(self._kept), alone=True).code

    def tree_of(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        words = ("rev-parse", "--verify", "-q", f"{commit}^{{tree}}")
        return must(*words, env=self._env(self._kept)).decode("ascii").strip()

    def mend(self, commit: str) -> None:
        """Make our repository, and undo what a program did to it."""
        for name in _FOLDERS:
            os.makedirs(os.path.join(self._git_dir, name), mode=0o700, exist_ok=True)
        deciding = self._lender.deciding_files(self._git_dir)
        if any(self._read(name) != data for name, data in deciding.items()):
            remove_all(os.fsencode(self._kept))  # the same commit may mean other bytes by now
        ours = {"HEAD": f"{commit}\n".encode(), **deciding, **self._lender.other_files}
        for name, data in ours.items():
            if self._read(name) != data:
                put(os.path.join(self._git_dir, name), data)
        self._remove_foreign(ours)

    def _mend_work_tree(self) -> None:
        if os.path.islink(self.work):
            os.unlink(self.work)
        os.makedirs(self.work, exist_ok=True)
        open_up(self.work)
        link = os.fsencode(f"gitdir: {self._git_dir}\n")
        dot_git = os.path.join(os.fsdecode(self.work), ".git")
        if os.path.islink(dot_git) or os.fsencode(read_if_there(dot_git)) != link:
            put(dot_git, link)

    def _read(self, name: str) -> bytes:
        return os.fsencode(read_if_there(os.path.join(self._git_dir, name)))

    def _remove_foreign(self, ours: Iterable[str]) -> None:
        """Remove a merge under way, locks, tags, hooks: all that the last probe left of git's."""
        known = {*_ALSO_OURS, *ours}
        for folder in ("", "info/", "refs/"):
            for name in os.listdir(os.path.join(self._git_dir, folder)):
                if folder + name not in known:
                    remove_all(os.fsencode(os.path.join(self._git_dir, folder, name)))

    def _kept_index(self) -> Index:
        try:
            with open(self._kept, "rb") as file:
                data = file.read()
        except FileNotFoundError:
            data = b""
        return Index(data, sha256=self._lender.sha256)

    def _kept_left(self) -> dict[str, str] | None:
        """Return what was left to filters, file to object; None if that is not known.

        It may be that of a commit which was not reached: its files were written anew since.
        """
        try:
            left: dict[str, str] = loads(read_if_there(os.path.join(self.folder, "left")))
        except ValueError:
            return None
        return left

    def _write(self, commit: str, old: Index) -> Index:
        """Let git write what differs, with its rules for line ends and sparse trees."""
        for left in (self._draft, f"{self._draft}.lock", f"{self._kept}.lock"):
            remove_all(os.fsencode(left))
        new = self._read_tree(commit, self._kept)
        again = written_otherwise(old, new)
        for path in again:
            os.unlink(self.work + b"/" + path)
        return self._read_tree(commit, self._draft) if again else new

    def _read_tree(self, commit: str, index: str) -> Index:
        words = ("read-tree", "--reset", "-u", f"--index-output={self._draft}", commit)
        must("-C", os.fsdecode(self.work), *words, env=self._env(index))
        with open(self._draft, "rb") as file:
            return Index(file.read(), sha256=self._lender.sha256)

    def _publish(self, new: Index, left: dict[str, str]) -> None:
        put(os.path.join(self.folder, "left"), dumps(left).encode())
        put(os.path.join(self._git_dir, "index"), new.data)
        put(self._kept, new.data)

    def _env(self, index: str) -> dict[str, str]:
        place = {"GIT_DIR": self._git_dir, "GIT_WORK_TREE": os.fsdecode(self.work)}
        return {**place, "GIT_INDEX_FILE": index}

    # large files

    def _fill_pointers(
        self, new: Index, written: set[bytes], known: dict[str, str] | None
    ) -> tuple[set[bytes], dict[str, str]]:
        """Fill what the user has of git-lfs; return the files that were, and those left."""
        suspects = written if known is not None else new.files.keys()
        concerned = set(self._filtered(new, suspects))
        for name, oid in (known or {}).items():
            entry = new.files.get(os.fsencode(name))
            if entry is not None and entry.oid.hex() == oid:
                concerned.add(os.fsencode(name))
        filled = {path for path in concerned if self._fill(path, new)}
        left = {os.fsdecode(path): new.files[path].oid.hex() for path in concerned - filled}
        return filled, left

    def _fill(self, path: bytes, new: Index) -> bool:
        file = self.work + b"/" + path
        pointer = pointer_in(file, new.files[path].seen[3])
        return pointer is not None and fill(file, pointer, self._lender.large_files)

    def _filtered(self, new: Index, paths: Iterable[bytes]) -> list[bytes]:
        """Name the files that a filter of the user would have changed on their way out."""
        foreign = self._lender.foreign_filters
        suspects = [
            path
            for path in paths
            if S_ISREG(new.files[path].mode)
            and (foreign or pointer_in(self.work + b"/" + path, new.files[path].seen[3]))
        ]
        if not suspects:
            return []
        data = b"".join(path + b"\0" for path in suspects)
        words = ("-C", os.fsdecode(self.work), "check-attr", "--cached", "-z", "--stdin", "filter")
        told = must(*words, env=self._env(self._draft), data=data).split(b"\0")
        named = zip(told[::3], told[2::3], strict=False)
        return [path for path, driver in named if os.fsdecode(driver) in {"lfs", *foreign}]

    # submodules

    def _fill_submodules(self, commit: str, new: Index) -> None:
        if not new.submodules:
            return
        names = self._submodule_names(commit)
        for path, its_commit in new.submodules.items():
            shown = os.fsdecode(path)
            sub = self._sub(path, names.get(shown, ""), its_commit)
            if sub is None:
                self.missing.append(shown)
            else:
                self._unpark(path, sub)
                sub.go_to(its_commit)
                self.missing += [f"{shown}/{inner}" for inner in sub.missing]

    def _submodule_names(self, commit: str) -> dict[str, str]:
        words = ("config", "-z", "--blob", f"{commit}:.gitmodules", "--get-regexp", r"\.path$")
        told = ask(*words, env=self._env(self._kept), alone=True).text.split("\0")
        named = (one.partition("\n") for one in told)
        return {
            path: name.removeprefix("submodule.").removesuffix(".path") for name, _, path in named
        }

    def _sub(self, path: bytes, name: str, commit: str) -> Twin | None:
        known = self._subs.get(path)
        if known is not None and known.has(commit):
            return known
        for lender in submodule_lenders(self._lender, name, os.fsdecode(path)):
            work = os.path.join(os.fsdecode(self.work), os.fsdecode(path))
            sub = Twin(self._sub_folder(path), work, lender)
            sub.mend(commit)
            if sub.has(commit):
                self._subs[path] = sub
                return sub
        return None

    def _sub_folder(self, path: bytes) -> str:
        from hashlib import blake2b

        return os.path.join(self.folder, "subs", blake2b(path, digest_size=8).hexdigest())

    def _park(self, path: bytes) -> None:
        """Take a submodule's tree out of the way, for it may be a file in the next commit."""
        folder, standing = os.fsencode(self._sub_folder(path)), self.work + b"/" + path
        if os.path.isdir(folder):
            remove_all(folder + b"/tree")
            os.rename(standing, folder + b"/tree")
        else:
            remove_all(standing)

    def _unpark(self, path: bytes, sub: Twin) -> None:
        parked = os.path.join(os.fsencode(sub.folder), b"tree")
        if os.path.isdir(parked):
            remove_all(self.work + b"/" + path)
            os.rename(parked, self.work + b"/" + path)
