"""Brings what was written to a small disk to the real folder: new, changed and deleted files.

Each file comes whole or not at all. What cannot be brought is told; the rest comes all the same.
What another program made, changed or has open there since the disk was made keeps its name, and so
does what the program could not see: what was written comes beside it, with `.kept` behind its name.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from relaunch.proc.renaming import exchange, rename_new
from relaunch.trial.place.disk.others import FOLDER, Others, contents
from relaunch.trial.place.disk.unfinished import new_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.trial.place.disk.mapped import Mapped
    from relaunch.trial.place.disk.mounted import Layer

_MOST_AT_ONCE = 1 << 30
_MOST_NAMES = 1000
_LONGEST_BYTES = 255 - len(f".kept-{_MOST_NAMES}")


class Keeping:
    """One layer on its way to its folder: `run()` once."""

    def __init__(self, layer: Layer, *, owners: bool, mapped: Mapped | None = None) -> None:
        """Without `owners`, files belong to whom the folder says; `mapped` are other programs'."""
        self._mapped = mapped
        self._layer = layer
        self._owners = owners
        self._root = os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=layer.real)
        self._aside: dict[str, tuple[str, str]] = {}
        """Moved folders by where they are now: the name under which they wait, where they were."""
        self._first: dict[tuple[int, int], str] = {}
        """Files with several names, by device and inode: the first of them."""
        self._stay: set[str] = set()
        """Folders that were moved, and stay all the same."""
        self._names = time.time_ns()
        """In a container the next one has the same id: its names must be others."""
        self.files = 0
        self.bytes = 0
        self.deleted = 0
        self.problems: list[str] = []
        self.conflicts: list[str] = []
        """What was changed here and by another program: where both are."""
        self.beside: list[str] = []
        """What was there all the time, and stays: where what was written is."""

    def run(self) -> None:
        """Bring everything."""
        if not os.listdir(self._layer.written) and _mode(self._layer.written) == _mode(self._root):
            return
        self._others = Others(self._root, self._layer.began, self._mapped)
        was = _rights(self._root)
        moved: list[tuple[str, str]] = []
        self._look(self._layer.written, "", "", moved)
        self._set_aside(sorted(moved, key=lambda one: -one[0].count("/")))
        self._bring_all(self._layer.written, self._root, "", "")
        self._put_back()
        is_theirs = self._others.is_root_changed
        self._finish(self._layer.written, self._root, ".", was, is_theirs=is_theirs)
        os.close(self._root)

    def _look(self, folder: int, at: str, was: str | None, moved: list[tuple[str, str]]) -> None:
        """See which folders others changed, and which have another name now: overlay notes it."""
        for name in os.listdir(folder):
            try:
                inner = os.open(name, FOLDER, dir_fd=folder)
            except OSError:
                continue
            now = os.path.join(at, name)
            below = None if was is None or self._own(inner, "opaque") else os.path.join(was, name)
            if redirect := os.fsdecode(self._own(inner, "redirect")):
                absolute = redirect.startswith("/")
                below = redirect[1:] if absolute else os.path.join(was or "", redirect)
                moved.append((below, now))
            if below is not None:
                self._others.look_at(below)
            self._look(inner, now, below, moved)
            os.close(inner)

    def _own(self, file: int, name: str) -> bytes:
        try:
            return os.getxattr(file, f"{self._layer.attributes}{name}")
        except OSError:
            return b""

    # --- moved folders ----------------------------------------------------------------------------

    def _set_aside(self, moved: list[tuple[str, str]]) -> None:
        """Let moved folders wait under another name; where others are at work there, a copy."""
        free = []
        for origin, now in moved:
            try:
                if self._is_left_alone(origin):
                    free.append((origin, now))
                    continue
                # Before any folder is moved: what is seen on the disk is put together of them.
                self._aside[now] = (self._copy_seen(now), "")
                self._stay.add(origin)
                self.conflicts.append(f"{origin} stays, and {now} is a copy")
            except OSError as error:
                self.problems.append(f"{now}: {error.strerror or error}")
        for origin, now in free:
            try:
                self._move_aside(origin, now)
            except OSError as error:
                self.problems.append(f"{now}: {error.strerror or error}")

    def _is_left_alone(self, path: str) -> bool:
        head, tail = os.path.split(path)
        try:
            parent = self._others.walk(head)
        except OSError:
            return False
        try:
            return self._others.left_alone(tail, parent)
        finally:
            os.close(parent)

    def _copy_seen(self, now: str) -> str:
        """Copy a folder as the program saw it."""
        source = os.open(now, FOLDER, dir_fd=self._layer.seen)
        new = self._new_name()
        os.mkdir(new, 0o700, dir_fd=self._root)
        target = self._others.enter(new, self._root)
        self._bring_all(source, target, now, new)
        self._same(source, target)
        self._others.ours(os.fstat(target))
        os.close(source)
        os.close(target)
        return new

    def _move_aside(self, origin: str, now: str) -> None:
        head, tail = os.path.split(origin)
        parent = self._others.walk(head)
        self._others.go_into(parent)
        if new := self._set_apart(tail, parent, origin, to=self._root):
            self._aside[now] = (new, origin)
        else:
            self._stay.add(origin)
            self.conflicts.append(f"{origin} stays, and {now} has only what is new in it")
        for folder in (parent, self._root):
            self._others.ours(os.fstat(folder))
        os.close(parent)

    def _put_back(self) -> None:
        """Give folders that wait, and whose new place could not be made, a name again."""
        for now, (new, origin) in self._aside.items():
            head, tail = os.path.split(origin or os.path.basename(now))
            try:
                parent = self._others.walk(head)
                rename_new(new, tail, src_dir_fd=self._root, dst_dir_fd=parent)
                os.close(parent)
            except OSError:
                self._beside(new, self._root, tail, self._root, origin or now)

    # --- one after the other ----------------------------------------------------------------------

    def _bring_all(self, written: int, real: int, at: str, place: str) -> None:
        """Bring what is in one folder, `at` on the disk, to `place` in the real folder."""
        for name in sorted(os.listdir(written)):
            try:
                self._bring(name, written, real, os.path.join(at, name), place)
            except OSError as error:
                self.problems.append(f"{os.path.join(at, name)}: {error.strerror or error}")

    def _bring(self, name: str, written: int, real: int, path: str, place: str) -> None:
        about = os.stat(name, dir_fd=written, follow_symlinks=False)
        if self._is_deleted(about):
            self._take_away(name, real, path)
        elif stat.S_ISDIR(about.st_mode):
            self._bring_folder(name, written, real, path, place)
        elif not stat.S_ISSOCK(about.st_mode):  # who listened there is gone
            new = self._new_name()
            file = about.st_dev, about.st_ino
            is_one_more = self._link(self._first.get(file, ""), new, real)
            count = 0 if is_one_more else self._make(name, written, new, real, about)
            try:
                final = self._put_new(new, name, real, path)
            except FileNotFoundError:  # another program saved over it while it had the name
                count = self._make(name, written, new, real, about)
                final = self._beside(new, real, name, real, path)
            self.files += not is_one_more
            self.bytes += count
            if about.st_nlink > 1:
                self._first[file] = os.path.join(place, final)

    def _is_deleted(self, about: os.stat_result) -> bool:
        """Tell overlay's sign of a deleted file; without overlay it is a device like others."""
        is_sign = stat.S_ISCHR(about.st_mode) and about.st_rdev == 0
        return is_sign and bool(self._layer.attributes)

    def _bring_folder(self, name: str, written: int, real: int, path: str, place: str) -> None:
        source = os.open(name, FOLDER, dir_fd=written)
        is_new, final = True, name
        if path in self._aside:
            new, _ = self._aside[path]
            final = self._put(new, self._root, name, real, path)
            del self._aside[path]
        elif self._own(source, "opaque") or not _is_folder(name, real):
            new = self._new_name()
            os.mkdir(new, 0o700, dir_fd=real)
            final = self._put_new(new, name, real, path)
        else:
            is_new = False
        target = self._others.enter(final, real)
        was = _rights(target)
        about = self._others.go_into(target, is_new=is_new)
        is_changed = about.st_ino in self._others.changed_folders or self._others.changed(about)
        self._bring_all(source, target, path, os.path.join(place, final))
        is_theirs = is_changed and not is_new
        if is_new or is_theirs or self._layer.attributes:  # else it is one that was not seen
            self._finish(source, target, path, was, is_theirs=is_theirs, is_new=is_new)
        os.close(source)
        os.close(target)

    def _finish(
        self, source: int, target: int, path: str, was: tuple[object, ...], *, is_theirs: bool,
        is_new: bool = False,
    ) -> None:  # fmt: skip
        """Give a folder its rights and times, once all is in it; since they were so, others may."""
        if not is_theirs and _rights(target) == was:
            self._same(source, target)
            if is_new:  # else another program may have moved it
                self._others.ours(os.fstat(target))
        elif _mode(source) != _mode(target):
            self.conflicts.append(f"{path} has the rights that the other program left")

    def _link(self, first: str, new: str, real: int) -> bool:
        """Give a file that was brought one more name; False where it cannot be."""
        if not first:
            return False
        head, tail = os.path.split(first)
        try:
            folder = self._others.walk(head)
        except OSError:
            return False
        try:
            if self._others.changed(os.stat(tail, dir_fd=folder, follow_symlinks=False)):
                return False
            os.link(tail, new, src_dir_fd=folder, dst_dir_fd=real, follow_symlinks=False)
            self._others.ours(os.stat(new, dir_fd=real, follow_symlinks=False))
        except OSError:
            return False
        finally:
            os.close(folder)
        return True

    def _make(self, name: str, written: int, new: str, real: int, about: os.stat_result) -> int:
        """Make what a file will be; return how many bytes were copied."""
        if stat.S_ISLNK(about.st_mode):
            os.symlink(os.readlink(name, dir_fd=written), new, dir_fd=real)
            if self._owners:
                os.chown(new, about.st_uid, about.st_gid, dir_fd=real, follow_symlinks=False)
        elif stat.S_ISREG(about.st_mode):
            return self._copy(name, written, new, real)
        else:
            os.mknod(new, about.st_mode, about.st_rdev, dir_fd=real)
        return 0

    def _copy(self, name: str, written: int, new: str, real: int) -> int:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=written)
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        target = os.open(new, how, 0o600, dir_fd=real)
        try:
            count = _copy_data(source, target)
            self._same(source, target)
            self._others.ours(os.fstat(target))
            if _is_there(name, real):  # what it replaces is gone for good
                os.fdatasync(target)
            return count
        except OSError:
            os.unlink(new, dir_fd=real)
            raise
        finally:
            os.close(source)
            os.close(target)

    # --- names ------------------------------------------------------------------------------------

    def _put(self, new: str, new_in: int, name: str, real: int, path: str) -> str:
        """Give what is new its name, or one beside what another program has there; return it."""
        made = os.stat(new, dir_fd=new_in, follow_symlinks=False)
        is_put = self._replace(new, new_in, name, real, path)
        final = name if is_put else self._beside(new, new_in, name, real, path)
        now = os.stat(final, dir_fd=real, follow_symlinks=False)
        if contents(now) == contents(made):
            self._others.ours(now)
        return final

    def _put_new(self, new: str, name: str, real: int, path: str) -> str:
        made = os.stat(new, dir_fd=real, follow_symlinks=False)
        try:
            return self._put(new, real, name, real, path)
        except OSError as error:
            if os.stat(new, dir_fd=real, follow_symlinks=False).st_ino != made.st_ino:
                raise  # it is what was to be replaced
            try:
                return self._beside(new, real, name, real, path, error.strerror or "")
            except OSError:
                self._delete(new, real)
                raise error from None

    def _replace(self, new: str, new_in: int, name: str, real: int, path: str) -> bool:
        try:
            was = os.stat(name, dir_fd=real, follow_symlinks=False)
        except FileNotFoundError:
            try:
                rename_new(new, name, src_dir_fd=new_in, dst_dir_fd=real)
            except FileExistsError:
                return False
            return True
        if not self._may_go(name, real):
            return False
        made = os.open(new, os.O_PATH | os.O_NOFOLLOW, dir_fd=new_in)
        try:
            self._swap(new, new_in, name, real, path)
            if self._has_deleted(was, new, new_in, path):
                return True
            self._give_back(made, new, new_in, name, real, path)
            return False
        finally:
            os.close(made)

    def _has_deleted(self, was: os.stat_result, new: str, new_in: int, path: str) -> bool:
        """Delete what was replaced, and is called `new`; False where others are at work on it."""
        try:
            if not self._others.still_left_alone(was, new, new_in):
                return False
        except OSError:
            return False
        try:
            self._delete(new, new_in)
        except OSError as error:  # what is left of it has a name of ours
            self.problems.append(f"{path}: what it replaced is in {new}: {error.strerror}")
            return True
        return not _is_there(new, new_in)

    def _give_back(self, made: int, new: str, new_in: int, name: str, real: int, path: str) -> None:
        """Give another program's file its name again: the last one, as it may still be saving.

        It may have saved over what we `made`, which then is no more.
        """
        before: os.stat_result | None = None
        while True:
            given = os.stat(new, dir_fd=new_in, follow_symlinks=False)
            self._swap(new, new_in, name, real, path)
            about = os.stat(new, dir_fd=new_in, follow_symlinks=False)
            if os.path.samestat(about, os.fstat(made)):
                return
            if before and os.path.samestat(about, before):  # they saved over this one too
                self._let_go(before, new, new_in, path)
                return
            before = given

    def _let_go(self, was: os.stat_result, new: str, new_in: int, path: str) -> None:
        """Delete what another program saved over, unless it was written to since it `was` so."""
        if self._others.still_left_alone(was, new, new_in):
            self._delete(new, new_in)
            return
        left = self._new_name()
        rename_new(new, left, src_dir_fd=new_in, dst_dir_fd=new_in)
        self.conflicts.append(f"{path} was made anew, {left} is what was there")

    def _swap(self, new: str, new_in: int, name: str, real: int, path: str) -> None:
        try:
            exchange(new, name, src_dir_fd=new_in, dst_dir_fd=real)
        except OSError:  # a file system that cannot: one step after the other
            old = self._new_name()
            os.rename(name, old, src_dir_fd=real, dst_dir_fd=real)
            try:
                rename_new(new, name, src_dir_fd=new_in, dst_dir_fd=real)
            except OSError:
                self._rename_back(old, real, name, real, path)
                raise
            rename_new(old, new, src_dir_fd=real, dst_dir_fd=new_in)

    def _may_go(self, name: str, real: int) -> bool:
        """Tell whether the program saw what is there, and nobody else is at work on it."""
        return bool(self._layer.attributes) and self._others.left_alone(name, real)

    def _beside(self, new: str, new_in: int, name: str, real: int, path: str, why: str = "") -> str:
        """Give it a name beside one that stays, and say `why` if not for another program."""
        stem = os.fsdecode(os.fsencode(name)[:_LONGEST_BYTES])
        for number in range(1, _MOST_NAMES):
            final = f"{stem}.kept" if number == 1 else f"{stem}.kept-{number}"
            try:
                rename_new(new, final, src_dir_fd=new_in, dst_dir_fd=real)
            except FileExistsError:
                continue
            if self._is_of_others(name, real) or (self._layer.attributes and not why):
                self.conflicts.append(f"{path} is the other program's, {final} this one's")
            else:
                why = f"cannot be replaced ({why})" if why else "was there and was not seen"
                self.beside.append(f"{path} {why}: what was written is {final}")
            return final
        raise FileExistsError(f"{_MOST_NAMES} are there already")

    def _is_of_others(self, name: str, real: int) -> bool:
        try:
            return self._others.changed(os.stat(name, dir_fd=real, follow_symlinks=False))
        except FileNotFoundError:
            return True

    def _take_away(self, name: str, real: int, path: str) -> None:
        """Delete what the program deleted, unless somebody else is at work on it."""
        try:
            new = self._set_apart(name, real, path)
        except FileNotFoundError:
            return
        if new:
            try:
                self.deleted += self._delete(new, real)
            finally:
                is_back = _is_there(new, real)
                if is_back:
                    self._rename_back(new, real, name, real, path)
            if not is_back:
                return
        if path not in self._stay:
            self.conflicts.append(f"{path} was not deleted")

    def _set_apart(self, name: str, real: int, path: str, *, to: int = -1) -> str:
        """Give what is left alone a name of ours; empty where somebody else is at work on it."""
        to = real if to < 0 else to
        was = os.stat(name, dir_fd=real, follow_symlinks=False)
        if not self._others.left_alone(name, real):
            return ""
        new = self._new_name()
        os.rename(name, new, src_dir_fd=real, dst_dir_fd=to)
        if self._others.still_left_alone(was, new, to):
            return new
        self._rename_back(new, to, name, real, path)
        return ""

    def _rename_back(self, new: str, new_in: int, name: str, real: int, path: str) -> None:
        try:
            rename_new(new, name, src_dir_fd=new_in, dst_dir_fd=real)
        except FileExistsError:
            self.conflicts.append(f"{path} was made anew, {new} is what was there")

    def _delete(self, name: str, folder: int) -> int:
        """Delete a file, or a folder but for what others do in it; return how many were deleted."""
        about = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if not stat.S_ISDIR(about.st_mode):
            file = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=folder)
            os.unlink(name, dir_fd=folder)
            now = os.fstat(file)
            if now.st_nlink and contents(now) == contents(about):
                self._others.ours(now)  # its other names have our stamp now
            os.close(file)
            return 1
        inner = self._others.enter(name, folder)
        try:
            count = sum(self._delete_inside(one, inner) for one in os.listdir(inner))
        finally:
            os.close(inner)
        try:
            os.rmdir(name, dir_fd=folder)
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
        return count

    def _delete_inside(self, name: str, folder: int) -> int:
        """Delete what is in a folder that has a name of ours: others may still be in there."""
        try:
            about = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(about.st_mode):
                return 0 if self._others.changed(about) else self._delete(name, folder)
            new = self._set_apart(name, folder, name)
        except FileNotFoundError:
            return 0
        return self._delete(new, folder) if new else 0

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
        return new_name(self._names)


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _mode(folder: int) -> int:
    return stat.S_IMODE(os.fstat(folder).st_mode)


def _rights(folder: int) -> tuple[object, ...]:
    about = os.fstat(folder)
    try:
        attributes = {name: os.getxattr(folder, name) for name in os.listxattr(folder)}
    except OSError:  # its file system has none
        attributes = {}
    return about.st_mode, about.st_uid, about.st_gid, attributes


def _is_folder(name: str, folder: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


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
