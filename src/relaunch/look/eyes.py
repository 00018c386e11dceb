"""All that is watched at once: trees of processes, GPUs, disks; each with what it was before."""

from __future__ import annotations

import time

from relaunch.look.beside import point
from relaunch.look.disks import disk
from relaunch.look.gpus import open_gpus, per_process
from relaunch.look.series import Writer
from relaunch.look.trees import Trees
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from relaunch.look.disks import Disk
    from relaunch.look.gpus import Gpu, Gpus
    from relaunch.look.series import Point
    from relaunch.look.trees import Matches, Tree

_KEPT = 600
"""Moments of each tree that are remembered, the whole time among them."""
_GPU_S = 0.5
_GPU_SHARE = 0.05
_DISK_S = 1.0


class Wanted(Record):
    """What to look at."""

    matches: Matches | None = None
    without: Collection[int] = ()
    gpu: bool | None = None
    """None: where there are any."""
    disks: Sequence[str] = ()


class Eyes:
    """Looks at what is wanted, as often as it is told."""

    def __init__(self, wanted: Wanted, *, began: float) -> None:
        """Open the GPUs, if they are wanted."""
        self._wanted = wanted
        self.began = began
        self.when = time.time()
        matches = wanted.matches
        self._trees = Trees(matches, without=wanted.without) if matches is not None else None
        self._gpus: Gpus | None = None if wanted.gpu is False else open_gpus()
        self._gpu_at = self._disk_at = began
        self.gpus: list[Gpu] = []
        self.gpu_past: dict[int, list[tuple[float, int]]] = {}
        self.disks: list[Disk] = []
        self.missing: dict[str, str] = {}
        """Path to why its disk cannot be looked at."""
        self._past: dict[int, Writer] = {}

    @property
    def has_gpus(self) -> bool:
        """Tell whether there is a GPU to look at."""
        return self._gpus is not None

    @property
    def trees(self) -> list[Tree]:
        """The trees that live."""
        return self._trees.trees if self._trees is not None else []

    @property
    def ended(self) -> list[Tree]:
        """The last trees that ended."""
        return self._trees.ended if self._trees is not None else []

    def look(self, now: float) -> None:
        """Look at everything that is due."""
        if self._gpus is not None and now >= self._gpu_at:
            began = time.monotonic()
            self.gpus = self._gpus.look()
            self._gpu_at = now + max(_GPU_S, (time.monotonic() - began) / _GPU_SHARE)
            for gpu in self.gpus:
                past = self.gpu_past.setdefault(gpu.index, [])
                past.append((now - self.began, gpu.used))
                del past[:-_KEPT]
        if now >= self._disk_at:
            self._disk_at = now + _DISK_S
            self._look_at_disks()
        if self._trees is None:
            return
        on_gpu = per_process(self.gpus)
        for tree in self._trees.look(now):
            tree.count_shared(now)
            if self._gpus is not None:
                tree.give_gpu(*on_gpu)
            past_of = self._past.get(id(tree))
            if past_of is None:
                past_of = self._past[id(tree)] = Writer("", self.when, most=_KEPT)
            past_of.add(point(tree, now - self.began))
        kept = {id(tree) for tree in (*self.trees, *self.ended)}
        self._past = {key: past for key, past in self._past.items() if key in kept}

    def _look_at_disks(self) -> None:
        self.disks = []
        self.missing = {}
        for path in self._wanted.disks:
            try:
                self.disks.append(disk(path))
            except OSError as error:
                self.missing[path] = error.strerror or str(error)

    def past(self, tree: Tree) -> list[Point]:
        """Return what a tree used before."""
        past = self._past.get(id(tree))
        return past.points if past is not None else []

    def close(self) -> None:
        """Let everything go."""
        if self._trees is not None:
            self._trees.close()
        if self._gpus is not None:
            self._gpus.close()
