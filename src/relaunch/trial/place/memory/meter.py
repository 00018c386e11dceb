"""What a tree of processes has in memory, read from outside: cheap far from the limit, exact near.

Counted is what cannot be given back: private pages and shared memory. Pages of files can, so that
a program may map more of them than the limit. A sum over processes counts what forks share once
for each, and is too much; the proportional share is right, and dear. It is asked for when the sum
says that the limit is reached, and again when growth since then could have reached it.
"""

from __future__ import annotations

import os
import time

from relaunch.look.tree import PAGE, below, children, resident_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

_WALKS, _FAR_WALKS = 20, 100
"""Walking the tree anew takes one part in so many of the time, near the limit and far from it."""
_LONGEST_WALK_S = 0.25
_SHARED_STEP = 1 << 20
"""When a process maps or drops so much of files and shared memory, it is asked which it was."""


class Process:
    """One process of the tree; its files stay open, so that a look is one read."""

    def __init__(self, pid: int) -> None:
        """Open it; OSError when it is gone."""
        self.pid = pid
        self._statm = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._shared = 0
        self.shared_bytes = 0
        """Of what it has, what others may have too: shared memory."""

    def close(self) -> None:
        """Let go of it."""
        os.close(self._statm)

    def kept_bytes(self) -> int:
        """Return what it has that cannot be given back, shared memory whole; 0 when it is gone."""
        try:
            words = os.pread(self._statm, 128, 0).split()
        except OSError:
            return 0
        if len(words) < 3:
            return 0
        resident, shared = int(words[1]) * PAGE, int(words[2]) * PAGE
        if abs(shared - self._shared) > _SHARED_STEP:
            self._shared = shared
            self.shared_bytes = field(f"/proc/{self.pid}/status", b"RssShmem:")
        return resident - shared + self.shared_bytes


class TreeMeter:
    """The tree of one program, whose orphans become children of `parent`."""

    def __init__(self, parent: int, limit: int) -> None:
        """Know whose tree it is; `begin` says which process is the program."""
        self.limit = limit
        self.wakes: Sequence[int] = ()
        self.wake_on = 0
        self._parent = parent
        self._program = 0
        self._helpers: set[int] = set()
        self._seen: dict[int, Process] = {}
        self._walk_at = 0.0
        self._walk_anyway = 0.0
        self._newest = b""
        self._sizes: dict[int, int] = {}
        self._sum = 0
        self._sure = Sure(limit)

    def begin(self, program: int, helpers: Collection[int]) -> None:
        """Begin with the program, and know who is below the parent and not of the tree."""
        self._program, self._helpers = program, {*helpers}

    def members(self) -> list[int]:
        """List the processes of the tree as they are now."""
        others = [pid for pid in children(self._parent) if pid not in self._helpers]
        roots = dict.fromkeys([self._program, *others])
        below_them = [pid for root in roots for pid in below(root)]
        return [pid for pid in dict.fromkeys([*roots, *below_them]) if is_running(pid)]

    def known(self) -> list[int]:
        """List who was there at the last look, the largest first: to look anew takes longer."""
        sized = sorted(((size, pid) for pid, size in self._sizes.items()), reverse=True)
        return [pid for size, pid in sized if size]

    def used(self, rate: float) -> int:
        """Return how much they have together; `rate` says how it grew, in bytes a second."""
        now = time.monotonic()
        if now >= self._walk_at and (self._is_somebody_new() or now >= self._walk_anyway):
            self._walk()
            parts = _WALKS if self._sum > self.limit // 2 else _FAR_WALKS
            self._walk_at = now + min(_LONGEST_WALK_S, parts * (time.monotonic() - now))
            self._walk_anyway = now + _LONGEST_WALK_S
        self._sizes = sizes = {pid: one.kept_bytes() for pid, one in self._seen.items()}
        self._sum = sum(sizes.values())
        if len(sizes) < 2 or self._sum + rate * self._sure.took_s < self.limit:
            return self._sum
        shared = {pid: one.shared_bytes for pid, one in self._seen.items()}
        return self._sure.used(sizes, shared, rate)

    def is_reached(self, _wake: int) -> bool:
        """Nothing wakes this meter."""
        return False

    def near(self) -> None:
        """Nothing can be done to be more exact."""

    def loosen(self, *, goes_on: bool) -> None:
        """Nobody is frozen."""

    def lift(self) -> None:
        """Nothing holds the program but us."""

    def _is_somebody_new(self) -> bool:
        """Tell whether a process was born anywhere: one read instead of a walk."""
        newest = read("/proc/loadavg").rpartition(b" ")[2]
        is_new = newest != self._newest or not newest
        self._newest = newest
        return is_new

    def _walk(self) -> None:
        now = set(self.members())
        for pid in self._seen.keys() - now:
            self._seen.pop(pid).close()
        for pid in now - self._seen.keys():
            try:
                self._seen[pid] = Process(pid)
            except OSError:
                continue


class ResidentMeter(TreeMeter):
    """The same tree, all in memory summed up, files too: as a watched run tells its peak."""

    def used(self, _rate: float) -> int:
        """Return how much they have together."""
        return sum(resident_bytes(pid) for pid in self.members())


_NARROW = 500
"""Pages that may be new, and may not, do not matter below this part of the limit."""
_APART_S, _APART_SHARE = 0.02, 100
"""How far apart notes are: they use at most one part in so many of the time."""
_MOST = 8
"""Who took less than this part of what another took did not grow."""


class Sure:
    """The proportional share of several processes: read when growth makes it necessary.

    Between two readings, what a process grew by is its own, but for shared memory, which others may
    have too. A new one shares as much as another has, as far as is known, and is a reason to read
    again.
    """

    def __init__(self, limit: int) -> None:
        """Nothing was read yet."""
        self._limit = limit
        self._base = 0
        self._then: dict[int, int] = {}
        self._shared: Mapping[int, int] = {}
        self._faults: dict[int, int] = {}
        self._known: set[int] = set()
        self._next = 0.0
        self.took_s = 0.0
        """How long the last reading took: the program goes on meanwhile."""

    def used(self, sizes: Mapping[int, int], shared: Mapping[int, int], rate: float) -> int:
        """Return what they have together, when each by itself has `sizes`, of that `shared`."""
        is_whole = self._then.keys() <= sizes.keys() and bool(self._then)
        most = max(self._then.values(), default=0)
        for pid in sizes.keys() - self._then.keys():
            self._then[pid] = min(sizes[pid], most)
            self._faults[pid] = minor_faults(pid)
            self._next = 0.0
        least = self._base + self._surely_grown(sizes, shared)
        if is_whole and least >= self._limit:
            return least
        # A page that a fork begins to write to is a fault, and does not change its size.
        grown = sum(max(0, size - self._then[pid]) for pid, size in sizes.items())
        faults = sum(minor_faults(pid) - self._faults[pid] for pid in sizes) * PAGE
        perhaps = self._base + max(grown, faults)
        if is_whole and not self._is_new(sizes):
            if perhaps + rate * self.took_s < self._limit:
                return perhaps
            if perhaps - least < self._limit // _NARROW:  # nobody looks while it is read
                return min(perhaps, self._limit - 1)
        if (now := time.monotonic()) < self._next:
            return self._limit - 1
        self._then, self._shared = dict(sizes), shared
        self._faults = {pid: minor_faults(pid) for pid in sizes}
        self._known = {*sizes}
        self._base = proportional_bytes(sizes)
        self.took_s = time.monotonic() - now
        # Near the limit half of the time may go into it, otherwise a fifth.
        self._next = now + self.took_s * (2 if self._base > 0.9 * self._limit else 5)
        return self._base

    def _surely_grown(self, sizes: Mapping[int, int], shared: Mapping[int, int]) -> int:
        """Return by how much they grew at least: some may have given back, some share it."""
        common = {pid: shared[pid] - self._shared.get(pid, 0) for pid in sizes}
        own = sum(size - self._then[pid] - common[pid] for pid, size in sizes.items())
        return own + max([0, *common.values()])

    def _is_new(self, sizes: Mapping[int, int]) -> bool:
        """Tell whether somebody is there who was not when it was last read."""
        return not sizes.keys() <= self._known


class Growers:
    """Who took pages a moment ago: a process that only waits has had its memory for long."""

    def __init__(self) -> None:
        """Nobody was looked at yet."""
        self._older = self._newer = Taken(())
        self._next = 0.0

    def note(self, members: Callable[[], Iterable[int]]) -> None:
        """Remember how much each has taken so far, now and then."""
        now = time.monotonic()
        if now >= self._next:
            self._older, self._newer = self._newer, Taken(members())
            self._next = now + max(_APART_S, (time.monotonic() - now) * _APART_SHARE)

    def among(self, pids: Iterable[int]) -> set[int]:
        """Return those who took some since, not who took little beside another; and who is new."""
        pids = [*pids]
        took = {pid: self._older.since(pid) for pid in pids if self._older.knows(pid)}
        most = max(took.values(), default=0)
        return {pid for pid in pids if pid not in took or took[pid] > most // _MOST}


class Taken:
    """What processes have taken so far; a huge page is one fault, and a fork's own no growth."""

    def __init__(self, pids: Iterable[int]) -> None:
        """Look at them."""
        self._then = {pid: _taken(pid) for pid in pids}

    def knows(self, pid: int) -> bool:
        """Tell whether it was there."""
        return pid in self._then

    def since(self, pid: int) -> int:
        """Return how much it took since then."""
        pairs = zip(_taken(pid), self._then[pid], strict=True)
        return max(now - then for now, then in pairs)

    def since_in_all(self) -> int:
        """Return how much all of them took."""
        return sum(map(self.since, self._then))


def _taken(pid: int) -> tuple[int, int]:
    return minor_faults(pid) * PAGE, bytes_of(pid)


def bytes_of(pid: int) -> int:
    """Return what a process has that cannot be given back."""
    try:
        one = Process(pid)
    except OSError:
        return 0
    try:
        return one.kept_bytes()
    finally:
        one.close()


def proportional_bytes(pids: Iterable[int]) -> int:
    """Return what processes have that cannot be given back, shared pages counted once."""
    return sum(_proportional(pid) for pid in pids)


def _proportional(pid: int) -> int:
    text = read(f"/proc/{pid}/smaps_rollup")
    found = {line.split(b":")[0]: line for line in text.split(b"\n") if line.startswith(b"Pss")}
    if b"Pss_Anon" not in found:  # before Linux 5.4, or not to be read by us
        status = f"/proc/{pid}/status"
        return field(status, b"RssAnon:") + field(status, b"RssShmem:")
    return sum(int(found[name].split()[1]) << 10 for name in (b"Pss_Anon", b"Pss_Shmem"))


def minor_faults(pid: int) -> int:
    """Return how often a process needed a page that was in memory; 0 when it is gone."""
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[7]) if len(fields) > 7 else 0


def is_running(pid: int) -> bool:
    """Tell whether a process is there and has not ended."""
    return state(f"/proc/{pid}") not in (b"", b"Z", b"X")


def state(folder: str) -> bytes:
    """Return the letter of the state of a process or thread; nothing when it is gone."""
    return read(f"{folder}/stat").rpartition(b")")[2].lstrip()[:1]


def field(path: str, name: bytes) -> int:
    """Return a field of /proc/PID/status in bytes."""
    for line in read(path).split(b"\n"):
        if line.startswith(name):
            return int(line.split()[1]) << 10
    return 0


def read(path: str) -> bytes:
    """Read a file of /proc; nothing when its process is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 14)
    except OSError:
        return b""
    finally:
        os.close(fd)
