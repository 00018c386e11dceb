"""Tells what other programs changed in a folder since a small disk was laid over it.

The kernel stamps each change of a file with the clock of its file system (ctime), and nobody can
set that stamp. What bears one since then that is not ours is another program's.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.trial.place.disk.mapped import Mapped

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_STAMPS = 5
"""CLOCK_REALTIME_COARSE: file systems of this machine take their stamps from it."""
_LEAP_NS = 20_000_000
"""A stamp may be ahead of that clock by a tick of the kernel."""
_UNSURE_NS = 100_000_000
_WHOLE_NS = 2_000_000_000


class Moment(Record):
    """A moment on two clocks."""

    stamp_ns: int
    """The one of stamps, which can be set."""
    running_ns: int
    """One that is never set."""


def now() -> Moment:
    """Return this moment."""
    return Moment(
        stamp_ns=time.clock_gettime_ns(_STAMPS),
        running_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME),
    )


class Others:
    """What others did below one folder, on its file system; no link is followed."""

    def __init__(self, root: int, began: Moment, mapped: Mapped | None = None) -> None:
        """Since a moment."""
        self._mapped = mapped
        self._root = root
        self._mount = _mount_of(root)
        self._ours: dict[int, int] = {}
        """The stamp of each file that we changed ourselves, by inode."""
        self.changed_folders: set[int] = set()
        """Those that other programs changed, by inode: their rights and times stay."""
        self._moved_here: set[int] = set()
        """Those that may have come from elsewhere: what is in them bears the stamps of there."""
        was = os.fstat(root)
        self._looked_at = {was.st_ino}
        """Those that had their place when we looked, and those that we made."""
        self._since_ns = _since(root, began)
        self.is_root_changed = self.changed(was)

    def changed(self, about: os.stat_result) -> bool:
        """Tell whether another program made or changed it."""
        stamp = about.st_ctime_ns
        return stamp >= self._since_ns and self._ours.get(about.st_ino) != stamp

    def ours(self, about: os.stat_result) -> None:
        """Hear that we changed it ourselves, just now."""
        self._ours[about.st_ino] = about.st_ctime_ns

    def look_at(self, path: str) -> None:
        """See, before we change anything, what others did to the folders on the way to one.

        A folder that is moved, and the one that it is moved to, bear a stamp of then.
        """
        folder, is_moved, was_changed = os.dup(self._root), False, self.is_root_changed
        try:
            for name in path.split("/"):
                inner = self.enter(name, folder)
                about = os.fstat(inner)
                is_changed = self.changed(about)
                # Only now: a folder that is moved here meanwhile stamps the one that it is in, too.
                is_moved = is_moved or (
                    is_changed and (was_changed or self.changed(os.fstat(folder)))
                )
                os.close(folder)
                folder, was_changed = inner, is_changed
                self._looked_at.add(about.st_ino)
                if is_changed:
                    self.changed_folders.add(about.st_ino)
                if is_moved:
                    self._moved_here.add(about.st_ino)
        except OSError:
            pass
        finally:
            os.close(folder)

    def go_into(self, folder: int, *, is_new: bool = False) -> os.stat_result:
        """Hear that we will change what is in a folder, which may have its name since we looked."""
        about = os.fstat(folder)
        if is_new:
            self._looked_at.add(about.st_ino)
        elif about.st_ino not in self._looked_at:
            self._moved_here.add(about.st_ino)
        return about

    def enter(self, name: str, folder: int) -> int:
        """Open a folder in another one; an OSError for a link, and for another file system."""
        inner = os.open(name, FOLDER, dir_fd=folder)
        if _mount_of(inner) != self._mount:
            os.close(inner)
            raise OSError(errno.EXDEV, "another file system is mounted there")
        return inner

    def walk(self, path: str) -> int:
        """Open a folder somewhere below."""
        found = os.dup(self._root)
        for name in path.split("/") if path else ():
            inner = self.enter(name, found)
            os.close(found)
            found = inner
        return found

    def left_alone(self, name: str, folder: int) -> bool:
        """Tell whether no other program changed it or what is in it, or has it open to write."""
        if os.fstat(folder).st_ino in self._moved_here:
            return False
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
            return not self.changed(about) and self._left_alone_inside(about, name, folder)
        except FileNotFoundError:
            return False

    def still_left_alone(self, was: os.stat_result, name: str, folder: int) -> bool:
        """Tell so of what we just gave this name, which stamped it."""
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if contents(now) != contents(was):
            return False
        self.ours(now)
        return self._left_alone_inside(now, name, folder)

    def _left_alone_inside(self, about: os.stat_result, name: str, folder: int) -> bool:
        if stat.S_ISREG(about.st_mode):
            if _is_open_to_write(name, folder):
                return False
            return self._mapped is None or not self._mapped.may_be(about.st_ino)
        if not stat.S_ISDIR(about.st_mode):
            # Whether a pipe or a socket is in use is not to be seen without using it.
            return not (stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode))
        inner = self.enter(name, folder)
        try:
            return all(self.left_alone(one, inner) for one in os.listdir(inner))
        finally:
            os.close(inner)


def contents(about: os.stat_result) -> tuple[int, ...]:
    """Return what differs when another file has the name, or the file was written to."""
    return about.st_ino, about.st_mode, about.st_size, about.st_mtime_ns


def _is_open_to_write(name: str, folder: int) -> bool:
    """Tell whether somebody may still write to it: the kernel then grants no lease.

    Of a file of another owner it does not say so: that one counts as open.
    """
    how = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        file = os.open(name, how, dir_fd=folder)
    except PermissionError:
        return True
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno in (errno.EAGAIN, errno.EACCES)
    finally:
        os.close(file)
    return False


def _since(folder: int, began: Moment) -> int:
    """Return the stamp of that moment: by the clock of now where it was set, or is another's."""
    before = now()
    stamp = _stamp_of_now(folder)
    after = now()
    by_its_clock = stamp - (after.running_ns - began.running_ns)
    if stamp % 10**9 == 0:  # stamps of whole seconds, or of two
        return by_its_clock - _WHOLE_NS
    is_ours = before.stamp_ns <= stamp <= after.stamp_ns + _LEAP_NS
    if is_ours and abs(by_its_clock - began.stamp_ns) < _UNSURE_NS:
        return began.stamp_ns
    return by_its_clock - _UNSURE_NS


def _stamp_of_now(folder: int) -> int:
    """Return the time on the clock of its file system, which may be another machine's."""
    name = f".relaunch-{os.getpid()}-clock"
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    try:
        file = os.open(".", os.O_WRONLY | os.O_TMPFILE, 0o600, dir_fd=folder)
    except OSError:
        try:
            file = os.open(name, how, 0o600, dir_fd=folder)
        except OSError:
            return time.time_ns()
        os.unlink(name, dir_fd=folder)
    try:
        return os.fstat(file).st_ctime_ns
    finally:
        os.close(file)


def _mount_of(file: int) -> str:
    with open(f"/proc/self/fdinfo/{file}", encoding="ascii") as about:
        return next((line for line in about if line.startswith("mnt_id:")), "")
