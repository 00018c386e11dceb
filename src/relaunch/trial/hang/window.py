"""The second half of a silence: who used CPU meanwhile, who moved, whose stack stayed the same."""

from __future__ import annotations

import time

from relaunch.look.stacks.frames import is_library
from relaunch.look.stacks.ladder import FAULTHANDLER, KERNEL, Asked, look
from relaunch.look.waits import threads
from relaunch.look.waits.proc import link, read
from relaunch.proc.left_out import left_out
from relaunch.trial.hang.grading import Seen, own_part

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from relaunch.look.stacks import Frame, Thread
    from relaunch.look.waits.meaning import Wait

    Place = tuple[tuple[str, int, str], ...]

_SAMPLES, _LEAST_SAMPLES, _LEAST_S = 8, 3, 0.25
_MOST_PYTHONS = 12
_SHARE = 100
"""Taking stacks uses at most one part in so many of the time."""
_BYTES = 64 << 10
"""Whoever reads or writes so much in a second is at work."""
_BUSY = 0.05
_HZ = 100


class Window:
    """What was seen since it was opened. A program that is seen to work is not looked at again."""

    def __init__(self, members: Sequence[int], *, length_s: float) -> None:
        """Begin to look."""
        self._began = self._next = time.monotonic()
        self._length_s = length_s
        self._first = threads.look(members)
        self._cpu = all_ticks(members)
        self._bytes = moved_bytes(members)
        self._each = {pid: threads.ticks([pid]) for pid in members}
        self._ways: dict[int, str] = {}
        """By which way each process is read."""
        self._places: dict[tuple[int, int], object] = {}
        self._elsewhere: dict[tuple[int, int], int] = {}
        self._samples = 0
        self.works = False
        """Some thread of Python was at another line, or had another value."""
        self.stacks: dict[int, list[Thread]] = {}
        """The last that were taken."""

    @property
    def is_full(self) -> bool:
        """It is long enough to judge."""
        is_old = time.monotonic() - self._began >= self._length_s
        return is_old and (self.works or self._samples >= _LEAST_SAMPLES)

    def sample(self, members: Sequence[int]) -> None:
        """Take the stacks of Python processes, if it is time to; those with most CPU first."""
        now = time.monotonic()
        if self.works or now < self._next:
            return
        self._samples += 1
        pythons = sorted(filter(is_python, members), key=lambda pid: -threads.ticks([pid]))
        for pid in pythons[:_MOST_PYTHONS]:
            if not self.works:
                self._sample(pid)
        took_s = time.monotonic() - now
        pause_s = max(_LEAST_S, self._length_s / _SAMPLES, took_s * _SHARE)
        most_s = max(self._length_s / _LEAST_SAMPLES, _LEAST_S)
        self._next = time.monotonic() + min(pause_s, most_s)

    def _sample(self, pid: int) -> None:
        without = left_out()
        if not self._is_busy(pid):  # to ask it by a signal would wake it
            without |= {FAULTHANDLER}
        found = look([pid], Asked(values=True, pause=False, without=without))
        way = found[0].read_by if found else ""
        if way in ("", KERNEL) or self._ways.setdefault(pid, way) != way:
            return  # of what two ways say nothing can be compared
        self.stacks[pid] = [*found[0].threads]
        for tid, place in _places(self.stacks[pid]).items():
            key = pid, tid
            if self._places.setdefault(key, place) != place:
                self._elsewhere[key] = self._elsewhere.get(key, 0) + 1
                self.works = self.works or self._elsewhere[key] > self._allowed(pid)

    def _allowed(self, pid: int) -> int:
        """Return how often it may be elsewhere: who polls is caught between two sleeps at times."""
        return 0 if self._is_busy(pid) else 1

    def _is_busy(self, pid: int) -> bool:
        age_s = time.monotonic() - self._began
        return threads.ticks([pid]) - self._each.get(pid, 0) > _BUSY * age_s * _HZ

    def seen(self, members: Sequence[int], waits: Mapping[tuple[int, int], Wait]) -> list[Seen]:
        """Return all threads, with what they did meanwhile."""
        age_s = max(time.monotonic() - self._began, 0.01)
        found = []
        for key, one in threads.look(members).items():
            before = self._first.get(key)
            is_known = before is not None and before.since == one.since
            ticks = one.ticks - (before.ticks if before and is_known else 0)
            named = next((t for t in self.stacks.get(one.pid, ()) if t.id == one.tid), None)
            if key in waits and one.state not in "ZX":
                found.append(
                    Seen(
                        pid=one.pid,
                        tid=one.tid,
                        wait=waits[key],
                        name=named.name if named else "",
                        frames=own_part(named.frames) if named else (),
                        moved=before is None or not is_known or before.switches != one.switches,
                        is_ready=one.state == "R",
                        cpu=ticks / _HZ / age_s,
                        same=not self.works,
                    )
                )
        return found

    def read_whole(self) -> frozenset[int]:
        """Return the processes of which it is known that they stay where they are.

        One that tells its own stacks tells no values: on one line it may well do something else
        each time. Only for one that has a GPU that says enough: there it waits for that.
        """
        return frozenset(
            pid for pid in self.stacks if self._ways[pid] != FAULTHANDLER or has_gpu(pid)
        )

    def is_busy_elsewhere(self, members: Sequence[int], seen: Iterable[Seen]) -> bool:
        """Tell whether processes that ended meanwhile used CPU, or much was read or written."""
        age_s = max(time.monotonic() - self._began, 0.01)
        known = sum(one.cpu for one in seen)
        gone = (all_ticks(members) - self._cpu) / _HZ / age_s - known
        rate = (moved_bytes(members) - self._bytes) / age_s
        return gone > 0.1 or rate > _BYTES


def all_ticks(pids: Iterable[int]) -> int:
    """Return the CPU time of processes and of their children that ended, in hundredths."""
    total = 0
    for pid in pids:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        total += sum(map(int, fields[11:15])) if len(fields) > 14 else 0
    return total


def moved_bytes(pids: Iterable[int]) -> int:
    """Return what processes read and wrote."""
    total = 0
    for pid in pids:
        words = read(f"/proc/{pid}/io").split()
        total += int(words[1]) + int(words[3]) if len(words) > 3 else 0
    return total


def is_python(pid: int) -> bool:
    """Tell whether a process runs Python, by its program or by its library."""
    program = link(f"/proc/{pid}/exe").rpartition("/")[2]
    return program.startswith("python") or b"/libpython" in read(f"/proc/{pid}/maps")


def has_gpu(pid: int) -> bool:
    """Tell whether a process has the driver of a GPU loaded."""
    return b"/libcuda.so" in read(f"/proc/{pid}/maps")


def _places(threads: Sequence[Thread]) -> dict[int, object]:
    """Return where each thread is; those that nobody can tell apart have one place, together."""
    found: dict[int, object] = {one.id: _place(one.frames) for one in threads if one.id}
    if rest := [_place(one.frames) for one in threads if not one.id]:
        found[0] = rest
    return found


def _place(frames: Sequence[Frame]) -> object:
    """Return where a thread is: its lines, and the plain values of frames that are no library's."""
    return tuple((one.file, one.line, one.function, _values(one)) for one in frames)


def _values(frame: Frame) -> tuple[tuple[str, str], ...]:
    if is_library(frame.file):
        return ()
    return tuple((name, text) for name, text in frame.locals.items() if " at 0x" not in text)
