"""The small disks of one launch, by the best means that work here."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from relaunch.errors import PlaceError
from relaunch.proc.companion import Companion
from relaunch.proc.left_out import left_out
from relaunch.trial.place.disk.permission import what_allows_mounts
from relaunch.trial.place.disk.unfinished import NOT_YET, tell_unfinished
from relaunch.trial.place.disk.words import (
    OVERLAY,
    TMPFS,
    Fill,
    amount,
    counted,
    full,
    limit_of,
    shown,
    unseen,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from relaunch.recipe import SmallDisk
    from relaunch.trial.place.disk.hold import Hold


class SmallDisks(Companion):
    """Lets folders look as if they lay on small disks; they stay as they are, unless `keep`."""

    def __init__(
        self,
        disks: Sequence[SmallDisk],
        *,
        keep: bool,
        folder: str,
        needed: Sequence[str],
        say: Callable[[str], object],
        warn: Callable[[str], object],
    ) -> None:
        """The trial's `folder` stays real; what is `needed` must be seen by the program."""
        self._disks = disks
        self._keep = keep
        self._ours = (os.path.realpath(folder),) if folder else ()
        self._not_yet = os.path.join(folder, NOT_YET) if folder and keep else ""
        self._needed = needed
        self._say = say
        self._warn = warn
        self._hold: Hold | None = None
        self._fills: list[Fill] = []
        self._moved = ""

    def prepare(self) -> Mapping[str, str]:
        """Make them, and see that they are there."""
        if sys.platform != "linux":
            raise PlaceError("--disk needs Linux: this system has no mounts of one program's own")
        from relaunch.trial.place.disk.hold import Hold

        self._fits_memory()
        hold = self._hold = Hold(
            self._disks, ours=self._ours, needed=self._needed, without=left_out(), keep=self._keep
        )
        for disk in self._disks:
            if not hold.ways.get(disk.path):
                self._keep = False
                raise _refused(disk.path, hold)
            self._say(self._made(disk, hold))
        if self._not_yet:
            with suppress(OSError), open(self._not_yet, "w", encoding="ascii"):
                pass
        if hold.foreign:
            files = counted(hold.foreign, "file")
            self._say(f"{files} of others there can be read and replaced, not written to in place")
        return {}

    def _end(self) -> str:
        return "kept at the end" if self._keep else "discarded at the end"

    def _made(self, disk: SmallDisk, hold: Hold) -> str:
        way = hold.ways[disk.path]
        looks = f"{shown(disk.path)} looks {limit_of(disk)}"
        if way == TMPFS and disk.path not in hold.empty:
            why = hold.why[disk.path].get(OVERLAY, "")
            looks += f" and empty: what is there is not seen, as overlay fails ({why})"
        return f"{looks} ({way}, {self._end()})"

    def _fits_memory(self) -> None:
        """Say so when the disks, which lie in memory, are larger than what is free of it."""
        asked = sum(disk.size_bytes or 0 for disk in self._disks)
        free = _free_memory()
        if free and asked > free:
            self._warn(
                f"{amount(asked)} of small disk lie in memory, of which {amount(free)} are free"
            )

    def helpers(self) -> Collection[int]:
        """Name the process that has the disks."""
        return (self._hold.pid,) if self._hold is not None else ()

    def enter(self) -> None:
        """Let the program see them."""
        if self._hold is not None:
            self._hold.enter()

    def ended(self) -> None:
        """Keep what was written if that was asked, let go of the disks, and say what was full."""
        hold, self._hold = self._hold, None
        if hold is None:
            return
        if self._not_yet:
            with suppress(OSError):
                os.unlink(self._not_yet)
        try:
            said = hold.end(keep=self._keep)
        finally:
            hold.stop()
        self._fills = [Fill(**one) for one in said.get("fills", ())]
        for fill in self._fills:
            if fill.is_full:
                self._warn(full(fill))
        for path, was_ended in said.get("moved", {}).items():
            self._moved = f"another program moved or replaced {shown(path)}, and so the small disk"
            ended = "the program was ended, as it would write to what is there now"
            then = ended if was_ended else "what the program wrote there since is real"
            self._warn(f"{self._moved}: {then}")
        if self._keep:
            self._tell_kept(said.get("kept"))

    def _tell_kept(self, kept: Mapping[str, Any] | None) -> None:
        if kept is None:
            self._warn("not kept, or not whole: the process that had the small disks is gone")
            tell_unfinished([disk.path for disk in self._disks], self._warn)
            return
        for text in kept["problems"]:
            self._warn(f"not kept: {text}")
        for text in kept["conflicts"]:
            self._warn(f"another program was at work there: {text}")
        for text in kept["beside"]:
            self._warn(text)
        deleted = f", {kept['deleted']} deleted" if kept["deleted"] else ""
        self._say(f"kept {counted(kept['files'], 'file')}, {amount(kept['bytes'])}{deleted}")

    def lost(self) -> str:
        """Say that the program did not have its small disk to the end."""
        return self._moved

    def reached(self) -> Mapping[str, Any]:
        """Say which disk was full; the program's own failure is what it is."""
        for fill in self._fills:
            if fill.is_full:
                return {
                    "what": "disk",
                    "path": fill.path,
                    "limit_bytes": fill.size_bytes,
                    "bytes": fill.most_bytes,
                    "inodes": fill.inodes,
                    "free_inodes": fill.fewest_inodes,
                }
        return {}

    def explain(self, failure: str) -> str:
        """Say why there was no space on a disk that nobody saw full."""
        if "No space left on device" not in failure or any(one.is_full for one in self._fills):
            return ""
        return unseen(failure, self._fills)


def _refused(path: str, hold: Hold) -> PlaceError:
    """Say why there is no small disk over a folder, and what would allow one.

    The paths of a program can only be led elsewhere by a mount: who rewrites its calls misses
    io_uring, memory that changes after the check, and what a path means below a symbolic link.
    """
    why = hold.failed or "; ".join(f"{name}: {text}" for name, text in hold.why[path].items())
    hint = what_allows_mounts() if hold.is_there else f"ls -ld {shown(path)}"
    return PlaceError(f"no small disk over {shown(path)}: {why}", hint=hint)


def _free_memory() -> int:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = dict(line.split(":", 1) for line in file)
        return int(found["MemAvailable"].split()[0]) << 10
    except (OSError, KeyError, ValueError):
        return 0
