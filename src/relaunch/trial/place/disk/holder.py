"""A process of ours that has the small disks, and sees how full they get.

The program enters its mounts. Nothing is left of them when it and the program are gone: no mount,
no folder, whoever is killed.
"""

from __future__ import annotations

import os
import select
import sys

from relaunch.jsontext import dumps
from relaunch.proc.namespace import has_many_ids, is_first, let_go_of_root, own_mounts
from relaunch.proc.prctl import die_with_parent
from relaunch.trial.place.disk.mounted import (
    Mounted,
    NotThere,
    bind,
    is_inside,
    show_through,
)
from relaunch.trial.place.disk.others import now
from relaunch.trial.place.disk.words import OVERLAY, TMPFS, Fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Collection, Sequence
    from typing import Any

    from relaunch.recipe import SmallDisk
    from relaunch.trial.place.disk.mapped import Mapped
    from relaunch.trial.place.disk.mounted import Layer
else:
    import _signal

IDS, GO, KEEP = b"ids", b"go", b"keep"
_MOST_TEXTS = 5
_MOST_CALLS = 20_000
_LOOK_MS = ((0.5, 100), (0.05, 25), (0.0, 5))
"""With more than this share free, look again after so long: who fills it is seen in time."""


class Holder:
    """What runs in that process."""

    def __init__(
        self, disks: Sequence[SmallDisk], *, ours: Sequence[str], needed: Sequence[str],
        without: Collection[str], keep: bool,
    ) -> None:  # fmt: skip
        """Let the folders `ours` be what they are outside, and never hide a file in `needed`."""
        self.keep = keep
        self.began = now()
        self.mapped: dict[Layer, Mapped] = {}
        self.disks = sorted(disks, key=lambda one: one.path)
        self.ours = ours
        self.needed = needed
        self.without = without
        self.made: list[Mounted] = []
        self.fills: list[Fill] = []
        self.has_all_ids = True
        self.moved: dict[str, bool] = {}
        """Folders that the program does not see as small any more: was it ended for that?"""

    def work(self, socket: int) -> None:
        """Make them, say which way each is made, watch them until told, and say how full they were.

        First it may say that it needs ids, and waits for an answer: `all` or `own`.
        """

        def ask() -> None:
            os.write(socket, IDS)
            self.has_all_ids = os.read(socket, 16) == b"all"

        mapped = _mapped_now() if self.keep else set()
        try:
            answer = self._make(own_mounts(ask))
            if self.keep:
                self._see_mapped(mapped)
        except NotThere as error:
            answer = {"failed": _why(error), "is_there": False}
        except OSError as error:
            answer = {"failed": _why(error)}
        die_with_parent(_signal.SIGKILL)  # forgotten with the old ids
        os.write(socket, dumps(answer).encode())
        if "failed" in answer:
            return
        order = self._watch(socket)
        self._look()
        self._see_moved()
        fills = [{name: getattr(one, name) for name in Fill._fields} for one in self.fills]
        said: dict[str, Any] = {"fills": fills, "moved": self.moved}
        if order == KEEP:
            die_with_parent(0)  # a copy that was begun is finished
            said["kept"] = self._keep()
        os.write(socket, dumps(said).encode())

    def _make(self, made_user: bool) -> dict[str, Any]:
        in_user = made_user or not is_first()
        old_root = os.open("/", os.O_PATH | os.O_DIRECTORY)
        paths = [one.path for one in self.disks]
        has_own = not (self.has_all_ids and has_many_ids())
        opened = [
            Mounted(
                one,
                [p for p in paths if p != one.path],
                in_user=in_user,
                has_own=has_own,
                began=self.began,
            )
            for one in self.disks
        ]
        ours = show_through(self.ours, opened)
        ways, why = [], {}
        for one in opened:
            tried = self._climb(one)
            ways.append(one.way)
            if tried:
                why[one.disk.path] = tried
        self.made = [one for one in opened if one.way]
        bind([(path, fd) for path, fd in ours if self._hides(path)])
        for one in self.made:
            one.settle()
        if "/" in (one.disk.path for one in self.made):
            let_go_of_root(old_root)
        self.fills = [_fill(one) for one in self.made]
        return {"ways": dict(zip(paths, ways, strict=True)), "why": why,
                "empty": [one.disk.path for one in opened if one.is_empty()],
                "foreign": sum(one.foreign for one in opened)}  # fmt: skip

    def _see_mapped(self, mapped: Collection[tuple[str, int]]) -> None:
        from relaunch.trial.place.disk.mapped import Mapped

        layers = [layer for one in self.made for layer in one.layers if layer.attributes]
        self.mapped = {layer: Mapped(layer.real, mapped) for layer in layers}

    def _hides(self, path: str) -> bool:
        return any(is_inside(path, one.disk.path) for one in self.made)

    def _climb(self, one: Mounted) -> dict[str, str]:
        """Take the first way that works; say why the others do not."""
        tried: dict[str, str] = {}
        # Over an empty folder a plain disk shows all there is, and is nearer to a real one.
        for way in (TMPFS, OVERLAY) if one.is_empty() else (OVERLAY, TMPFS):
            if way in self.without:
                tried[way] = "left out"
                continue
            hidden = [p for p in self.needed if is_inside(p, one.disk.path)]
            if way == TMPFS and hidden and not one.is_empty():
                tried[way] = f"it would hide {hidden[0]}"
                continue
            try:
                one.make(way)
                break
            except NotThere:
                raise
            except OSError as error:
                tried[way] = _why(error)
        return tried

    def _watch(self, socket: int) -> bytes:
        """Look how full they are, and where, until somebody says something, or is gone."""
        from relaunch.trial.place.disk.moved import Signs

        poll = select.poll()
        poll.register(socket, select.POLLIN)
        signs = Signs({one.disk.path: one.layers[0].real for one in self.made})
        signs.register(poll)
        while socket not in (file for file, _ in poll.poll(self._look())):
            signs.hear()
            for mapped in self.mapped.values():
                mapped.hear()
            self._see_moved()
        return os.read(socket, 16)

    def _see_moved(self) -> None:
        """End the program where a folder was moved: it would write to what has its name now."""
        from relaunch.trial.place.disk.moved import end_all_here, is_in_place

        for one in self.made:
            path = one.disk.path
            if path not in self.moved and not is_in_place(path, one.layers[0].seen):
                self.moved[path] = end_all_here(one.layers[0].seen)

    def _look(self) -> int:
        """Note how full they are; return after how many milliseconds to look again."""
        least = 1.0
        for number, (one, fill) in enumerate(zip(self.made, self.fills, strict=True)):
            now = os.fstatvfs(one.root)
            used = (now.f_blocks - now.f_bfree) * now.f_frsize
            self.fills[number] = fill.but(
                used_bytes=used,
                most_bytes=max(fill.most_bytes, used),
                free_inodes=now.f_ffree,
                fewest_inodes=min(fill.fewest_inodes, now.f_ffree),
            )
            least = min(least, now.f_bfree / now.f_blocks, now.f_ffree / now.f_files)
        return next(wait for share, wait in _LOOK_MS if least >= share)

    def _keep(self) -> dict[str, Any]:
        from relaunch.trial.place.disk.keep import Keeping

        _go_deep()
        done = [
            Keeping(layer, owners=self.has_all_ids, mapped=self.mapped.get(layer))
            for one in self.made
            for layer in one.layers
        ]
        conflicts = [f"{one.disk.path} is {one.where()} now" for one in self.made if one.where()]
        for one in done:
            try:
                one.run()
            except OSError as error:
                one.problems.append(_why(error))
            conflicts += one.conflicts
        return {"files": sum(one.files for one in done), "bytes": sum(one.bytes for one in done),
                "deleted": sum(one.deleted for one in done),
                "problems": _some([text for one in done for text in one.problems]),
                "conflicts": _some(conflicts),
                "beside": _some([text for one in done for text in one.beside])}  # fmt: skip


def _mapped_now() -> set[tuple[str, int]]:
    from relaunch.trial.place.disk.mapped import mapped_now

    return mapped_now()


def _go_deep() -> None:
    """Allow folders within folders, thousands of them: each is open while what is in it is kept."""
    import resource

    sys.setrecursionlimit(_MOST_CALLS)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _some(texts: list[str]) -> list[str]:
    """Leave out what nobody reads: all is said in one message."""
    more = len(texts) - _MOST_TEXTS
    return [*texts[:_MOST_TEXTS], f"{more} more"] if more > 0 else texts


def _fill(one: Mounted) -> Fill:
    now = os.fstatvfs(one.root)
    free = now.f_ffree
    return Fill(
        path=one.disk.path,
        size_bytes=one.size_bytes,
        inodes=free,
        has_few_inodes=one.disk.inodes is not None,
        fewest_inodes=free,
    )


def _why(error: OSError) -> str:
    return error.strerror or str(error)
