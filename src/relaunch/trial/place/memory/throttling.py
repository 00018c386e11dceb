"""A memory group of cgroup v2: the kernel slows its processes at the limit, and wakes us.

Above `memory.high` each page costs them time, so that we come in time; `memory.max` a tenth above
ends all of them together, should we not.
"""

from __future__ import annotations

import os
import select

from relaunch.proc.helper import Helper
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import groups
from relaunch.trial.place.memory.group import MemoryGroup

_ROOM, _LEAST_ROOM = 10, 64 << 20
_TRIED_S = 3.0


class ThrottlingGroup(MemoryGroup):
    """A group beside our own or below it, wherever memory is handed down."""

    version = 2
    hint = "systemd-run --user --scope -p Delegate=yes $SHELL"
    wake_on = select.POLLPRI

    def _parent(self) -> str:
        parent = hands_memory_down(groups.own_group(self.version))
        if not parent:
            raise self._cannot("cgroup v2 hands no memory limit down to us")
        return parent

    def _set_up(self) -> None:
        most = self.limit + max(self.limit // _ROOM, _LEAST_ROOM)
        groups.write(self.folder, "memory.high", self.limit)
        groups.write(self.folder, "memory.max", most)
        groups.write(self.folder, "memory.oom.group", 1)
        if os.path.exists(os.path.join(self.folder, "memory.swap.max")):
            groups.write(self.folder, "memory.swap.max", 0)
        self._prove()
        events = os.path.join(self.folder, "memory.events")
        self.wakes = (os.open(events, os.O_RDONLY | os.O_CLOEXEC),)

    def used(self, _rate: float) -> int:
        """Return what its processes have, without the pages of files that can be given back."""
        used = groups.number(self.folder, "memory.current")
        if used < self.limit:
            return used
        files = (groups.number(self.folder, "memory.stat", f"{n}active_file") for n in ("in", ""))
        return used - sum(max(0, count) for count in files)

    def is_reached(self, wake: int) -> bool:
        """Tell whether what woke us is memory that cannot be given back."""
        os.lseek(wake, 0, os.SEEK_SET)
        os.read(wake, 4096)
        return self.used(0) >= self.limit

    def near(self) -> None:
        """The kernel slows them down by itself."""

    def loosen(self, *, goes_on: bool) -> None:
        """Nobody is frozen."""

    def lift(self) -> None:
        """Limit nobody any more."""
        for name in ("memory.max", "memory.high"):
            try:
                groups.write(self.folder, name, "max")
            except OSError:
                pass

    def _prove(self) -> None:
        """Let a tiny child go in, and see that its memory is counted there."""

        def take(socket: int) -> None:
            self.enter()
            taken = b"x" * (8 << 20)
            os.write(socket, b"+")
            os.read(socket, 1)
            del taken

        child = Helper(take)
        child.hear(_TRIED_S)
        counted = groups.number(self.folder, "memory.current")
        child.stop()
        if counted < 8 << 20:
            raise self._cannot("cgroup v2 did not count a tiny child")


def hands_memory_down(own: str) -> str:
    """Return our own group or the one above it, whichever gives its children a limit of memory."""
    for folder in (own, os.path.dirname(own)) if own else ():
        control = os.path.join(folder, "cgroup.subtree_control")
        if "memory" in read_if_there(control).split():
            return folder
    return ""
