"""What builds made in checkouts, kept so that the same tree is not built twice.

    FOLDER/KEY        what one build made: `files/` and, put there last, `made.json`
    FOLDER/KEY@PLACE  the same where files name the checkout: it is of use only there
    FOLDER/KEY.failed why a build failed
    FOLDER/KEY.lock   held while it is built; the kernel drops it when we are killed

Copies, never hard links: a program that writes into what was built must not reach what is kept.
Bytecode is left out. Python makes it anew, and by time and size alone it could be taken for that of
a file which another build wrote within the same second.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from stat import S_IFMT, S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from relaunch.jsontext import dumps, loads
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.checkouts.clean import put, remove_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Self

    Files = dict[str, os.stat_result]

_FICLONE = 0x40049409
_PIECE = 1 << 20
_CACHES = "__pycache__"


class Made(Record):
    """What one build did to a tree; paths are relative."""

    path: str
    """Where the files are kept."""
    gone: tuple[str, ...]
    folders: Mapping[str, int]
    """New ones, the outer first, with their permissions."""
    links: Mapping[str, str]
    files: tuple[str, ...]

    def put_into(self, tree: str) -> None:
        """Do the same to a tree that is as it was before the build. OSError: it is half done."""
        for name in self.gone:
            remove_all(os.fsencode(os.path.join(tree, name)))
        for name in self.folders:
            os.makedirs(os.path.join(tree, name), exist_ok=True)
        for name, target in self.links.items():
            remove_all(os.fsencode(os.path.join(tree, name)))
            os.symlink(target, os.path.join(tree, name))
        for name in self.files:
            target = os.path.join(tree, name)
            remove_all(os.fsencode(target))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            _copy(os.path.join(self.path, "files", name), target)
        for name in reversed([*self.folders]):
            os.chmod(os.path.join(tree, name), self.folders[name])
        forget_bytecode(tree, self.files)


class Builds:
    """All that is kept of the builds of one search; any process may use it."""

    def __init__(self, folder: str, most_bytes: int) -> None:
        """Keep it in `folder`, which need not exist, and no more than so many bytes."""
        self.folder = folder
        self._most_bytes = most_bytes

    def lock(self, key: str) -> Lock:
        """Wait until nobody else builds the same; a context."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        return Lock(os.path.join(self.folder, f"{key}.lock"))

    def find(self, key: str, tree: str) -> Made | None:
        """Return what is kept for a key: what names no checkout, or this one."""
        for name in (key, f"{key}@{_digest(tree)}"):
            path = os.path.join(self.folder, name)
            try:
                told = loads(read_if_there(os.path.join(path, "made.json")))
                os.utime(path)
            except (ValueError, OSError):
                continue
            told |= {"gone": tuple(told["gone"]), "files": tuple(told["files"])}
            return Made(path=path, **told)
        return None

    def keep(self, key: str, tree: str, before: Files, after: Files) -> None:
        """Keep what a build has changed in a tree. OSError if that cannot be done."""
        new = changed(before, after)
        if sum(after[name].st_size for name in new) > self._most_bytes:
            raise OSError(f"more than {self._most_bytes} bytes")
        temp = os.path.join(self.folder, f".new-{os.getpid()}-{time.monotonic_ns():x}")
        os.makedirs(os.path.join(temp, "files"), mode=0o700)
        try:
            names_place = self._fill(temp, tree, new, after, _gone(before, after))
            name = f"{key}@{_digest(tree)}" if names_place else key
            remove_all(os.fsencode(os.path.join(self.folder, name)))
            os.rename(temp, os.path.join(self.folder, name))
        except BaseException:
            remove_all(os.fsencode(temp))
            raise
        self._make_room(name)

    def _fill(self, temp: str, tree: str, new: list[str], after: Files, gone: list[str]) -> bool:
        """Copy what is new; tell whether any of it names the tree."""
        places = {tree, os.path.realpath(tree)}
        names_place = False
        links: dict[str, str] = {}
        files: list[str] = []
        for name in new:
            path, mode = os.path.join(tree, name), after[name].st_mode
            if S_ISLNK(mode):
                links[name] = os.readlink(path)
                names_place = names_place or any(place in links[name] for place in places)
            elif S_ISREG(mode):
                kept = os.path.join(temp, "files", name)
                os.makedirs(os.path.dirname(kept), exist_ok=True)
                _copy(path, kept)
                names_place = names_place or _has(kept, [os.fsencode(place) for place in places])
                files.append(name)
            elif not S_ISDIR(mode):
                raise OSError(f"{path} is neither a file nor a folder")
        folders = {name: S_IMODE(after[name].st_mode) for name in new if name not in {*links}}
        for name in files:
            del folders[name]
        told = {"gone": gone, "folders": folders, "links": links, "files": files}
        put(os.path.join(temp, "made.json"), dumps(told).encode("ascii"))
        return names_place

    def _make_room(self, newest: str) -> None:
        """Remove what was not used for longest, until the rest is within the limit."""
        kept = [name for name in _listed(self.folder) if "." not in name and name != newest]
        kept.sort(key=lambda name: _used(os.path.join(self.folder, name)), reverse=True)
        left = self._most_bytes - _bytes_below(os.path.join(self.folder, newest))
        for name in kept:
            left -= _bytes_below(os.path.join(self.folder, name))
            if left < 0:
                self._remove(name)

    def _remove(self, name: str) -> None:
        gone = os.path.join(self.folder, f".gone-{os.getpid()}-{time.monotonic_ns():x}")
        try:
            os.rename(os.path.join(self.folder, name), gone)
            remove_all(os.fsencode(gone))
        except OSError:
            pass  # another made the same room

    # --- what failed

    def failure(self, key: str) -> str:
        """Return why it failed before; nothing if it did not."""
        return read_if_there(os.path.join(self.folder, f"{key}.failed"))

    def keep_failure(self, key: str, why: str) -> None:
        """Remember why it failed."""
        put(os.path.join(self.folder, f"{key}.failed"), os.fsencode(why))

    def begin(self) -> None:
        """Remove what a kill left, and forget failures: their reason may be gone by now."""
        for name in _listed(self.folder):
            if name.startswith(".") or name.endswith((".failed", ".new", ".lock")):
                remove_all(os.fsencode(os.path.join(self.folder, name)))

    def remove(self) -> None:
        """Let all of it go."""
        remove_all(os.fsencode(self.folder))


class Lock:
    """Held by one process at a time."""

    def __init__(self, path: str) -> None:
        """Name the file."""
        self._path = path
        self._fd = -1

    def __enter__(self) -> Self:
        """Wait for it."""
        self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        return self

    def __exit__(self, *_: object) -> None:
        """Let others have it; a copy of us that still runs must not hold it any longer."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)
        os.close(self._fd)


def files_below(tree: str) -> Files:
    """Look at all below a tree but git's own files and bytecode, folders before what is in them."""
    found: Files = {}
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(os.path.join(tree, prefix)) as entries:
            for one in entries:
                name, is_folder = prefix + one.name, one.is_dir(follow_symlinks=False)
                is_bytecode = prefix.endswith(f"{_CACHES}/") and one.name.endswith(".pyc")
                if one.name == ".git" or is_bytecode:
                    continue
                if is_folder:
                    waiting.append(f"{name}/")
                if not is_folder or one.name != _CACHES:
                    found[name] = one.stat(follow_symlinks=False)
    return found


def forget_bytecode(tree: str, sources: Iterable[str]) -> None:
    """Remove the bytecode of files, that of an earlier one with the same time and size."""
    for name in sources:
        folder, _, file = name.rpartition("/")
        if file.endswith(".py"):
            cache = os.path.join(tree, folder, _CACHES)
            for one in _listed(cache):
                if one.partition(".")[0] == file[:-3] and one.endswith(".pyc"):
                    remove_all(os.fsencode(os.path.join(cache, one)))


def changed(before: Files, after: Files) -> list[str]:
    """Name what is new, or other than before."""
    return [name for name, seen in after.items() if _differs(before.get(name), seen)]


def _gone(before: Files, after: Files) -> list[str]:
    """Name what is there no more, or something else: a folder that was a file."""
    kinds = {name: S_IFMT(seen.st_mode) for name, seen in after.items()}
    return [name for name, seen in before.items() if kinds.get(name) != S_IFMT(seen.st_mode)]


def _differs(before: os.stat_result | None, after: os.stat_result) -> bool:
    """Tell whether a file was touched: whatever a program does to its time, this changes."""
    if before is None or before.st_mode != after.st_mode:
        return True
    return not S_ISDIR(after.st_mode) and (
        (before.st_ctime_ns, before.st_ino, before.st_size, before.st_mtime_ns)
        != (after.st_ctime_ns, after.st_ino, after.st_size, after.st_mtime_ns)
    )


def _copy(source: str, target: str) -> None:
    """Copy a file with its times, sharing its blocks where the disk can."""
    with open(source, "rb") as one, open(target, "xb") as other:
        try:
            fcntl.ioctl(other.fileno(), _FICLONE, one.fileno())
        except OSError:
            shutil.copyfileobj(one, other, _PIECE)
    shutil.copystat(source, target)


def _has(path: str, texts: list[bytes]) -> bool:
    """Tell whether a file holds one of the texts."""
    most = max(map(len, texts))
    with open(path, "rb") as file:
        end = b""
        while piece := file.read(_PIECE):
            if any(text in end + piece for text in texts):
                return True
            end = (end + piece)[-most:]
    return False


def _digest(text: str) -> str:
    from _blake2 import blake2b

    return blake2b(os.fsencode(text), digest_size=6).hexdigest()


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _used(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _bytes_below(folder: str) -> int:
    return sum(_sizes(folder))


def _sizes(folder: str) -> Iterator[int]:
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                yield os.lstat(os.path.join(here, name)).st_blocks * 512
            except OSError:
                pass  # going away just now
