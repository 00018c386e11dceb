"""What trees of processes use together: found by who matches, followed from child to child."""

from __future__ import annotations

import os
import time

from relaunch.look.tree import proportional_bytes
from relaunch.look.usage import Process, command, pids, stat_of
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    Matches = Callable[[int, str], bool]
    """Whether this process, so named, is to be watched; asked anew when it may be another."""

_SCAN_S = 0.25
"""New processes are looked for so often; below one that is watched they are seen at once."""
_YOUNG_S = 2.0
"""A process so young may be about to become another program."""
_AGAIN_S = 5.0
"""And any may: all are asked for anew so often."""
_RATE_S = 1.0
"""Rates are those of the last second: the kernel counts CPU in hundredths of one."""
_SHARED_SHARE = 0.01
"""Of our time, what counting shared pages may cost: the kernel walks every page for it."""
_SHARED_S = 2.0
_OVER = "ZX"
"""States of a process that only waits to be collected."""


class Rates(Record):
    """What went on in the last second."""

    cpu_percent: float = 0.0
    """Of one core."""
    read_s: float = 0.0
    write_s: float = 0.0


class Tree:
    """One process that matched and all below it; who was of it once stays, until it ends."""

    def __init__(self, root: Process, now: float) -> None:
        """Begin with its root."""
        self.root = root
        self.members: dict[int, Process] = {root.pid: root}
        self.began = now
        self.ended: float | None = None
        self.peak = self.peak_pss = self.rss = 0
        self.peak_at = now
        self.pss: int | None = None
        self.threads = 1
        self.fds: int | None = None
        self.cpu_s = 0.0
        self.read_bytes: int | None = None
        self.write_bytes: int | None = None
        self.gpu_bytes: int | None = None
        self.gpu_percent: float | None = None
        self.most_processes = self.most_threads = 1
        self._lost_cpu_s = 0.0
        self._lost_io = [0, 0]
        self._shared_at = now
        self._past: list[tuple[float, float]] = []

    def look(self, now: float, without: Collection[int] = ()) -> list[Process]:
        """Read every member, and find new ones; returns these."""
        found: list[Process] = []
        todo = [*self.members.values()]
        while todo:
            process = todo.pop()
            if not process.look(now):
                self._leave(process)
                continue
            for pid in process.children(now):
                if pid not in self.members and pid not in without:
                    try:
                        child = Process(pid)
                    except OSError:
                        continue
                    self.members[pid] = child
                    found.append(child)
                    todo.append(child)
        if self.members:
            self._add_up(now)
        if all(one.state in _OVER for one in self.members.values()):
            self.ended = self.ended or now
            self.close()
        return found

    def _leave(self, process: Process) -> None:
        """Keep what a process used, unless its parent, who collected it, has that already."""
        del self.members[process.pid]
        if process.parent not in self.members:
            self._lost_cpu_s += process.cpu_s
            self._lost_io[0] += process.read_bytes or 0
            self._lost_io[1] += process.write_bytes or 0

    def _add_up(self, now: float) -> None:
        members = self.members.values()
        rss, cpu_s, threads, record = 0, self._lost_cpu_s, 0, 0
        for one in members:
            rss += one.rss
            cpu_s += one.cpu_s
            threads += one.threads
            record = max(record, one.peak)
        self.rss, self.threads = rss, threads
        self.cpu_s = max(self.cpu_s, cpu_s)
        if max(rss, record) > self.peak:
            self.peak, self.peak_at = max(rss, record), now
        self.most_processes = max(self.most_processes, len(members))
        self.most_threads = max(self.most_threads, threads)
        files = [one.fds for one in members if one.fds is not None]
        self.fds = sum(files) if files else None
        self._add_up_io(members)
        self._past.append((now, self.cpu_s))
        while len(self._past) > 2 and self._past[1][0] <= now - _RATE_S:
            del self._past[0]

    def _add_up_io(self, members: Iterable[Process]) -> None:
        known = [one for one in members if one.read_bytes is not None]
        if known:
            read = self._lost_io[0] + sum(one.read_bytes or 0 for one in known)
            written = self._lost_io[1] + sum(one.write_bytes or 0 for one in known)
            self.read_bytes = max(self.read_bytes or 0, read)
            self.write_bytes = max(self.write_bytes or 0, written)

    def rates(self) -> Rates:
        """Return what it did in the last second."""
        if self.ended is not None or len(self._past) < 2:
            return Rates()
        (before, cpu_s), (now, last) = self._past[0], self._past[-1]
        members = self.members.values()
        return Rates(
            cpu_percent=100 * (last - cpu_s) / max(now - before, 1e-6),
            # Of each process since it was last asked: that is about every second, so that between
            # two looks of ours nobody may have been, or some twice.
            read_s=sum(one.read_s for one in members),
            write_s=sum(one.write_s for one in members),
        )

    def count_shared(self, now: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Count what its processes have, shared pages once, where that costs little by and by."""
        if now < self._shared_at or not self.members:
            return
        began = clock()
        self.pss = proportional_bytes(self.members)
        self.peak_pss = max(self.peak_pss, self.pss)
        self._shared_at = now + max(_SHARED_S, (clock() - began) / _SHARED_SHARE)

    def give_gpu(self, used: dict[int, int], busy: dict[int, float]) -> None:
        """Take what each process has on GPUs."""
        mine = [used[pid] for pid in self.members if pid in used]
        self.gpu_bytes = sum(mine) if mine or used else None
        rates = [busy[pid] for pid in self.members if pid in busy]
        self.gpu_percent = sum(rates) if rates else None

    def close(self) -> None:
        """Let go of the files of its processes."""
        for one in self.members.values():
            one.close()


class Trees:
    """All trees whose root matches, also those that begin later."""

    def __init__(
        self, matches: Matches, *, without: Collection[int] = (), scan_s: float = _SCAN_S
    ) -> None:
        """Watch who matches; those in `without` belong to no tree."""
        self._matches = matches
        self._without = without
        self._scan_s = scan_s
        self._scan_at = self._again_at = 0.0
        self._seen: set[int] = set()
        self._young: dict[int, float] = {}
        self.trees: list[Tree] = []
        self.ended: list[Tree] = []
        """The last that ended, oldest first."""

    def look(self, now: float) -> list[Tree]:
        """Look at all of them, and for new ones."""
        if now >= self._scan_at:
            self._scan_at = now + self._scan_s
            self._scan(now)
        for tree in self.trees:
            for child in tree.look(now, self._without):
                self._seen.add(child.pid)
        self.ended += [tree for tree in self.trees if tree.ended is not None]
        del self.ended[:-20]
        self.trees = [tree for tree in self.trees if tree.ended is None]
        return self.trees

    def _scan(self, now: float) -> None:
        there = set(pids())
        if now >= self._again_at:
            self._again_at = now + _AGAIN_S
            asked = there
        else:
            self._young = {p: since for p, since in self._young.items() if now - since < _YOUNG_S}
            asked = (there - self._seen) | (self._young.keys() & there)
        for pid in there - self._seen:
            self._young[pid] = now
        self._seen = there
        members = {pid: tree for tree in self.trees for pid in tree.members}
        found: dict[int, int] = {}
        parents: dict[int, int] = {}
        for pid in sorted(asked - members.keys()):
            if pid in self._without or (stat := stat_of(pid)) is None or stat.state in _OVER:
                continue
            parents[pid] = stat.parent
            if stat.parent in members and pid not in members:
                self._join(members, pid, stat.parent)
            elif self._matches(pid, stat.name):
                found[pid] = stat.parent
        for pid in found:
            if not _any_above(pid, parents, found) and pid not in members:
                try:
                    tree = Tree(Process(pid), now)
                except OSError:
                    continue
                self.trees.append(tree)
                tree.look(now, self._without)
                members |= dict.fromkeys(tree.members, tree)

    @staticmethod
    def _join(members: dict[int, Tree], pid: int, parent: int) -> None:
        try:
            members[parent].members[pid] = Process(pid)
        except OSError:
            return
        members[pid] = members[parent]

    def close(self) -> None:
        """Let go of all files."""
        for tree in self.trees:
            tree.close()


def _any_above(pid: int, parents: dict[int, int], among: Collection[int]) -> bool:
    at, steps = parents.get(pid, 0), 0
    while at and steps < 1000:
        if at in among:
            return True
        if at not in parents:
            stat = stat_of(at)
            parents[at] = stat.parent if stat else 0
        at, steps = parents[at], steps + 1
    return False


def lineage(pid: int) -> list[int]:
    """Return a process and all above it."""
    found: list[int] = []
    while pid and pid not in found:
        found.append(pid)
        stat = stat_of(pid)
        pid = stat.parent if stat else 0
    return found


def is_rl(pid: int) -> bool:
    """Tell whether a process is rl itself, whose words are full of other programs' names."""
    words = [os.path.basename(word) for word in command(pid)[:4]]
    runs_us = "-m" in words and words[words.index("-m") + 1 : words.index("-m") + 2] == ["relaunch"]
    return runs_us or "rl" in words[:2]
