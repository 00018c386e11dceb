"""Where a program was right before the kernel killed it: asked while there is still a moment.

The kernel gives no stack. So whenever a group around the program, or the machine, has little memory
left and less than the last time, the program is asked to write where its threads are. It does so by
itself, without being stopped and without taking memory; what it wrote last is there after its end.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.look.stacks import LookError, chain
from relaunch.look.tree import children
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory.meter import TreeMeter
from relaunch.trial.place.memory.moment import Seen, culprit
from relaunch.trial.place.memory.oom import limits_around, room_of
from relaunch.trial.place.memory.pace import FASTEST, Pace
from relaunch.trial.place.memory.told_inside import make_inside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from relaunch.trial.place.memory.told_inside import Inside

_NEAR, _LEAST_NEAR, _MOST_NEAR = 10, 64 << 20, 2 << 30
"""An end is near with this part of it left."""
_LESS = 0.9
"""It is asked again when so much is left of what was left then."""

_QUICKEST_S, _LONGEST_S = 0.005, 0.25
"""Who holds a limit of its own beside this has little time."""


class Nearing:
    """Looks how much is left of all that could end, in the process beside the program."""

    def __init__(self, inside: Inside, members: Callable[[], Sequence[int]]) -> None:
        """Find what could end: groups with a limit, and the machine."""
        self._inside, self._members = inside, members
        self._ends = [(folder, limit, Pace(limit)) for folder, limit in limits_around()]
        self._machine = Pace(machine_bytes("MemTotal"))
        self._next = 0.0
        self._asked_at: dict[str, int] = {}

    def look(self, now: float) -> float:
        """Look once, and ask if it is time; returns how long to wait until the next look."""
        if now < self._next:
            return self._next - now
        waits = [self._look("", machine_bytes("MemAvailable"), self._machine, now)]
        for folder, limit, pace in self._ends:
            left = room_of(folder, limit, enough=_near(limit))
            waits.append(self._look(folder, left, pace, now))
        wait_s = max(_QUICKEST_S, min(waits))
        self._next = now + wait_s
        return wait_s

    def _look(self, end: str, left: int, pace: Pace, now: float) -> float:
        near = _near(pace.limit)
        if left >= near:
            self._asked_at.pop(end, None)
        elif left < self._asked_at.get(end, near) * _LESS:
            self._asked_at[end] = left
            for pid in self._members():
                self._inside.ask(pid)
        return max(pace.wait_s(pace.limit - left, now), min(_LONGEST_S, left / FASTEST))


def _near(limit: int) -> int:
    return min(max(limit // _NEAR, _LEAST_NEAR), _MOST_NEAR)


class KernelWatch(Companion):
    """Only for a kill by the kernel: where nothing else is beside the program that would ask."""

    def __init__(self, *, folder: str, roots: Sequence[str]) -> None:
        """They write in the trial's `folder` while it runs."""
        self._folder, self._roots = folder, roots
        self._inside: Inside | None = None
        self._helper: Helper | None = None
        self._last: Mapping[int, str] = {}

    def prepare(self) -> Mapping[str, str]:
        """Let the program tell of itself, and begin to look."""
        self._inside = make_inside(self._folder, self._roots)
        if self._inside is None:
            return {}
        self._helper = Helper(self._work)
        return self._inside.env()

    def helpers(self) -> Collection[int]:
        """Name our process."""
        return (self._helper.pid,) if self._helper else ()

    def launched(self, pid: int) -> None:
        """Tell our process which it is, and who else is below us."""
        if self._helper:
            ours = [one for one in children(os.getpid()) if one != pid]
            self._helper.say(" ".join(map(str, [pid, *ours])).encode())

    def ended(self) -> None:
        """Read what was told last."""
        if self._helper:
            self._helper.stop()
            self._helper = None
        if self._inside is not None:
            self._last = last_told(self._inside, self._roots)
            self._inside.remove()

    def after_our_death(self) -> None:
        """Take the folder away."""
        if self._inside is not None:
            self._inside.remove()

    def last_at(self, pid: int) -> str:
        """Say where a process was when it was last asked."""
        return self._last.get(pid, "")

    def _work(self, socket: int) -> None:
        words = os.read(socket, 4096).split()
        if not words or self._inside is None:
            return
        tree = TreeMeter(os.getppid(), 0)
        tree.begin(int(words[0]), [os.getpid(), *map(int, words[1:])])
        nearing = Nearing(self._inside, tree.members)
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        wait_s = 0.0
        while not poll.poll(wait_s * 1000):
            wait_s = nearing.look(time.monotonic())


def last_told(inside: Inside, roots: Sequence[str]) -> dict[int, str]:
    """Say of each process that was asked where it was, by the user's own frames."""
    found = {}
    for pid in inside.answered():
        try:
            threads = inside.stacks(pid)
        except LookError:
            continue
        if one := culprit([Seen(pid=pid, command="", bytes=0, threads=threads)], roots):
            found[pid] = chain(one[1].frames, roots)
    return found


def machine_bytes(field: str) -> int:
    """Return a field of /proc/meminfo in bytes; 0 when the machine does not say."""
    for line in read_if_there("/proc/meminfo").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) << 10
    return 0
