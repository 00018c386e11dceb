"""The limit of memory as a companion of the program: made before it, watched beside it."""

from __future__ import annotations

import mmap
import os

from relaunch.bytewords import in_words
from relaunch.errors import PlaceError
from relaunch.jsontext import loads
from relaunch.look.tree import children
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.trial.place.memory import STACKS, groups, rungs
from relaunch.trial.place.memory.meter import TreeMeter
from relaunch.trial.place.memory.nearing import last_told, machine_bytes
from relaunch.trial.place.memory.oom import container_limit, room
from relaunch.trial.place.memory.told_inside import make_inside
from relaunch.trial.place.memory.watcher import (
    INTERRUPT,
    KILL,
    LIFT,
    PAUSE,
    SPARE,
    Task,
    Watcher,
    is_free_to_spy,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from typing import Any

    from relaunch.recipe import Limits
    from relaunch.trial.place.memory.rungs import Group
    from relaunch.trial.place.memory.told_inside import Inside
    from relaunch.trial.place.memory.watcher import Meter

_IN_CONTAINER = 0.97
"""So much of what a container has left is taken before it is stopped."""
_FOR_US = 32 << 20
"""And so much is left of it for who reads the stacks."""
_THEN = {
    KILL: "is ended",
    PAUSE: "is paused",
    LIFT: "is named and goes on",
    INTERRUPT: "is interrupted",
    SPARE: "is ended, and the shell goes on",
}


class MemoryLimit(Companion):
    """At most so much memory for the program and all its processes."""

    def __init__(
        self,
        limits: Limits,
        *,
        folder: str,
        roots: Sequence[str],
        say: Callable[[str], object],
        clean: Callable[[bytes], bytes] = bytes,
    ) -> None:
        """Nothing is made yet; stacks go to `folder`, which may be empty, `clean`."""
        assert limits.memory_bytes is not None
        self._limits = limits
        self._limit = limits.memory_bytes
        self._folder = folder
        self._roots = roots
        self._clean = clean
        self._say = say
        self._group: Group | None = None
        self._helper: Helper | None = None
        self._inside: Inside | None = None
        self._heard = b""
        self._reached: Mapping[str, Any] = {}
        self._because = ""
        self._last: Mapping[int, str] = {}

    def prepare(self) -> Mapping[str, str]:
        """Climb the ladder, say what was taken, and begin to watch."""
        self._keep_in_container()
        words = self._climb()
        self._say(f"memory: {words}{self._because}")
        env = self._make_inside()
        self._shared = mmap.mmap(-1, mmap.PAGESIZE)
        meter = self._meter()
        task = Task(
            act=self._limits.at_limit,
            roots=self._roots,
            stacks=os.path.join(self._folder, STACKS) if self._folder else "",
            clean=self._clean,
        )
        watcher = Watcher(task, meter, self._hold, self._inside)
        self._helper = Helper(watcher.run, keep=meter.wakes)
        return env

    def helpers(self) -> Collection[int]:
        """Name the watcher."""
        return (self._helper.pid,) if self._helper else ()

    def enter(self) -> None:
        """Put the new process into its group."""
        if self._group is not None:
            self._group.enter()

    def launched(self, pid: int) -> None:
        """Tell the watcher which process it is, and who else is below us."""
        if self._helper:
            ours = [one for one in children(os.getpid()) if one != pid]
            self._helper.say(" ".join(map(str, [pid, *ours])).encode())

    def voice(self) -> int:
        """Name the socket of the watcher."""
        return self._helper.fileno() if self._helper else -1

    def speak(self) -> bool:
        """Tell what the watcher says."""
        heard = self._helper.hear(0) if self._helper else b""
        self._hear(heard)
        if not heard and not self._reached:  # it goes on until we end it
            self._say("memory: our watcher is gone; nothing holds the limit any more")
        return bool(heard)

    def holds(self) -> bool:
        """Tell whether the watcher stopped the program."""
        return self._shared[0] == 1

    def ended(self) -> None:
        """End the watcher, and take the group away."""
        if self._helper:
            self._hear(self._helper.stop())
            self._helper = None
        if self._inside is not None:
            self._last = last_told(self._inside, self._roots)
            self._inside.remove()
        if self._group is not None:
            self._group.remove()

    def after_our_death(self) -> None:
        """Take the group away in the guard: the watcher died with us."""
        if self._inside is not None:
            self._inside.remove()
        if self._group is not None:
            groups.remove(self._group.folder)

    def reached(self) -> Mapping[str, Any]:
        """Say where the limit was reached."""
        return self._reached

    def last_at(self, pid: int) -> str:
        """Say where a process was when it was last asked."""
        return self._last.get(pid, "")

    def _keep_in_container(self) -> None:
        """Stop before the limit of a container does: the kernel gives no stack."""
        there, left = machine_bytes("MemTotal"), room()
        if left and left < self._limit:
            self._limit = max(left // 2, int(left * _IN_CONTAINER) - _FOR_US)
            allows = in_words(container_limit())
            self._because = f"; the container allows only {allows}, so it is stopped before that"
        elif there and there < self._limit:
            self._because = f"; the machine has only {in_words(there)}, so it will not get there"

    def _climb(self) -> str:
        by = self._limits.memory_by
        rungs.check_watching()
        then = f"at {in_words(self._limit)} it {_THEN[self._limits.at_limit]}"
        why: list[PlaceError] = []
        if by in ("", "cgroup"):
            name, self._group, why = rungs.make_group(self._limit)
            if name == rungs.CGROUP1:
                # To stop a shell's job for a moment would be Ctrl-Z to the shell.
                is_exact = is_free_to_spy() and self._limits.at_limit != SPARE
                how = "freezes it there, to the page" if is_exact else "holds it near there"
                return f"{then}; cgroup v1 {how}"
            if name == rungs.CGROUP2:
                return f"{then}; cgroup v2 slows it down there"
        if by == "cgroup":
            raise PlaceError(f"--memory-by cgroup: {why[0].message}", hint=why[0].hint)
        return f"{then}, to about 1%: its processes are watched"

    def _meter(self) -> Meter:
        return self._group or TreeMeter(os.getpid(), self._limit)

    def _make_inside(self) -> Mapping[str, str]:
        """Let the program tell of itself, where there is a place for it."""
        track = self._limits.track_memory
        self._inside = make_inside(self._folder, self._roots, track=track)
        return self._inside.env() if self._inside is not None else {}

    def _hold(self, is_held: bool) -> None:
        self._shared[0] = int(is_held)

    def _hear(self, data: bytes) -> None:
        """Take what the watcher says, line by line."""
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            value = loads(line.decode())
            if "say" in value:
                self._say(value["say"])
            else:
                self._reached = value["reached"]
