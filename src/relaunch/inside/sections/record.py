"""What is measured of the sections of this process, kept where a kill does not reach it."""

from __future__ import annotations

import _thread
import os
import sys
import time

from relaunch.inside.probe.notes import Notes
from relaunch.inside.sections.gpu import Gpu
from relaunch.inside.sections.layout import (
    ENDING,
    HEAD,
    OPEN,
    OPEN_AT,
    PER_FILE,
    ROW,
    ROWS,
    SIZE,
)
from relaunch.inside.sections.meter import Meter, Unheld

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Opened(Protocol):
        """A section that was entered: `high` and `gpu_high` are the most since then."""

        high: int
        gpu_high: int
        began: int


FOLDER = "sections"
"""In the folder of the trial."""
TRIAL = "RELAUNCH_TRIAL"
OTHERS = "(more sections)"
"""Stands for what comes after so many that a name must be made up anew each time."""
MOST = 500
WINDOW_NS = 100_000
"""Memory is read at most so often: what a section costs is bounded, and what it takes is seen."""
_DEAR_WINDOW_NS = 250_000
"""Where a reading costs more: of a GPU, and in a warm run."""
ALWAYS = 32
"""At the end of so many iterations of a section it always is: a few quick ones must show a leak."""
_NEVER = 1 << 62
_WARM = b"/inside/warm/main.py\0"
SAMPLE = "RELAUNCH_SECTIONS_SAMPLE"
"""Environment: seconds; so often memory is read besides, by a thread of ours."""
clock = time.perf_counter_ns
_sleep = time.sleep


class Node:
    """One section below another: its numbers, and the sections in it."""

    def __init__(self, name: str, parent: Node | None, memory: memoryview, slot: int) -> None:
        """Begin with nothing measured; `memory` is where others see it."""
        self.name = name
        self.parent = parent
        self.root: Node = self if parent is None else parent.root
        self.slot = slot
        self.inner: dict[str, Node] = {}
        self.memory = memory
        self.times = self.failed = self.total = self.own = self.most = 0
        self.least = _NEVER
        self.open = self.since = 0
        self.rss = self.peak = self.delta = 0
        self.gpu = self.gpu_peak = self.gpu_delta = 0
        self.stride, self.rows = 1, 0

    @property
    def above(self) -> int:
        """Return the slot of the section around it; -1 if there is none."""
        return -1 if self.parent is None else self.parent.slot

    def publish_open(self) -> None:
        """Show that it was entered."""
        OPEN.pack_into(self.memory, OPEN_AT, self.open, self.since)

    def publish(self) -> None:
        """Show how it stands."""
        HEAD.pack_into(
            self.memory, 0, self.times, self.failed, self.total, self.own,
            self.least if self.times else 0, self.most, self.open, self.since,
            self.rss, self.peak, self.delta, self.gpu, self.gpu_peak, self.gpu_delta, self.rows,
        )  # fmt: skip

    def add_row(self, *values: int) -> None:
        """Keep one iteration; when there are too many, every other one goes."""
        if self.rows == ROWS:
            self._thin()
            if self.times % self.stride:
                return
        ROW.pack_into(self.memory, HEAD.size + self.rows * ROW.size, self.times, *values)
        self.rows += 1

    def _thin(self) -> None:
        first, size = HEAD.size, ROW.size
        for n in range(ROWS // 2):
            old = first + 2 * n * size
            self.memory[first + n * size : first + (n + 1) * size] = self.memory[old : old + size]
        self.rows = ROWS // 2
        self.stride *= 2


class Recorder:
    """The sections of this process as a tree, and its memory."""

    def __init__(self) -> None:
        """Find out where to write: into the trial, if there is one."""
        self.lock = _thread.RLock()
        self.open: set[Opened] = set()
        self.is_warm = _is_warm()
        """Nothing may be held that a snapshot could not have: no file, no memory of others."""
        self.meter = Unheld() if self.is_warm else Meter()
        self.gpu = Gpu()
        self.due = 0
        """When memory is to be read again."""
        self.is_forked = False
        self.is_told_by_cell = False
        """A notebook says what there is to say: no table at the end."""
        self.pid = os.getpid()
        self._start()
        if not self.is_warm:
            os.register_at_fork(after_in_child=self.begin_again)
            self._sample()
        import atexit  # built into Python

        atexit.register(_at_exit, self)

    def _start(self) -> None:
        self.folder = trial_folder()
        self.notes = Notes(self.folder) if self.folder and not self.is_warm else None
        self.nodes: list[Node] = []
        self._blocks: list[memoryview] = []
        self.root = Node("", None, memoryview(bytearray(SIZE)), -1)
        self._is_told = False

    def begin_again(self) -> None:
        """Be a new process, after a fork; what that needs is done when a section is used."""
        self.lock = _thread.RLock()
        self.is_forked = True

    def renew(self) -> None:
        """Begin anew: what was measured before the fork is the parent's to tell; with the lock."""
        self.is_forked = False
        self.pid = os.getpid()
        self.meter.begin()
        self.gpu = Gpu()
        self._start()
        self._sample()
        now = clock()
        for one in self.open:
            one.began = now
            one.high = one.gpu_high = 0

    def measure(self) -> None:
        """Read the memory, and let all that is open know the most there was; with the lock."""
        meter, gpu = self.meter, self.gpu
        meter.read()
        gpu.read()
        high, gpu_high = meter.high, gpu.high
        for one in self.open:
            if one.high < high:
                one.high = high
            if one.gpu_high < gpu_high:
                one.gpu_high = gpu_high
        is_dear = gpu_high or self.is_warm
        self.due = clock() + (_DEAR_WINDOW_NS if is_dear else WINDOW_NS)

    def _sample(self) -> None:
        """Read the memory all the time, if that was asked: peaks are seen on every rung."""
        try:
            every = float(os.environ.get(SAMPLE) or 0)
            if every > 0:
                _thread.start_new_thread(self._watch, (os.getpid(), every))
        except (ValueError, RuntimeError):
            pass

    def _watch(self, pid: int, every: float) -> None:
        while os.getpid() == pid:
            _sleep(every)
            if self.open and not self.is_forked:
                with self.lock:
                    self.measure()

    def node(self, parent: Node, name: str) -> Node:
        """Return the section of this name below another, a new one if need be; with the lock."""
        found = parent.inner.get(name)
        if found is not None:
            return found
        if len(self.nodes) >= MOST:
            parent, name = self.root, OTHERS
            if name in parent.inner:
                return parent.inner[name]
        slot = len(self.nodes)
        node = parent.inner[name] = Node(name, parent, self._memory(slot), slot)
        self.nodes.append(node)
        if self.notes is not None:
            self._tell_process()
            self.notes.add("section", slot=slot, parent=node.above, name=name)
        return node

    def anew(self, node: Node) -> Node:
        """Return this process's own node for one that was the parent's; with the lock."""
        if node.parent is None:
            return self.root
        return self.node(self.anew(node.parent), node.name)

    def _memory(self, slot: int) -> memoryview:
        block, at = divmod(slot, PER_FILE)
        if block == len(self._blocks):
            self._blocks.append(self._block(block))
        return self._blocks[block][at * SIZE : (at + 1) * SIZE]

    def _block(self, number: int) -> memoryview:
        size = PER_FILE * SIZE
        if self.notes is not None:
            try:
                from relaunch.inside.probe.memory import mapped

                os.makedirs(self.folder, 0o700, exist_ok=True)
                return mapped(f"{self.folder}/{self.pid}.{number}{ENDING}", size)
            except (OSError, ImportError, AttributeError):
                pass
        return memoryview(bytearray(size))

    def _tell_process(self) -> None:
        if not self._is_told and self.notes is not None:
            from relaunch.inside.ranks import rank

            self._is_told = True
            words = [*sys.orig_argv][:20]
            self.notes.add("process", rank=rank(), argv=words, memory=self.meter.by)

    def save(self) -> None:
        """Write all at once, where it could not be shown all the time."""
        self.folder = trial_folder()
        if not self.folder:
            return
        os.makedirs(self.folder, 0o700, exist_ok=True)
        self.pid, self.notes, self._is_told = os.getpid(), Notes(self.folder), False
        self._tell_process()
        for number, block in enumerate(self._blocks):
            with open(f"{self.folder}/{self.pid}.{number}{ENDING}", "wb") as file:
                file.write(block)
        for node in self.nodes:
            self.notes.add("section", slot=node.slot, parent=node.above, name=node.name)


def _is_warm() -> bool:
    """Tell whether this is a warm run, which looks to the program like any other."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return _WARM in file.read(4096)
    except OSError:
        return False


def _at_exit(record: Recorder) -> None:
    from relaunch.inside.sections.ending import at_exit

    at_exit(record)


def trial_folder() -> str:
    """Return where the trial of this process keeps its sections; empty without a trial."""
    trial = os.environ.get(TRIAL, "")
    return f"{trial}/{FOLDER}" if trial.startswith("/") and os.path.isdir(trial) else ""


_one: list[Recorder] = []


def recorder() -> Recorder:
    """Return the one of this process."""
    if not _one:
        _one.append(Recorder())
    return _one[0]
