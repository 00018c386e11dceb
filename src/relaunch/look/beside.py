"""A companion that keeps what the program uses: a process of ours looks, and writes it down."""

from __future__ import annotations

import os
import resource
import select
import time

from relaunch.errors import PlaceError
from relaunch.jsontext import dumps, loads
from relaunch.look.series import FILE, Writer
from relaunch.look.tree import children
from relaunch.look.trees import Tree
from relaunch.look.usage import PROC, Process, command, has_in_environment, read_io, read_peak
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper, write_all
from relaunch.proc.tree import MARKER
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from relaunch.look.gpus import Gpus

QUICKEST_S, SLOWEST_S = 0.05, 1.0
_LIVELY = 0.01
"""Memory that changes by so much, or CPU by so many cores times ten, is worth a closer look."""
_FIRST_S = 2.0
"""So long it is looked at as often as can be: it imports."""
_GPU_S = 0.5
_GPU_SHARE = 0.02


class Beside(Companion):
    """Samples the tree of the program from 1 to 20 times a second, more often where it changes."""

    def __init__(self, folder: str, *, gpu: bool = True) -> None:
        """Keep the series in the trial's `folder`; without one, only what it was in all."""
        self._folder, self._gpu = folder, gpu
        self._helper: Helper | None = None
        self._used: dict[str, Any] = {}
        self._before = _Collected()

    def prepare(self) -> Mapping[str, str]:
        """Start our process, before the program is."""
        if not os.path.exists(f"{PROC}/self/stat"):
            raise PlaceError(
                "--watch reads /proc, which this system does not have", hint="run it without"
            )
        self._helper = Helper(self._work)
        return {}

    def helpers(self) -> list[int]:
        """Name our process."""
        return [self._helper.pid] if self._helper is not None else []

    def launched(self, pid: int) -> None:
        """Tell our process whom to look at."""
        self._before = _of_children()
        if self._helper is not None:
            self._helper.say(b"%d\n" % pid)

    def ended(self) -> None:
        """Hear what it used in all."""
        if self._helper is None:
            return
        now = _of_children()
        try:
            used = loads(self._helper.stop().decode())
        except (ValueError, UnicodeDecodeError):  # it was killed; the file has what it saw
            return
        before = self._before
        used["cpu_s"] = round(max(used["cpu_s"], now.cpu_s - before.cpu_s), 3)
        for name in ("read_bytes", "write_bytes"):
            more = getattr(now, name) - getattr(before, name)
            used[name] = max(used.get(name, 0), more)
        # The kernel's own record, exact also for a peak between two looks. A child of ours begins
        # as a copy of us, so that a smaller record may be ours.
        if now.peak_bytes > max(before.peak_bytes, _own_peak(), used["peak_bytes"]):
            used["peak_bytes"] = now.peak_bytes
        self._used = used

    def used(self) -> Mapping[str, Any]:
        """Say what it used, as `Outcome.usage` has it."""
        return self._used

    def _work(self, socket: int) -> None:
        """Sample until the socket is at its end. Only in our process beside the program."""
        pid = b""
        while not pid.endswith(b"\n"):
            more = os.read(socket, 64)
            if not more:
                return
            pid += more
        path = os.path.join(self._folder, FILE) if self._folder else ""
        sampling = Sampling(int(pid), path, marker=f"{MARKER}={self._folder}", gpu=self._gpu)
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        wait_s = 0.0
        while not poll.poll(wait_s * 1000):
            wait_s = sampling.look(time.monotonic())
        write_all(socket, dumps(sampling.finish()).encode())


class Sampling:
    """Looks at one program, and keeps what it sees."""

    def __init__(self, pid: int, path: str, *, marker: str = "", gpu: bool = False) -> None:
        """Begin with the process that becomes the program."""
        self._began = time.monotonic()
        self._parent = os.getppid()
        self._marker = marker
        self._writer = Writer(path, time.time())
        self._wait_s = QUICKEST_S
        self._gpu_at = 0.0 if gpu else float("inf")
        self._gpus: Gpus | None = None
        self._asked_gpus = False
        self._strangers: set[int] = set()
        self._tree: Tree | None = None
        self._gpu_peak = 0
        self._most_fds = 0
        self._looks = 0
        self._last = (0, 0.0, 0)
        self._ours = command(self._parent)
        self._became = False
        self._start(pid)

    def _start(self, pid: int) -> None:
        try:
            self._tree = Tree(Process(pid), self._began)
        except OSError:  # it was quicker than we are
            pass

    def look(self, now: float) -> float:
        """Look once; returns how long to wait until the next time."""
        tree = self._tree
        if tree is None or tree.ended is not None:
            return SLOWEST_S
        if not self._became:
            # Until it becomes the program, it is a copy of rl, and its memory is ours.
            self._became = command(tree.root.pid) != self._ours
            if not self._became and now - self._began < _FIRST_S:
                return QUICKEST_S / 10
            tree.close()
            self._start(tree.root.pid)
            tree = self._tree or tree
        self._adopt(tree)
        tree.look(now)
        if tree.ended is not None:
            return SLOWEST_S
        for one in tree.members.values():
            one.look_at_io()
        tree.count_shared(now)
        self._look_at_gpus(tree, now)
        self._looks += 1
        self._most_fds = max(self._most_fds, tree.fds or 0)
        self._writer.add(point(tree, now - self._began))
        return self._pace(tree, now)

    def _adopt(self, tree: Tree) -> None:
        """Take those in whose parents left: they are below rl, and carry the mark of the trial."""
        if not self._marker:
            return
        for pid in children(self._parent):
            if pid in tree.members or pid in self._strangers or pid == os.getpid():
                continue
            if has_in_environment(pid, self._marker):
                try:
                    tree.members[pid] = Process(pid)
                except OSError:
                    pass
            else:
                self._strangers.add(pid)

    def _look_at_gpus(self, tree: Tree, now: float) -> None:
        if now < self._gpu_at:
            return
        from relaunch.look.gpus import open_gpus, per_process

        if not self._asked_gpus:
            self._asked_gpus = True
            self._gpus = open_gpus()
        if self._gpus is None:
            self._gpu_at = float("inf")
            return
        began = time.monotonic()
        tree.give_gpu(*per_process(self._gpus.look()))
        self._gpu_peak = max(self._gpu_peak, tree.gpu_bytes or 0)
        self._gpu_at = now + max(_GPU_S, (time.monotonic() - began) / _GPU_SHARE)

    def _pace(self, tree: Tree, now: float) -> float:
        rss, cpu, count = self._last
        rates = tree.rates()
        self._last = (tree.rss, rates.cpu_percent, len(tree.members))
        moved = abs(tree.rss - rss) > _LIVELY * max(rss, 1)
        lively = moved or count != len(tree.members) or abs(rates.cpu_percent - cpu) > 10
        if lively or now - self._began < _FIRST_S:
            self._wait_s = max(QUICKEST_S, self._wait_s / 4)
        else:
            self._wait_s = min(SLOWEST_S, self._wait_s * 1.25)
        return self._wait_s

    def finish(self) -> dict[str, Any]:
        """Write the rest, and say what it used in all."""
        self._writer.close()
        tree = self._tree
        if tree is None:
            return {"peak_bytes": 0, "peak_at_s": 0.0, "cpu_s": 0.0, "looks": 0}
        found: dict[str, Any] = {
            "peak_bytes": tree.peak,
            "peak_at_s": round(tree.peak_at - self._began, 3),
            "cpu_s": round(tree.cpu_s, 3),
            "processes": tree.most_processes,
            "threads": tree.most_threads,
            "looks": self._looks,
        }
        seen = {
            "peak_pss_bytes": tree.peak_pss,
            "fds": self._most_fds,
            "read_bytes": tree.read_bytes,
            "write_bytes": tree.write_bytes,
            "gpu_peak_bytes": self._gpu_peak,
        }
        found |= {name: value for name, value in seen.items() if value}
        if self._writer.failed:
            found["not_kept"] = self._writer.failed
        return found


def point(tree: Tree, t: float) -> list[float]:
    """Return one moment of a tree as a series keeps it."""
    return [
        t,
        tree.rss,
        tree.pss or 0,
        tree.cpu_s,
        tree.read_bytes or 0,
        tree.write_bytes or 0,
        tree.threads,
        tree.fds or 0,
        len(tree.members),
        tree.gpu_bytes or 0,
        tree.gpu_percent or 0,
    ]


class _Collected(Record):
    """What all processes used that we collected the end of."""

    cpu_s: float = 0.0
    peak_bytes: int = 0
    """The most that one of them had."""
    read_bytes: int = 0
    write_bytes: int = 0


def _own_peak() -> int:
    """Return the most memory that we had; not `ru_maxrss`, which whoever started us may have set.

    The kernel keeps that one through `exec`: an editor or an agent of a gigabyte would hide any
    smaller peak of the program.
    """
    with open(f"{PROC}/self/status", "rb") as file:
        return read_peak(file.read())


def _of_children() -> _Collected:
    """Ask the kernel, which counts them exactly, also what is done between two looks."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    read = written = 0
    try:
        # The process counts for us and for all that we collected, its only thread for us alone.
        with open(f"{PROC}/self/io", "rb") as both, open(f"{PROC}/thread-self/io", "rb") as own:
            (all_read, all_written), (our_read, our_written) = map(
                read_io, (both.read(), own.read())
            )
        read, written = max(0, all_read - our_read), max(0, all_written - our_written)
    except OSError:
        pass
    return _Collected(
        cpu_s=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss << 10,
        read_bytes=read,
        write_bytes=written,
    )
