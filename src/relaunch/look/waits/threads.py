"""All threads of a tree at one moment: who runs, who sleeps, and whether anybody moved since.

The kernel counts how often each thread was put to sleep and taken off a core. As long as all the
counts stay and all threads sleep, nobody ran in between: what was read meanwhile is one moment.
"""

from __future__ import annotations

import os
import time

from relaunch.look.waits.proc import read
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

_TICK_NS = 10_000_000
_BUSY, _RUNNABLE = 0.4, 0.8
"""Shares of the time: of one core, and of one thread that has it or waits for it."""


class Thread(Record):
    """One thread, as the kernel counts it."""

    pid: int
    tid: int
    state: str
    """R runs, S sleeps, D waits for the kernel, T and t are stopped, Z ended."""
    switches: int
    """How often it went to sleep or was taken off its core."""
    ticks: int
    """CPU time, in hundredths of a second."""
    since: int
    """When it was started: another thread may get the same number."""

    @property
    def is_main(self) -> bool:
        """The first thread of its process."""
        return self.pid == self.tid


def look(pids: Iterable[int]) -> dict[tuple[int, int], Thread]:
    """Return all threads of these processes as they are now."""
    found = {}
    for pid in pids:
        for tid in _tasks(pid):
            one = _thread(pid, tid)
            if one is not None:
                found[pid, tid] = one
    return found


def _tasks(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _thread(pid: int, tid: int) -> Thread | None:
    folder = f"/proc/{pid}/task/{tid}"
    switches = _switches(read(f"{folder}/status"))
    return read_stat(pid, tid, read(f"{folder}/stat"), switches)


def read_stat(pid: int, tid: int, text: bytes, switches: int) -> Thread | None:
    """Read the stat of a thread; None when it is gone."""
    fields = text.rpartition(b")")[2].split()
    if len(fields) < 20:
        return None
    return Thread(
        pid=pid,
        tid=tid,
        state=fields[0].decode(),
        switches=switches,
        ticks=int(fields[11]) + int(fields[12]),
        since=int(fields[19]),
    )


def _switches(status: bytes) -> int:
    lines = [line for line in status.split(b"\n") if b"ctxt_switches" in line]
    return sum(int(line.split()[1]) for line in lines)


def ticks(pids: Iterable[int]) -> int:
    """Return the CPU time of these processes, in hundredths of a second: one small read each."""
    total = 0
    for pid in pids:
        fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        total += int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0
    return total


class Work(Record):
    """What some processes had done by one moment."""

    at_ns: int
    ticks: int
    runnable_ns: Mapping[tuple[int, int], int]
    """How long each thread ran or waited for a core, where the kernel counts that."""


def work(pids: Collection[int]) -> Work:
    """Return what these processes have done until now."""
    found = {}
    for pid in pids:
        for tid in _tasks(pid):
            fields = read(f"/proc/{pid}/task/{tid}/schedstat").split()
            if len(fields) > 1:
                found[pid, tid] = int(fields[0]) + int(fields[1])
    return Work(at_ns=time.monotonic_ns(), ticks=ticks(pids), runnable_ns=found)


def is_at_work(before: Work, after: Work) -> bool:
    """Tell whether a thread ran in between, and not only woke now and then.

    On a busy machine it may run for little of the time, but it wants to for all of it.
    """
    passed_ns = after.at_ns - before.at_ns
    if (after.ticks - before.ticks) * _TICK_NS > _BUSY * passed_ns:
        return True
    had = before.runnable_ns
    return any(
        now_ns - had.get(thread, now_ns) > _RUNNABLE * passed_ns
        for thread, now_ns in after.runnable_ns.items()
    )


def moved(
    before: Mapping[tuple[int, int], Thread], after: Mapping[tuple[int, int], Thread]
) -> set[tuple[int, int]] | None:
    """Return who ran in between, or runs; None when not even the same threads are there."""
    if before.keys() != after.keys():
        return None
    found = {key for key, one in after.items() if one != before[key] or _is_awake(one)}
    return found | {key for key, one in before.items() if _is_awake(one)}


def _is_awake(one: Thread) -> bool:
    return one.state not in "SDTtZX"
