"""What one process uses, read from /proc through files that stay open: it costs microseconds."""

from __future__ import annotations

import os

from relaunch.look.tree import PAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PROC = "/proc"
_MOST_OPEN = 600
"""So many files are kept open; the usual limit of a process is 1,024."""
_SLOW_S = 1.0
"""What costs more is asked so seldom."""
_SOON = 0.25
_THREADS_S = 0.5


class Stat:
    """The fields of /proc/PID/stat that matter here."""

    __slots__ = ("cpu_s", "name", "parent", "rss", "started", "state", "threads")

    def __init__(self, data: bytes) -> None:
        """Read the line; the name may hold blanks and brackets itself. ValueError if it is none."""
        head, bracket, tail = data.rpartition(b")")
        fields = tail.split(None, 22)
        if not bracket or len(fields) < 22:
            raise ValueError("no /proc/PID/stat")
        self.name = head.partition(b"(")[2].decode("utf-8", "replace")
        self.state = chr(fields[0][0])
        self.parent = int(fields[1])
        # With what it waited for: a child counts with its parent as soon as it is collected.
        ticks = int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
        self.cpu_s = ticks * TICK_S
        self.threads = int(fields[17])
        self.started = int(fields[19])
        self.rss = int(fields[21]) * PAGE


def read_io(data: bytes) -> tuple[int, int]:
    """Return the bytes read and written, of /proc/PID/io.

    Calls count what went through them, caches and pipes included; the disk counts what was mapped.
    The larger of the two is what a person means.
    """
    found = {}
    for line in data.splitlines():
        name, _, value = line.partition(b":")
        if value.strip().isdigit():
            found[name] = int(value)
    read = max(found.get(b"rchar", 0), found.get(b"read_bytes", 0))
    return read, max(found.get(b"wchar", 0), found.get(b"write_bytes", 0))


def read_peak(data: bytes) -> int:
    """Return the most memory a process ever had, of /proc/PID/status; 0 when it does not say."""
    before, found, rest = data.partition(b"\nVmHWM:")
    return int(rest.split(None, 1)[0]) << 10 if found and before else 0


class ProcFile:
    """A file of /proc that is read again and again, kept open as long as there are not too many."""

    __slots__ = ("_fd", "_path")
    opened = 0

    def __init__(self, path: str) -> None:
        """Remember it; it is opened when it is first read."""
        self._path = path
        self._fd = -1

    def read(self) -> bytes:
        """Return what it says now; OSError when the process is gone or somebody else's."""
        if self._fd >= 0:
            return _whole(self._fd)
        fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        if ProcFile.opened < _MOST_OPEN:
            ProcFile.opened += 1
            self._fd = fd
            return _whole(fd)
        try:
            return _whole(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        """Close it, if it is open."""
        if self._fd >= 0:
            os.close(self._fd)
            ProcFile.opened -= 1
            self._fd = -1


def _whole(fd: int) -> bytes:
    data = os.pread(fd, 4096, 0)
    if len(data) < 4000:
        return data
    blocks, at = [data], len(data)
    while data := os.pread(fd, 1 << 16, at):
        blocks.append(data)
        at += len(data)
    return b"".join(blocks)


class Process:
    """One process, looked at again and again; what cannot be read stays None."""

    def __init__(self, pid: int) -> None:
        """Look at it for the first time; OSError when there is none."""
        self.pid = pid
        self._stat = ProcFile(f"{PROC}/{pid}/stat")
        self._io = ProcFile(f"{PROC}/{pid}/io")
        self._children = ProcFile(f"{PROC}/{pid}/task/{pid}/children")
        self.user = -1
        self.argv: tuple[str, ...] = ()
        self.parent = self.started = self.rss = self.peak = 0
        self.name, self.state = "", "?"
        self.threads = 1
        self.cpu_s = 0.0
        self.fds: int | None = None
        self.read_bytes: int | None = None
        self.write_bytes: int | None = None
        self.is_gone = False
        self.cpu_percent = self.read_s = self.write_s = 0.0
        """In about the last second."""
        self._slow_at = self._threads_at = 0.0
        self._before: tuple[float, float, int, int] | None = None
        self._named = ("", 0)
        try:
            self._take(Stat(self._stat.read()))
        except ValueError:
            raise ProcessLookupError(f"no process {pid}") from None
        self.identify()

    def look(self, now: float) -> bool:
        """Read it again; False when it is gone."""
        try:
            self._take(Stat(self._stat.read()))
        except (OSError, ValueError):
            self.close()
            return False
        if now >= self._slow_at:
            # Not all at the same moment; the second time soon, for there are no rates before it.
            share = 0.75 + (self.pid % 32) / 64 if self._before is not None else _SOON
            self._slow_at = now + _SLOW_S * share
            self.look_closer()
            self._rate(now)
        return True

    def _rate(self, now: float) -> None:
        """See how much there was since the last time."""
        read, written = self.read_bytes or 0, self.write_bytes or 0
        if self._before is not None and now > self._before[0]:
            took = now - self._before[0]
            self.cpu_percent = 100 * (self.cpu_s - self._before[1]) / took
            self.read_s = (read - self._before[2]) / took
            self.write_s = (written - self._before[3]) / took
        self._before = (now, self.cpu_s, read, written)

    def look_closer(self) -> None:
        """Read what costs more: its record, its files, what it read and wrote, its command."""
        try:
            self.peak = max(self.peak, read_peak(_once(f"{PROC}/{self.pid}/status")))
        except (OSError, ValueError, IndexError):
            pass
        try:
            self.fds = len(os.listdir(f"{PROC}/{self.pid}/fd"))
        except OSError:
            pass
        self.look_at_io()
        if not self.argv or self._named != (self.name, self.started):
            self.identify()

    def look_at_io(self) -> None:
        """Read how much it read and wrote."""
        try:
            self.read_bytes, self.write_bytes = read_io(self._io.read())
        except OSError:
            pass

    def identify(self) -> None:
        """Read whose it is and what it was started as; both change when it becomes another."""
        self._named = (self.name, self.started)
        self.user = owner(self.pid)
        self.argv = command(self.pid) or self.argv

    def children(self, now: float) -> list[int]:
        """Return its children: those of its first thread, and now and then of the others."""
        try:
            found = [*map(int, self._children.read().split())]
        except (OSError, ValueError):
            return []
        if self.threads > 1 and now >= self._threads_at:
            self._threads_at = now + _THREADS_S
            found += self._of_threads()
        return found

    def _of_threads(self) -> list[int]:
        found: list[int] = []
        folder = f"{PROC}/{self.pid}/task"
        try:
            for thread in os.listdir(folder):
                if int(thread) != self.pid:
                    found += map(int, _once(f"{folder}/{thread}/children").split())
        except (OSError, ValueError):
            pass
        return found

    def _take(self, stat: Stat) -> None:
        self.name, self.state, self.parent = stat.name, stat.state, stat.parent
        self.cpu_s, self.threads = stat.cpu_s, stat.threads
        self.rss, self.started = stat.rss, stat.started
        if stat.rss > self.peak:
            self.peak = stat.rss

    def close(self) -> None:
        """Let go of its files."""
        self.is_gone = True
        for file in (self._stat, self._io, self._children):
            file.close()


def pids() -> list[int]:
    """List every process there is."""
    return [int(name) for name in os.listdir(PROC) if "0" < name[0] <= "9"]


def command(pid: int) -> tuple[str, ...]:
    """Return the words a process was started with; none of a kernel thread, or when it is gone."""
    try:
        words = _once(f"{PROC}/{pid}/cmdline")
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in words.rstrip(b"\0").split(b"\0")) if words else ()


def owner(pid: int) -> int:
    """Return the user of a process; -1 when it is gone."""
    try:
        return os.stat(f"{PROC}/{pid}").st_uid
    except OSError:
        return -1


def has_in_environment(pid: int, assignment: str) -> bool:
    """Tell whether a process was started with NAME=VALUE; not when that cannot be read."""
    try:
        found = _once(f"{PROC}/{pid}/environ")
    except OSError:
        return False
    return os.fsencode(assignment) in found.split(b"\0")


def stat_of(pid: int) -> Stat | None:
    """Read /proc/PID/stat once."""
    try:
        return Stat(_once(f"{PROC}/{pid}/stat"))
    except (OSError, ValueError):
        return None


def _once(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _in_blocks(lambda: os.read(fd, 1 << 16))
    finally:
        os.close(fd)


def _in_blocks(read: Callable[[], bytes]) -> bytes:
    blocks = []
    while block := read():
        blocks.append(block)
    return b"".join(blocks)
