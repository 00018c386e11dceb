"""Puts a small disk over a folder, in the mounts of this process alone.

The disk is a tmpfs of the asked size. It is mounted over the folder itself, so no folder is made
anywhere for it; as overlay, with the folder below it as it was. What is mounted further below is
laid over in the same way, and takes from the same disk.
"""

from __future__ import annotations

import os

from relaunch.proc.namespace import (
    BIND,
    NODEV,
    NOEXEC,
    NOSUID,
    RDONLY,
    RECURSIVE,
    REMOUNT,
    mount,
    mounts_below,
    pivot_root,
    unmount,
)
from relaunch.record import Record
from relaunch.trial.place.disk.foreign import rights_in, take_over
from relaunch.trial.place.disk.kernel_folders import kernel_folder
from relaunch.trial.place.disk.others import Moment
from relaunch.trial.place.disk.words import OVERLAY, TMPFS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from relaunch.recipe import SmallDisk

_AS_BEFORE = RDONLY | NOSUID | NODEV | NOEXEC
_ACLS = ("system.posix_acl_access", "system.posix_acl_default")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class NotThere(OSError):
    """What has the name is not the folder that was meant: no other way may be tried."""


class Layer(Record):
    """What was written to one folder, and the folder: both open."""

    written: int
    real: int
    attributes: str
    """How overlay calls its own attributes; empty where there are none."""
    seen: int
    """What the program sees: the folder with what was written over it."""
    began: Moment
    """Since when others may have changed the folder."""


class Mounted:
    """One small disk in the mounts of this process."""

    def __init__(
        self,
        disk: SmallDisk,
        others: Collection[str],
        *,
        in_user: bool,
        has_own: bool,
        began: Moment,
    ) -> None:
        """Open what is there, before anything is mounted; `others` are small disks themselves.

        `has_own`: this process has but one id, and files of others belong to nobody.
        """
        self.disk = disk
        self.way = ""
        self.layers: list[Layer] = []
        self._in_user = in_user
        self._has_own = has_own
        self.foreign = 0
        """Files of others that we may write to outside, and not here."""
        self._began = began
        self._real = _open(disk.path)
        if not _is_at(self._real, disk.path):  # a link was put there since it was named
            raise NotThere(f"{disk.path} is another folder now")
        if kind := kernel_folder(self._real):
            raise NotThere(f"{disk.path} is the kernel's ({kind}), not a folder of files")
        self._flags = os.fstatvfs(self._real).f_flag & _AS_BEFORE
        self._below = []
        self._is_around = any(is_inside(disk.path, other) for other in others)
        """Another small disk is laid over a folder around this one."""
        inner = [other for other in others if is_inside(other, disk.path)]
        for one in mounts_below(disk.path):
            if not any(is_inside(one, other) for other in inner):
                try:
                    real = _open(one)
                except (PermissionError, FileNotFoundError):  # we may not enter it, or it has gone
                    continue
                if _is_at(
                    real, one
                ):  # else it is hidden by another mount, with a link at its place
                    self._below.append((one, real))
        self._over: list[str] = []
        self._new_root = ""
        """Where what will be the root is until then: nothing can be seen that is put over `/`."""
        self.root = -1
        """The tmpfs."""

    @property
    def size_bytes(self) -> int:
        """What fits on it: whole pages; without a limit, what fits into the folder and memory."""
        if self.disk.size_bytes is not None:
            return -(-self.disk.size_bytes // _PAGE) * _PAGE
        real = os.fstatvfs(self._real)
        memory = os.sysconf("SC_PHYS_PAGES") * _PAGE // 2
        return max(min(real.f_bavail * real.f_frsize, memory) // _PAGE, 1) * _PAGE

    def where(self) -> str:
        """Say where the folder is now, if somebody moved it."""
        now = os.readlink(_path(self._real))
        return "" if now in (self.disk.path, "/") else now

    def is_empty(self) -> bool:
        """Tell whether nothing is in the folder, so that nothing needs to be seen of it."""
        try:
            with os.scandir(_path(self._real)) as entries:
                return next(entries, None) is None
        except OSError:
            return False

    def make(self, way: str) -> None:
        """Put it over the folder in one way; an OSError leaves nothing of it."""
        try:
            self._mount(way)
            self._prove(way)
        except OSError:
            self._take_away()
            raise
        if self._new_root:
            pivot_root(self._new_root)
            self._new_root = ""
        self.way = way

    def _mount(self, way: str) -> None:
        path = self.disk.path
        if way == TMPFS and self._is_around and not os.path.isdir(path):  # hidden by that one
            os.makedirs(path)
        place = path if path != "/" else _some_folder()
        # How many inodes are ours is known only when all is made.
        self._put("tmpfs", place, "tmpfs", self._flags, f"size={self.size_bytes},mode=700")
        self.root = _open(place, os.O_RDONLY)
        if way == TMPFS:
            _look_like(self.root, self._real)
            self.layers = [self._layer(self.root, self._real, "", seen=self.root)]
            return
        if path == "/":
            self._new_root = _path(self._folder("root"))
        self._lay(path, self._real)
        kept = ""
        for below, real in self._below:
            if kept and is_inside(below, kept):
                continue
            if kernel_folder(real):  # stays what it is
                self._put(_path(real), self._new_root + below, "", BIND | RECURSIVE)
                kept = below
            else:
                self._lay_below(below, real)

    def _lay(self, path: str, real: int) -> None:
        """Lay what is written over what is there."""
        if self._in_user and any(is_inside(below, path) for below, _ in self._below):
            # The kernel shows nobody without root what somebody else has hidden by a mount.
            raise OSError("there are mounts below it, and without root they cannot be left out")
        number = len(self.layers)
        flags = os.fstatvfs(real).f_flag & _AS_BEFORE
        upper, work = (self._folder(f"{name}{number}") for name in ("written", "work"))
        _look_like(upper, real)
        if self._has_own:
            self.foreign += take_over(upper, real)
        own = "userxattr" if self._in_user else "redirect_dir=on,metacopy=off"
        places = f"lowerdir={_path(real)},upperdir={_path(upper)},workdir={_path(work)}"
        self._put("overlay", self._new_root + path, "overlay", flags, f"{places},index=off,{own}")
        os.close(work)
        if path == "/":  # by its name: an open folder never shows what was put over it
            self._new_root = _path(os.open("root", os.O_PATH, dir_fd=self.root))
        seen = os.open(self._new_root + path, os.O_PATH)
        attributes = "user.overlay." if self._in_user else "trusted.overlay."
        self.layers.append(self._layer(upper, real, attributes, seen=seen))

    def _layer(self, written: int, real: int, attributes: str, *, seen: int) -> Layer:
        return Layer(
            written=written, real=real, attributes=attributes, seen=seen, began=self._began
        )

    def _lay_below(self, path: str, real: int) -> None:
        """Lay over another file system below; where that cannot be, nothing is written there."""
        try:
            if not os.path.isdir(_path(real)):
                raise NotADirectoryError(path)
            self._lay(path, real)
        except NotThere:
            raise
        except OSError:
            self._put(_path(real), self._new_root + path, "", BIND | RECURSIVE)
            flags = os.fstatvfs(real).f_flag & _AS_BEFORE
            mount("none", self._new_root + path, flags=flags | REMOUNT | BIND | RDONLY)

    def _folder(self, name: str) -> int:
        os.mkdir(name, 0o700, dir_fd=self.root)
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.root)

    def _put(self, source: str, target: str, kind: str, flags: int, options: str = "") -> None:
        mount(source, target, kind, flags, options)
        if not target.startswith("/proc/self/fd/"):
            found = _open(target)
            if not _is_at(found, target):
                raise NotThere(f"{target} is another folder now")
            os.close(found)
        self._over.append(target)

    def _take_away(self) -> None:
        while self._over:
            unmount(self._over.pop())
        self.layers = []

    def _prove(self, way: str) -> None:
        """See that it is as large as asked, shows what is there, and keeps what is written."""
        path = self._new_root + self.disk.path
        seen = os.statvfs(path)
        if seen.f_blocks * seen.f_frsize != self.size_bytes:
            raise OSError(f"it looks {seen.f_blocks * seen.f_frsize} bytes large")
        if way == OVERLAY:
            with os.scandir(_path(self._real)) as entries:
                first = next(entries, None)
            if first is not None:
                os.lstat(os.path.join(path, first.name))
        if self._flags & RDONLY or not os.access(path, os.W_OK):
            return
        name = f".relaunch-{os.getpid()}"
        os.close(os.open(os.path.join(path, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(os.path.join(path, name))
        try:
            os.lstat(os.path.join(_path(self._real), name))
        except FileNotFoundError:
            return
        raise OSError("what is written reaches the folder")

    def settle(self) -> None:
        """Have as many inodes free as asked, once all that is ours has its own."""
        if self.disk.inodes is not None:
            seen = os.fstatvfs(self.root)
            inodes = self.disk.inodes + seen.f_files - seen.f_ffree
            options = f"size={self.size_bytes},nr_inodes={inodes}"
            mount("tmpfs", _path(self.root), "tmpfs", REMOUNT | self._flags, options)
            free = os.statvfs(self.disk.path).f_ffree
            if free != self.disk.inodes:
                raise OSError(f"{free} inodes are free")


def _some_folder() -> str:
    """Name a folder without mounts, to put something on that is not seen there later."""
    with os.scandir("/") as entries:
        folders = [one.path for one in entries if one.is_dir(follow_symlinks=False)]
    taken = {f"/{one.split('/')[1]}" for one in mounts_below("/")}
    return next(path for path in folders if path not in taken)


def show_through(paths: Sequence[str], disks: Sequence[Mounted]) -> list[tuple[str, int]]:
    """Open the folders of ours that will be hidden, for `bind`."""
    inside = [path for path in paths if any(is_inside(path, one.disk.path) for one in disks)]
    return [(path, _open(path)) for path in inside]


def bind(opened: Sequence[tuple[str, int]]) -> None:
    """Let these folders be what they are outside."""
    for path, real in opened:
        os.makedirs(path, exist_ok=True)
        mount(_path(real), path, "", BIND | RECURSIVE)
        os.close(real)


def is_inside(path: str, folder: str) -> bool:
    """Tell whether a path is the folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _open(path: str, how: int = os.O_PATH) -> int:
    return os.open(path, how)


def _is_at(fd: int, path: str) -> bool:
    """Tell whether it was opened there, and no link was on the way."""
    return os.readlink(_path(fd)) == path


def _path(fd: int) -> str:
    """Return a name without commas and colons, which is true whatever is mounted over it."""
    return f"/proc/self/fd/{fd}"


def _look_like(new: int, real: int) -> None:
    """Give a new folder the owner, rights and lists of the real one, as far as that is allowed."""
    was = os.stat(_path(real))
    mode = was.st_mode & 0o7777
    try:
        os.chown(_path(new), was.st_uid, was.st_gid)
    except OSError:
        if was.st_uid != os.geteuid():  # they have no name here: what we may there, we may here
            mode = mode & ~0o700 | rights_in(_path(real)) << 6
    os.chmod(_path(new), mode)
    for name in _ACLS:
        try:
            os.setxattr(_path(new), name, os.getxattr(_path(real), name))
        except OSError:
            pass
