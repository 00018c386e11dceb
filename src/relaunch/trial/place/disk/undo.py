"""Takes back what a traced program did in a folder: it is made again what a list of before says.

The list has every name and its inode, no contents: those of a file are copied before the first
call that can change them, and a file whose name goes is held by another one. List and copies are
on the disk, so that who comes after a killed rl can take back as well, and as often as needed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat

from relaunch.jsontext import dumps, loads
from relaunch.record import Record
from relaunch.trial.place.disk.mounted import is_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from relaunch.proc.ptrace.policy import Call

FOLDER = "undo"
"""Beside a trial: the list, and copies of the files that were changed."""
_LIST = "list"
_CLONE = 0x40049409
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_MOST = 200_000
"""Names in a list; looking for more would take longer than what is tried out."""

_Place = tuple[int, int | None]
_OPENS: dict[str, _Place] = {"open": (0, None), "openat": (1, 0), "openat2": (1, 0)}
_CHANGES: dict[str, _Place] = {"creat": (0, None), "truncate": (0, None)}
_REMOVES: dict[str, _Place] = {"unlink": (0, None), "unlinkat": (1, 0)}
_RENAMES: dict[str, tuple[_Place, _Place]] = {
    "rename": ((0, None), (1, None)), "renameat": ((1, 0), (3, 2)), "renameat2": ((1, 0), (3, 2)),
}  # fmt: skip


def notes_of(folder: str) -> str:
    """Return where the notes of a trial are; a folder of a moment where there is no trial."""
    if folder:
        return os.path.join(folder, FOLDER)
    import tempfile

    return tempfile.mkdtemp(prefix="relaunch-")


class Entry(Record):
    """One name as it was."""

    path: str
    mode: int
    uid: int
    gid: int
    file: str
    """Which file it is, on which disk."""
    mtime: int
    leads: str = ""
    """Where a link leads."""


class TooMany(Exception):
    """There are too many names to list them, or too many bytes to copy them."""


class Noting:
    """Asked before each call, in the process of the tracer."""

    calls = (*_OPENS, *_CHANGES, *_REMOVES, *_RENAMES)

    def __init__(self, folders: Sequence[str], spared: Sequence[str], notes: str) -> None:
        """List what is in `folders`, but not in `spared`, in the folder `notes`; or TooMany."""
        self._folders = folders
        self._spared = spared
        self._notes = notes
        self._files = set()
        self._copied: set[str] = set()
        self._held: set[str] = set()
        os.makedirs(notes, exist_ok=True)
        lines = [dumps({"folders": list(folders), "spared": list(spared)})]
        for count, entry in enumerate(_walk(folders, spared)):
            if count >= _MOST:
                raise TooMany
            lines.append(dumps({name: getattr(entry, name) for name in Entry._fields}))
            if stat.S_ISREG(entry.mode):
                self._files.add(entry.file)
        with open(os.path.join(notes, _LIST), "wb") as file:
            file.write("\n".join(lines).encode("utf-8", "surrogateescape"))

    def copy_all(self, most_bytes: int) -> None:
        """Copy every file, for who cannot be asked before each call; or TooMany."""
        listed = [one for one in _walk(self._folders, self._spared) if stat.S_ISREG(one.mode)]
        if sum(os.lstat(one.path).st_size for one in listed) > most_bytes:
            raise TooMany
        for one in listed:
            self._copy(one.path)
            self._hold(one.path)

    def before(self, call: Call) -> None:
        """Save what the call may change or remove; an OSError when that cannot be done."""
        name = call.name
        if name in _OPENS:
            if _flags(call, _OPENS[name][0] + 1) & _WRITES:
                self._copy(os.path.realpath(call.path(*_OPENS[name])))
        elif name in _CHANGES:
            self._copy(os.path.realpath(call.path(*_CHANGES[name])))
        elif name in _REMOVES:
            self._hold(_resolved(call, *_REMOVES[name]))
        else:
            old, new = (_resolved(call, *place) for place in _RENAMES[name])
            self._hold(new)
            if not any(is_inside(new, folder) for folder in self._folders):
                self._hold_all(old)

    def _copy(self, path: str) -> None:
        file = self._listed(path)
        if file and file not in self._copied:
            _copy(path, os.path.join(self._notes, f"new-{file}"))
            os.rename(*(os.path.join(self._notes, f"{word}-{file}") for word in ("new", "copy")))
            self._copied.add(file)

    def _hold(self, path: str) -> None:
        """Have a file live on when this was its last name."""
        file = self._listed(path)
        if file and file not in self._held:
            try:
                os.link(path, os.path.join(self._notes, f"held-{file}"), follow_symlinks=False)
            except FileExistsError:
                pass
            except OSError:  # the notes are on another disk
                self._copy(path)
            self._held.add(file)

    def _hold_all(self, path: str) -> None:
        self._hold(path)
        for folder, _, names in os.walk(path):
            for name in names:
                self._hold(os.path.join(folder, name))

    def _listed(self, path: str) -> str:
        try:
            about = os.lstat(path)
        except OSError:
            return ""
        file = _file(about)
        return file if file in self._files and stat.S_ISREG(about.st_mode) else ""


def _walk(folders: Sequence[str], spared: Sequence[str]) -> Iterator[Entry]:
    """List each folder and all below it, outermost first."""
    waiting = list(folders)
    seen = set()
    while waiting:
        path = waiting.pop()
        if path in seen or any(is_inside(path, one) for one in spared):
            continue
        seen.add(path)
        try:
            about = os.lstat(path)
            leads = os.readlink(path) if stat.S_ISLNK(about.st_mode) else ""
            if stat.S_ISDIR(about.st_mode):
                waiting += [os.path.join(path, name) for name in os.listdir(path)]
        except OSError:
            continue
        yield Entry(path=path, mode=about.st_mode, uid=about.st_uid, gid=about.st_gid,
                    file=_file(about), mtime=about.st_mtime_ns, leads=leads)  # fmt: skip


def _file(about: os.stat_result) -> str:
    return f"{about.st_dev}-{about.st_ino}"


def _flags(call: Call, argument: int) -> int:
    if call.name == "openat2":  # in a struct, which begins with them
        from relaunch.proc.ptrace.kernel import read_memory

        return int.from_bytes(read_memory(call.tid, call.words[argument], 8), "little")
    return call.words[argument]


def _resolved(call: Call, argument: int, folder: int | None) -> str:
    """Return the path that a call names, links followed but its end."""
    head, tail = os.path.split(call.path(argument, folder).rstrip("/"))
    return os.path.join(os.path.realpath(head), tail)


def _copy(path: str, copy: str) -> None:
    with open(path, "rb") as source, open(copy, "wb") as target:
        try:
            fcntl.ioctl(target, _CLONE, source.fileno())  # shares the blocks, where disks can
        except OSError:
            shutil.copyfileobj(source, target, 1 << 20)


# --- taking it back -------------------------------------------------------------------------------


def take_back(notes: str) -> list[str]:
    """Make the folders what they were, and remove the notes; say what could not be done."""
    try:
        with open(os.path.join(notes, _LIST), encoding="utf-8", errors="surrogateescape") as file:
            first, *lines = file.read().split("\n")
        head = loads(first)
    except (FileNotFoundError, ValueError):  # nothing was begun
        shutil.rmtree(notes, ignore_errors=True)
        return []
    back = _Back(notes, [Entry(**loads(line)) for line in lines])
    back.run(head["folders"], head["spared"])
    if not back.problems:
        shutil.rmtree(notes, ignore_errors=True)
    return back.problems


class _Back:
    """The way back, once."""

    def __init__(self, notes: str, entries: list[Entry]) -> None:
        self._notes = notes
        self._entries = entries
        self.problems: list[str] = []

    def run(self, folders: Sequence[str], spared: Sequence[str]) -> None:
        now = list(_walk(folders, spared))
        was = {entry.path: entry for entry in self._entries}
        self._hold_misplaced(now, was)
        for entry in reversed(now):
            known = was.get(entry.path)
            if known is None or not _is_same(entry, known):
                self._try(_remove, entry.path)
        for entry in self._entries:
            self._try(self._put, entry)
        for entry in reversed(self._entries):
            self._try(_give_facts, entry)

    def _hold_misplaced(self, now: Sequence[Entry], was: dict[str, Entry]) -> None:
        """Hold each file that was somewhere else, before its name of now goes."""
        listed = {entry.file for entry in self._entries if stat.S_ISREG(entry.mode)}
        for entry in now:
            known = was.get(entry.path)
            if entry.file in listed and (known is None or not _is_same(entry, known)):
                held = self._note("held", entry.file)
                if not os.path.lexists(held):
                    self._try(_hold, entry.path, held)

    def _put(self, entry: Entry) -> None:
        """Have what was at a place there again."""
        path = entry.path
        if stat.S_ISREG(entry.mode):
            self._put_file(entry)
        elif os.path.lexists(path):
            pass
        elif stat.S_ISDIR(entry.mode):
            os.mkdir(path)
        elif stat.S_ISLNK(entry.mode):
            os.symlink(entry.leads, path)
        else:
            os.mknod(path, entry.mode)

    def _put_file(self, entry: Entry) -> None:
        copy, held = self._note("copy", entry.file), self._note("held", entry.file)
        if not os.path.lexists(entry.path) and os.path.exists(held):
            try:
                os.link(held, entry.path)
            except OSError:  # on another disk
                _copy(held, entry.path)
        if os.path.exists(copy):
            _make_writable(entry.path)
            _copy(copy, entry.path)
        elif not os.path.lexists(entry.path):
            raise FileNotFoundError(2, "what was in it is gone")

    def _note(self, word: str, file: str) -> str:
        return os.path.join(self._notes, f"{word}-{file}")

    def _try(self, act: object, *words: object) -> None:
        try:
            act(*words)  # type: ignore[operator]
        except OSError as error:
            one = words[0]
            path = one.path if isinstance(one, Entry) else one
            self.problems.append(f"{path}: {error.strerror or error}")


def _is_same(now: Entry, was: Entry) -> bool:
    """Tell whether the same thing is there; a folder is the same by its name."""
    if stat.S_IFMT(now.mode) != stat.S_IFMT(was.mode):
        return False
    return stat.S_ISDIR(now.mode) or (now.file == was.file and now.leads == was.leads)


def _hold(path: str, held: str) -> None:
    try:
        os.link(path, held, follow_symlinks=False)
    except OSError:  # on another disk
        shutil.copy2(path, held)


def _make_writable(path: str) -> None:
    if os.path.exists(path):
        os.chmod(path, 0o600)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        os.chmod(path, 0o700)
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _give_facts(entry: Entry) -> None:
    about = os.lstat(entry.path)
    if (about.st_uid, about.st_gid) != (entry.uid, entry.gid):
        os.chown(entry.path, entry.uid, entry.gid, follow_symlinks=False)
    if about.st_mode != entry.mode:
        os.chmod(entry.path, stat.S_IMODE(entry.mode))
    if about.st_mtime_ns != entry.mtime:
        times = (about.st_atime_ns, entry.mtime)
        os.utime(entry.path, ns=times, follow_symlinks=False)
