"""A memory group of cgroup v1 that freezes its processes at the limit, to the page.

The kernel freezes only who touches a page itself. A call such as read() that fills fresh memory
fails at the limit with EFAULT instead, which the program would take for its own fault. So the
group has some room above the limit at first. Near the limit the tree is stopped for a moment: when
what runs is the program's own code, the room is taken away, and the limit is exact.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.look.tree import PAGE
from relaunch.proc.helper import Helper
from relaunch.trial.place.memory import groups, halt
from relaunch.trial.place.memory.group import MemoryGroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_ROOM, _LEAST_ROOM = 10, 64 << 20
_NEAR, _LEAST_NEAR = 25, 16 << 20
"""The tree is near its limit with this part of it left."""
_HALT_S, _LOOK_S = 0.05, 0.0002
"""So long it may take on a busy machine until all are stopped; a call may take longer."""
_TRIES = 8
_READS = 1 << 16
_LIMIT = "memory.limit_in_bytes"
_UNLIMITED = (1 << 63) - 1
_TRIED_LIMIT, _TRIED_BYTES = 2 << 20, 16 << 20
_TRIED_S = 3.0


class FreezingGroup(MemoryGroup):
    """A group below the one that we are in."""

    version = 1
    hint = "a memory group that you may write to: sudo mkdir and chown one below your own"
    wake_on = select.POLLIN

    def __init__(self, limit: int) -> None:
        """Nothing is made yet."""
        super().__init__(limit)
        self._near = limit - max(limit // _NEAR, _LEAST_NEAR)
        self._room = max(limit // _ROOM, _LEAST_ROOM)
        self._tries = _TRIES
        self._is_exact = False
        self._read = 0

    def _parent(self) -> str:
        own = groups.own_group(self.version)
        if not own:
            raise self._cannot("no memory group of cgroup v1 here")
        return own

    def _set_up(self) -> None:
        self._listen()
        self._prove()
        self._set(self.limit + self._room)

    def used(self, _rate: float) -> int:
        """Return what its processes have, without the pages of files that can be given back."""
        used = groups.number(self.folder, "memory.usage_in_bytes")
        return used if used < self._near else used - self._files()

    def is_reached(self, wake: int) -> bool:
        """Tell whether somebody is frozen, after our file woke us."""
        os.eventfd_read(wake)
        return groups.number(self.folder, "memory.oom_control", "under_oom") == 1

    def near(self) -> None:
        """Make the limit exact, unless the kernel itself fills memory for the program now."""
        if self._is_exact:
            self._back_from_exact()
            return
        if self.used(0) < self._near:
            self._tries = _TRIES
            return
        if not self._tries or halt.has_jobs(self.members()):
            return
        self._tries -= 1
        busy = {(pid, one) for pid in self.members() for one in halt.busy_threads(pid)}
        asleep = halt.asleep(self.members())
        stopped = halt.stop(self.members)
        try:
            deadline = time.monotonic() + _HALT_S
            while not all(map(halt.is_stopped, stopped)):
                if time.monotonic() > deadline or self.used(0) >= self.limit:
                    return
                time.sleep(_LOOK_S)
            if not any(halt.is_filled(*one) for one in busy):
                self._set(self.limit)
                self._is_exact, self._read = True, halt.read_bytes(stopped)
        except OSError:  # there is more already than the limit
            pass
        finally:
            halt.resume(pid for pid in stopped if pid not in asleep)

    def _back_from_exact(self) -> None:
        """Give the room back when the program begins to read: such calls would fail."""
        if halt.read_bytes(self.members()) > self._read + _READS:
            self._is_exact = False
            self._set(self.limit + self._room)

    def loosen(self, *, goes_on: bool) -> None:
        """Let who is frozen come to its stop: until then not even a reader gets a page.

        Who `goes_on` may be in a call that fills memory, which must not fail. For who ends, a page
        more is enough: it wakes all who are frozen, and they find that they are to stop.
        """
        now = groups.number(self.folder, _LIMIT)
        self._is_exact = self._is_exact and not goes_on  # a shell is to be held again later
        try:
            self._set(self.limit + 2 * self._room if goes_on else now + PAGE)
        except OSError:
            pass

    def lift(self) -> None:
        """Let go of who is frozen, and limit nobody any more."""
        try:
            self._set(_UNLIMITED)
        except OSError:
            pass

    def _files(self) -> int:
        stat = "memory.stat"
        names = ("total_inactive_file", "total_active_file")
        return sum(max(0, groups.number(self.folder, stat, name)) for name in names)

    def _set(self, limit: int) -> None:
        """Set the limit; with swap it would only begin to swap there, so that is limited too."""
        names = [_LIMIT, "memory.memsw.limit_in_bytes"]
        if not os.path.exists(os.path.join(self.folder, names[1])):
            names.pop()
        rising = limit > groups.number(self.folder, names[0])
        for name in reversed(names) if rising else names:
            groups.write(self.folder, name, limit)

    def _listen(self) -> None:
        """Have the kernel freeze at the limit instead of killing, and tell us."""
        groups.write(self.folder, "memory.oom_control", 1)
        wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.wakes = (wake,)
        path = os.path.join(self.folder, "memory.oom_control")
        control = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            groups.write(self.folder, "cgroup.event_control", f"{wake} {control}")
        finally:
            os.close(control)

    def _prove(self) -> None:
        """Let a tiny child take more than a tiny limit: it must be frozen, and we be told."""
        self._set(_TRIED_LIMIT)

        def take(_socket: int) -> None:
            self.enter()
            b"x" * _TRIED_BYTES

        child = Helper(take)
        try:
            poll = select.poll()
            poll.register(self.wakes[0], select.POLLIN)
            poll.register(child.fileno(), select.POLLIN)
            told = [fd for fd, _ in poll.poll(_TRIED_S * 1000)]
            if self.wakes[0] not in told or not self.is_reached(self.wakes[0]):
                raise self._cannot("cgroup v1 did not hold a tiny child back")
        finally:
            halt.send(child.pid, _signal.SIGKILL)
            child.stop()
