"""The world around a snapshot: whether one can be taken now, and how it is put back later.

A forked process shares more with its parent than it seems: offsets of open files, sockets, locks,
memory mapped for sharing. What can be made its own again is; for all else there is a reason why
no snapshot is taken, in words for people.
"""

from __future__ import annotations

import os
import posix
import signal
import stat
import sys
import time

from . import cuda, pools
from . import ledger as _ledger
from .ledger import Ledger, changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Any

__all__ = ["CannotRestore", "Ledger", "World", "before_fork", "changed", "refuse"]

_FILE_BYTES = 16 << 20
_ALL_BYTES = 64 << 20
"""How much of what the program wrote is kept in a snapshot."""
_OWN_MEMORY = "/memfd:relaunch-"
_DEVICES = frozenset(("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"))
_EVENT = "anon_inode:[eventfd]"
_STREAMS = ("input", "output", "error")
_LATER = os.O_CREAT | os.O_TRUNC | os.O_EXCL
_TICK_NS = 50_000_000
"""Two writes closer than this may leave a file with the same time."""
_NUMPY = "numpy.random.mtrand"


class CannotRestore(Exception):
    """The world cannot be put back as it was."""


def before_fork() -> None:
    """Make a fork harmless: pause pools of threads.

    Nothing is flushed: what is still in a buffer is copied with it, and written when the resumed
    program flushes, as it would be in a cold run.
    """
    pools.pause()


# --- can a snapshot be taken?


def refuse(own_children: Collection[int]) -> str:
    """Say why no snapshot can be taken right now; empty if it can."""
    ledger = _ledger.installed
    try:
        return (
            (_unknown(ledger) if ledger else "")
            or _tools()
            or _signals()
            or _threads()
            or _logging()
            or _children(own_children)
            or _descriptors(ledger or Ledger())
            or (_written(ledger) if ledger else "")
            or _memory()
            or pools.unsafe()
        )
    except Exception as error:
        return f"the process cannot be examined: {type(error).__name__}: {error}"


def _unknown(ledger: Ledger) -> str:
    if ledger.blind:
        return ledger.blind
    if ledger.stdin_used or _moved_stdin(ledger):
        return "the standard input was read"
    return ""


def _moved_stdin(ledger: Ledger) -> bool:
    try:
        regular = stat.S_ISREG(posix.fstat(0).st_mode)
        return regular and os.lseek(0, 0, os.SEEK_CUR) != ledger.stdin_at
    except OSError:
        return False


def _tools() -> str:
    """Find what else has a hand in the interpreter."""
    if sys.gettrace() is not None:
        return "a trace function is set"
    if sys.getprofile() is not None:
        return "a profile function is set"
    monitoring: Any = getattr(sys, "monitoring", None)
    for tool in range(6) if monitoring else ():
        name = monitoring.get_tool(tool)
        if name and monitoring.get_events(tool):
            return f"a tool watches the program: {name}"
    events: Any = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:
        return "an asyncio loop is running"
    tracker: Any = sys.modules.get("multiprocessing.resource_tracker")
    if tracker is not None and tracker._resource_tracker._fd is not None:
        return "multiprocessing's resource tracker is running"
    return "CUDA is initialised" if cuda.is_initialised() else ""


def _signals() -> str:
    for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
        if any(signal.getitimer(timer)):
            return "a timer is running (signal.alarm or setitimer)"
    if signal.getsignal(signal.SIGCHLD) is not signal.SIG_DFL:
        return "SIGCHLD has a handler"
    try:
        with open("/proc/self/timers", encoding="ascii") as file:
            if file.read(1):
                return "a timer is running (timer_create)"
    except OSError:
        pass
    return ""


def _logging() -> str:
    """Tell whether a record is being written: locks of logging are made anew in a fork."""
    logging: Any = sys.modules.get("logging")
    if logging is None:
        return ""
    locks = [logging._lock, *(one.lock for ref in logging._handlerList if (one := ref()))]
    held = any(lock is not None and lock._is_owned() for lock in locks)
    return "a log record is being written" if held else ""


def _threads() -> str:
    import _thread

    threading: Any = sys.modules.get("threading")
    if threading is not None:
        for thread in [*threading._dangling]:
            if thread.ident is None:
                return f"a thread is about to be started: {thread.name}"
        if threading.current_thread() is not threading.main_thread():
            return "a thread runs the program"
        for thread in threading.enumerate():
            if thread is not threading.main_thread():
                return f"a thread is running: {thread.name}"
    return "a thread is running" if _thread._count() else ""


def _children(own: Collection[int]) -> str:
    for tid in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{tid}/children", encoding="ascii") as file:
                pids = [*map(int, file.read().split())]
        except FileNotFoundError:
            return "the kernel does not tell child processes"
        for pid in pids:
            if pid not in own:
                return f"a child process is there: {_command(pid)}"
    return ""


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()} ({pid})"
    except OSError:
        return str(pid)


def _memory() -> str:
    for path in pools.shared_memory():
        if path.startswith(_OWN_MEMORY) or "KMP_REGISTERED_LIB" in path:
            continue
        name = path.partition(" (deleted)")[0]
        if name in ("", "/dev/zero"):
            return "memory is shared between processes"
        return f"a file is mapped for writing: {name}"
    return ""


def _written(ledger: Ledger) -> str:
    """Tell which files are too large to be kept."""
    total = 0
    for path, base in ledger.written.items():
        try:
            now = posix.lstat(path)
        except OSError:
            continue
        if not stat.S_ISREG(now.st_mode):
            continue
        size = now.st_size - max(base, 0)
        total += size
        if size > _FILE_BYTES:
            return f"a large file was written: {_ledger._short(path)}"
    return "large files were written" if total > _ALL_BYTES else ""


# --- descriptors


class _Open:
    """An open file of the program."""

    def __init__(self, fd: int, path: str, info: Mapping[str, str]) -> None:
        now = posix.fstat(fd)
        self.fds = [(fd, os.get_inheritable(fd))]
        self.path = path
        self.identity = (now.st_dev, now.st_ino)
        self.flags = int(info["flags"], 8) & ~_LATER & ~os.O_CLOEXEC
        self.offset = int(info["pos"])
        self.seekable = stat.S_ISREG(now.st_mode) or stat.S_ISDIR(now.st_mode)
        self.data = _content(fd, now.st_size) if _is_nameless(fd) else None
        """What it holds, when no name leads to it any more."""
        self.event = info.get("eventfd-id", "")
        """The counter that it is, if it is one."""
        self.count = int(info.get("eventfd-count", "0"), 16)
        self.semaphore = info.get("eventfd-semaphore", "0") != "0"

    def reopen(self) -> None:
        """Open it anew at the same place, under the same numbers."""
        try:
            if self.event:
                new = self._new_event()
            elif self.data is None:
                new = os.open(self.path, self.flags | os.O_CLOEXEC)
            else:
                new = _nameless(os.path.dirname(self.path), self.data, self.flags)
        except OSError as error:
            raise CannotRestore(f"{self.path} cannot be opened: {error.strerror}") from None
        if self.seekable:
            end = self.flags & os.O_APPEND
            os.lseek(new, 0 if end else self.offset, os.SEEK_END if end else os.SEEK_SET)
        numbers = [fd for fd, _ in self.fds]
        for fd, inheritable in self.fds:
            os.dup2(new, fd, inheritable=inheritable)
        if new not in numbers:
            os.close(new)

    def _new_event(self) -> int:
        """Make a counter of its own, for the other one is shared with all that forked."""
        flags = os.EFD_CLOEXEC | (os.EFD_SEMAPHORE if self.semaphore else 0)
        if self.flags & os.O_NONBLOCK:
            flags |= os.EFD_NONBLOCK
        return os.eventfd(self.count, flags)


def _info(fd: int) -> dict[str, str]:
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii", errors="replace") as file:
        lines = (line.partition(":") for line in file)
        return {name: value.strip() for name, _, value in lines}


def _theirs(ledger: Ledger) -> list[tuple[int, str]]:
    """List the descriptors of the program, with what the kernel calls them."""
    found = []
    for fd in _ledger.open_fds():
        if stream_of(fd, ledger) >= 0:
            continue
        if fd > 2 and ledger.own_fds.get(fd) == _ledger._identity(fd):
            continue
        path = posix.readlink(f"/proc/self/fd/{fd}")
        shared = path.startswith((_OWN_MEMORY, cuda.FILES))  # NVML does not mind
        if not shared and not _is_ours(fd, path, ledger):
            found.append((fd, path))
    return found


def _is_ours(fd: int, path: str, ledger: Ledger) -> bool:
    """Tell whether it is a connection to the host."""
    if not path.startswith("socket:"):
        return False
    import socket

    try:
        connection = socket.socket(fileno=os.dup(fd))
    except OSError:
        return False
    with connection:
        try:
            name = connection.getpeername()
        except OSError:
            return False
    return isinstance(name, str) and bool(name) and name.startswith(ledger.private)


def stream_of(fd: int, ledger: Ledger) -> int:
    """Return which of the standard streams a descriptor leads to; -1 if to none of them."""
    identity = _ledger._identity(fd)
    if fd <= 2 and identity == ledger.streams[fd]:
        return fd
    if identity is None or posix.readlink(f"/proc/self/fd/{fd}") == os.devnull:
        return -1
    return ledger.streams.index(identity) if identity in ledger.streams else -1


def _is_nameless(fd: int) -> bool:
    """Tell whether a file is open that was deleted, or never had a name."""
    now = posix.fstat(fd)
    return stat.S_ISREG(now.st_mode) and now.st_nlink == 0


def _content(fd: int, size: int) -> bytes:
    """Read a file that only a descriptor leads to."""
    with open(f"/proc/self/fd/{fd}", "rb") as file:
        return file.read(size)


def _nameless(folder: str, data: bytes, flags: int) -> int:
    """Make a file without a name."""
    new = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC | flags & os.O_APPEND, 0o600)
    while data:
        data = data[os.write(new, data) :]
    return new


def _descriptors(ledger: Ledger) -> str:
    for fd, path in _theirs(ledger):
        why = _cannot_share(fd, path, ledger)
        if why:
            return why
    return ""


def _cannot_share(fd: int, path: str, ledger: Ledger) -> str:
    if path == _EVENT and "eventfd-semaphore" in _info(fd):
        return ""
    if path.startswith("anon_inode:"):
        return f"{path.partition(':')[2].strip('[]')} is open (fd {fd})"
    if path.startswith("/memfd:"):
        return f"memory is shared between processes (fd {fd})"
    mode = posix.fstat(fd).st_mode
    if stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode):
        return f"a {'socket' if stat.S_ISSOCK(mode) else 'pipe'} is open (fd {fd})"
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        if _is_nameless(fd):
            size = posix.fstat(fd).st_size
            return "a large file without a name is open" if size > _FILE_BYTES else ""
        if not _is_at(fd, path):
            return f"a deleted file is open: {path.partition(' (deleted)')[0]}"
        if "lock" in _info(fd):
            return f"a file is locked: {path}"
        if path in ledger.databases:
            return f"a database is open: {path}"
        return ""
    return "" if path in _DEVICES else f"a device is open: {path}"


def _is_at(fd: int, path: str) -> bool:
    try:
        now = posix.stat(path)
    except OSError:
        return False
    return (now.st_dev, now.st_ino) == _ledger._identity(fd)


def _opened(ledger: Ledger) -> list[_Open]:
    """Collect the program's open files; descriptors that share an offset are one."""
    files: list[_Open] = []
    for fd, path in _theirs(ledger):
        one = _Open(fd, path, _info(fd))
        for other in files:
            if _same_description(other, one):
                other.fds += one.fds
                break
        else:
            files.append(one)
    return files


def _same_description(one: _Open, other: _Open) -> bool:
    """Tell whether two descriptors share an offset: move one and look at the other."""
    alike = (one.identity, one.flags, one.offset) == (other.identity, other.flags, other.offset)
    if not alike or one.event != other.event:
        return False
    if not one.seekable:
        return bool(one.event)
    (first, _), (second, _) = one.fds[0], other.fds[0]
    os.lseek(first, one.offset + 1, os.SEEK_SET)
    try:
        return os.lseek(second, 0, os.SEEK_CUR) != one.offset
    finally:
        os.lseek(first, one.offset, os.SEEK_SET)


# --- files that the program wrote


class _Kept:
    """A path that the program wrote or removed, as it is at the snapshot."""

    def __init__(self, path: str, base: int, timed: bool) -> None:
        self.path = path
        self.base = base
        self.timed = timed
        self.kind = "absent"
        self.data = b""
        self.mode = 0
        self.stat: os.stat_result | None = None
        self.settled = False
        """True when a later write would show in its time."""
        try:
            self.stat = posix.lstat(path)
        except OSError:
            return
        self.mode = self.stat.st_mode
        self.settled = time.time_ns() - self.stat.st_mtime_ns > _TICK_NS
        if stat.S_ISDIR(self.mode):
            self.kind = "dir"
        elif stat.S_ISLNK(self.mode):
            self.kind, self.data = "link", os.fsencode(posix.readlink(path))
        else:
            self.kind = "file"
            with open(path, "rb") as file:
                file.seek(max(base, 0))
                self.data = file.read(_FILE_BYTES + 1)

    def still(self) -> bool:
        """Tell whether nothing was written since."""
        try:
            now = posix.lstat(self.path)
        except OSError:
            return self.kind == "absent"
        return self.stat is not None and _mark(now) == _mark(self.stat)

    def put_back(self) -> None:
        """Make the path what it was."""
        if self.still() and self.settled and self.base < 0:
            return
        if self.kind == "absent":
            _remove(self.path)
        elif self.kind == "dir":
            os.makedirs(self.path, exist_ok=True)
            os.chmod(self.path, stat.S_IMODE(self.mode))
        elif self.kind == "link":
            _remove(self.path)
            os.symlink(os.fsdecode(self.data), self.path)
        else:
            self._write()

    def _write(self) -> None:
        appends = self.base >= 0
        how = os.O_APPEND if appends else os.O_TRUNC
        if not appends and os.path.islink(self.path):
            _remove(self.path)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | how, stat.S_IMODE(self.mode))
        with open(fd, "wb") as file:
            file.write(self.data)
            if not appends:
                os.fchmod(fd, stat.S_IMODE(self.mode))
        if self.timed and self.stat:
            os.utime(self.path, ns=(self.stat.st_atime_ns, self.stat.st_mtime_ns))


def _keep(ledger: Ledger, path: str, base: int) -> _Kept:
    """Keep a path, or what was kept of it for an earlier snapshot."""
    old: _Kept | None = ledger.kept.get(path)
    if old is not None and old.settled and old.base == base and old.still():
        return old
    new = ledger.kept[path] = _Kept(path, base, path in ledger.timed)
    return new


def _mark(now: os.stat_result) -> tuple[int, ...]:
    return now.st_mtime_ns, now.st_ctime_ns, now.st_size, now.st_ino, now.st_mode


def _remove(path: str) -> None:
    try:
        if stat.S_ISDIR(posix.lstat(path).st_mode):
            import shutil

            shutil.rmtree(path)
        else:
            os.unlink(path)
    except FileNotFoundError:
        pass


# --- all together


class World:
    """What is to be put back in a resumed process; taken right before the fork."""

    def __init__(self, ledger: Ledger) -> None:
        """Keep open files, written files, streams and random states."""
        self.ledger = ledger
        self.files = _opened(ledger)
        self.kept = [_keep(ledger, path, base) for path, base in ledger.written.items()]
        self.streams = {
            fd: stream for fd in _ledger.open_fds() if (stream := stream_of(fd, ledger)) >= 0
        }
        self.terminals = {stream: _is_terminal(fd) for fd, stream in self.streams.items()}
        self.cwd = os.getcwd()
        self.closed = [fd for fd in range(3) if _ledger._identity(fd) is None]
        self.random = _random_states(ledger)
        self.new_streams: list[tuple[int, int] | None] = []

    def restore(self, fds: Sequence[int], env: Mapping[str, str]) -> None:
        """Put the world back, with these standard streams; the descriptors are used up.

        CannotRestore says what prevents it.
        """
        self._check(fds)
        self.ledger.asleep = True
        try:
            self._files()
            os.chdir(self.cwd)
            self._streams(fds)
            for file in self.files:
                file.reopen()
        except OSError as error:
            name = error.filename or "a file"
            raise CannotRestore(f"{name} cannot be put back: {error.strerror}") from None
        finally:
            self.ledger.asleep = False
        os.environ.update(env)
        _set_random_states(self.ledger, self.random)
        self._settle()

    def _check(self, fds: Sequence[int]) -> None:
        for stream, (fd, kind) in enumerate(zip(fds, _STREAMS, strict=False)):
            old = self.terminals.get(stream, _is_terminal(fd))
            if _is_terminal(fd) != old:
                word = "no terminal" if old else "a terminal"
                raise CannotRestore(f"the standard {kind} is {word} now")

    def _files(self) -> None:
        """Folders first, from above; removals last, from below."""
        by_depth = sorted(self.kept, key=lambda one: one.path.count("/"))
        for one in by_depth:
            if one.kind == "dir":
                one.put_back()
        for one in self.kept:
            if one.kind in ("file", "link"):
                one.put_back()
        for one in reversed(by_depth):
            if one.kind == "absent":
                one.put_back()

    def _streams(self, fds: Sequence[int]) -> None:
        for fd, stream in self.streams.items():
            os.dup2(fds[stream], fd, inheritable=fd <= 2 or os.get_inheritable(fd))
        for fd in self.closed:
            os.close(fd)
        self.new_streams = [_ledger._identity(fd) for fd in fds]
        for fd in {*fds}:
            if fd > 2:
                os.close(fd)

    def _settle(self) -> None:
        """Know again which descriptors are ours, and how much of appended files was there."""
        ledger = self.ledger
        theirs = {fd for file in self.files for fd, _ in file.fds}
        ledger.know_fds()
        ledger.streams = self.new_streams
        for fd in theirs:
            ledger.own_fds.pop(fd, None)
        for one in self.kept:
            if one.base >= 0 and one.kind == "file":
                ledger.written[one.path] = posix.stat(one.path).st_size - len(one.data)


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _random_states(ledger: Ledger) -> dict[str, Any]:
    states: dict[str, Any] = {}
    random: Any = sys.modules.get("random")
    if random is not None and ("random" in ledger.seeded or "random" not in ledger.watched):
        states["random"] = random.getstate()
    return states


def _set_random_states(ledger: Ledger, states: Mapping[str, Any]) -> None:
    """Put seeded generators back, which forking has reseeded; give the others fresh entropy."""
    if "random" in states:
        random: Any = sys.modules["random"]
        random._inst.setstate(states["random"])
    numpy: Any = sys.modules.get(_NUMPY)
    if numpy is not None and _NUMPY in ledger.watched and _NUMPY not in ledger.seeded:
        numpy._rand.seed()
