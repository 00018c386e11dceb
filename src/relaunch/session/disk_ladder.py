"""What `--disk` finds on this machine: each way is tried on a folder of a moment."""

from __future__ import annotations

import os
import sys
import tempfile

from relaunch.desk.doctor import Ladder, Rung
from relaunch.proc.left_out import WITHOUT, left_out
from relaunch.recipe import SmallDisk
from relaunch.trial.place.disk.words import OVERLAY, STRACE, TMPFS, TRACE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_MEANS = {
    OVERLAY: "--disk: what is in the folder is seen, what is written there is discarded",
    TMPFS: "--disk: the folder looks empty, what is written there is discarded",
    TRACE: "--disk: calls that write too much are refused, what was written is taken back",
    STRACE: "--disk: writes to the files that are there fail; new ones are not limited",
}
_SWITCHES = (
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl user.max_user_namespaces=10000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0",
     "sudo sysctl kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1",
     "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"),
)  # fmt: skip
"""What forbids user namespaces, and what allows them."""


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
    if way == TRACE:
        from relaunch.proc.ptrace.traced import untraceable

        why = raise_it = untraceable()
    elif way == STRACE:
        from relaunch.trial.place.disk.injected import useless

        why = raise_it = useless()
    else:
        why = _try(way)
        raise_it = f"{why}: {_allow()}"
    return Rung(name=way, ok=not why, means=_MEANS[way], raise_it=raise_it if why else "")


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


def _allow() -> str:
    for path, value, command in _SWITCHES:
        try:
            with open(path, encoding="ascii") as file:
                if file.read().strip() == value:
                    return command
        except OSError:
            continue
    return "Linux 5.11 or later; in a container, --cap-add SYS_ADMIN or user namespaces allowed"
