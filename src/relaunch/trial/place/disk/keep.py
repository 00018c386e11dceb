"""Brings what was written to a small disk to the real folder: new, changed and deleted files.

Each file comes whole or not at all. What cannot be brought is told; the rest comes all the same.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.trial.place.disk.mounted import Layer

_MOST_AT_ONCE = 1 << 30


class Keeping:
    """One layer on its way to its folder: `run()` once."""

    def __init__(self, layer: Layer, *, owners: bool) -> None:
        """Without `owners`, files belong to whom the folder says."""
        self._layer = layer
        self._owners = owners
        self._root = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=layer.real)
        self._aside: dict[str, str] = {}
        """Moved folders by where they are now: the name under which they wait."""
        self._first: dict[int, str] = {}
        """Files with several names, by inode: the first of them."""
        self._names = 0
        self.files = 0
        self.bytes = 0
        self.deleted = 0
        self.problems: list[str] = []

    def run(self) -> None:
        """Bring everything."""
        moved: list[tuple[str, str]] = []
        self._find_moved(self._layer.written, "", "", moved)
        for origin, now in sorted(moved, key=lambda one: -one[0].count("/")):
            self._aside[now] = self._new_name()
            os.rename(origin, self._aside[now], src_dir_fd=self._root, dst_dir_fd=self._root)
        self._bring_all(self._layer.written, self._root, "")
        self._same(self._layer.written, self._root)
        os.close(self._root)

    def _find_moved(
        self, folder: int, at: str, was: str | None, moved: list[tuple[str, str]]
    ) -> None:
        """List folders that were there and have another name now: overlay notes it on them."""
        if self._layer.attributes != "trusted.overlay.":
            return
        for name in os.listdir(folder):
            try:
                inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
            except OSError:
                continue
            now = os.path.join(at, name)
            below = None if was is None or self._own(inner, "opaque") else os.path.join(was, name)
            if redirect := os.fsdecode(self._own(inner, "redirect")):
                absolute = redirect.startswith("/")
                below = redirect[1:] if absolute else os.path.join(was or "", redirect)
                moved.append((below, now))
            self._find_moved(inner, now, below, moved)
            os.close(inner)

    def _own(self, file: int, name: str) -> bytes:
        try:
            return os.getxattr(file, f"{self._layer.attributes}{name}")
        except OSError:
            return b""

    def _bring_all(self, written: int, real: int, at: str) -> None:
        for name in sorted(os.listdir(written)):
            try:
                self._bring(name, written, real, os.path.join(at, name))
            except OSError as error:
                self.problems.append(f"{os.path.join(at, name)}: {error.strerror or error}")

    def _bring(self, name: str, written: int, real: int, path: str) -> None:
        about = os.stat(name, dir_fd=written, follow_symlinks=False)
        if stat.S_ISCHR(about.st_mode) and about.st_rdev == 0:  # overlay's sign of a deleted file
            self.deleted += _remove(name, real)
        elif stat.S_ISDIR(about.st_mode):
            self._bring_folder(name, written, real, path)
        elif first := self._first.get(about.st_ino):
            new = self._new_name()
            os.link(first, new, src_dir_fd=self._root, dst_dir_fd=real, follow_symlinks=False)
            self._put(new, name, real)
        else:
            self._bring_file(name, written, real, about)
            if about.st_nlink > 1:
                self._first[about.st_ino] = path

    def _bring_folder(self, name: str, written: int, real: int, path: str) -> None:
        how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        source = os.open(name, how, dir_fd=written)
        aside = self._aside.get(path)
        if aside:
            _remove(name, real)
            os.rename(aside, name, src_dir_fd=self._root, dst_dir_fd=real)
        elif self._own(source, "opaque") or not _is_folder(name, real):
            _remove(name, real)
            os.mkdir(name, 0o700, dir_fd=real)
        target = os.open(name, how, dir_fd=real)
        self._bring_all(source, target, path)
        self._same(source, target)
        os.close(source)
        os.close(target)

    def _bring_file(self, name: str, written: int, real: int, about: os.stat_result) -> None:
        new = self._new_name()
        if stat.S_ISLNK(about.st_mode):
            os.symlink(os.readlink(name, dir_fd=written), new, dir_fd=real)
            if self._owners:
                os.chown(new, about.st_uid, about.st_gid, dir_fd=real, follow_symlinks=False)
        elif stat.S_ISREG(about.st_mode):
            self._copy(name, written, new, real)
        elif stat.S_ISSOCK(about.st_mode):
            return  # who listened there is gone
        else:
            os.mknod(new, about.st_mode, about.st_rdev, dir_fd=real)
        self._put(new, name, real)
        self.files += 1

    def _copy(self, name: str, written: int, new: str, real: int) -> None:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=written)
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        target = os.open(new, how, 0o600, dir_fd=real)
        try:
            self.bytes += _copy_data(source, target)
            self._same(source, target)
        except OSError:
            os.unlink(new, dir_fd=real)
            raise
        finally:
            os.close(source)
            os.close(target)

    def _put(self, new: str, name: str, real: int) -> None:
        """Give a new file its name; a folder of that name makes room."""
        if _is_folder(name, real):
            _remove(name, real)
        os.rename(new, name, src_dir_fd=real, dst_dir_fd=real)

    def _same(self, source: int, target: int) -> None:
        """Give what was brought the owner, rights, attributes and times it had."""
        about = os.stat(source)
        if self._owners:
            os.chown(target, about.st_uid, about.st_gid)
        elif os.stat(target).st_uid != os.geteuid():
            return  # a folder of others, in which we may write
        os.chmod(target, stat.S_IMODE(about.st_mode))
        for name in os.listxattr(source):
            if not (self._layer.attributes and name.startswith(self._layer.attributes)):
                try:
                    os.setxattr(target, name, os.getxattr(source, name))
                except OSError:  # the file system of the folder has none
                    pass
        os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))

    def _new_name(self) -> str:
        self._names += 1
        return f".relaunch-{os.getpid()}-{self._names}"


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _remove(name: str, folder: int) -> int:
    """Delete a file, or a folder with all that is in it; return how many were deleted."""
    if not _is_folder(name, folder):
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            return 0
        return 1
    inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)
    try:
        count = sum(_remove(one, inner) for one in os.listdir(inner))
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=folder)
    return count


def _copy_data(source: int, target: int) -> int:
    """Copy what is in a file, and leave its holes holes; return how many bytes were copied."""
    size, at, count = os.fstat(source).st_size, 0, 0
    while at < size:
        try:
            begin = os.lseek(source, at, os.SEEK_DATA)
        except OSError:  # only a hole is left
            break
        end = os.lseek(source, begin, os.SEEK_HOLE)
        os.lseek(target, begin, os.SEEK_SET)
        while begin < end and (sent := _send(source, target, begin, end - begin)):
            begin, count = begin + sent, count + sent
        at = end
    os.ftruncate(target, size)
    return count


def _send(source: int, target: int, at: int, count: int) -> int:
    return os.sendfile(target, source, at, min(count, _MOST_AT_ONCE))
