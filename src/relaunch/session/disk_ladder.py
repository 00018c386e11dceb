"""What `--disk` finds on this machine: each way is tried on a folder of a moment."""

from __future__ import annotations

import os
import sys
import tempfile

from relaunch.desk.doctor import Ladder, Rung
from relaunch.proc.left_out import WITHOUT, left_out
from relaunch.recipe import SmallDisk
from relaunch.trial.place.disk.permission import what_allows_mounts
from relaunch.trial.place.disk.words import OVERLAY, TMPFS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MEANS = {
    OVERLAY: "--disk: what is in the folder is seen, what is written there is discarded",
    TMPFS: "--disk: the folder looks empty, what is written there is discarded",
}


def disk_ladder(env: Mapping[str, str]) -> Ladder:
    """Try the ways to let a folder look small; what is made for it is gone at the end."""
    rungs = [_rung(way, env) for way in _MEANS]
    rungs.append(Rung(name="none", ok=True, means="--disk is refused"))
    return Ladder(name="small disk", rungs=tuple(rungs))


def _rung(way: str, env: Mapping[str, str]) -> Rung:
    if way in left_out(env):
        return Rung(name=way, ok=False, means=_MEANS[way], raise_it=f"unset {WITHOUT}")
    if sys.platform != "linux":
        return Rung(name=way, ok=False, means=_MEANS[way], raise_it="Linux")
    why = _try(way)
    raise_it = f"{why}: {what_allows_mounts()}" if why else ""
    return Rung(name=way, ok=not why, means=_MEANS[way], raise_it=raise_it)


def _try(way: str) -> str:
    """Make a small disk in one way; say why not."""
    from relaunch.trial.place.disk.hold import Hold

    with tempfile.TemporaryDirectory(prefix="rl-doctor-") as folder:
        with open(os.path.join(folder, "file"), "w", encoding="ascii"):
            pass
        disk = SmallDisk(path=os.path.realpath(folder), size_bytes=1 << 20, inodes=9)
        hold = Hold([disk], without={OVERLAY, TMPFS} - {way})
        hold.end()
        hold.stop()
        if hold.ways.get(disk.path):
            return ""
        return hold.failed or hold.why.get(disk.path, {}).get(way, "no answer")
