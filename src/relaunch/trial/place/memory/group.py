"""What the memory groups of both versions have in common: made, entered, listed, taken away."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.trial.place.memory import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


class MemoryGroup:
    """One group, made for one program; `make` proves it on a tiny child first."""

    version = 0
    """Of control groups."""
    hint = ""
    """What would let us have one."""

    def __init__(self, limit: int) -> None:
        """Nothing is made yet."""
        self.limit = limit
        self.folder = ""
        self.wakes: Sequence[int] = ()

    def make(self) -> None:
        """Make it; PlaceError says why it cannot be."""
        folder = os.path.join(self._parent(), groups.new_name())
        try:
            os.mkdir(folder)
        except OSError as error:
            raise self._cannot(f"{os.path.dirname(folder)}: {error.strerror}") from None
        self.folder = folder
        try:
            self._set_up()
        except OSError as error:
            self.remove()
            raise self._cannot(f"{folder}: {error.strerror}") from None
        except PlaceError:
            self.remove()
            raise

    def _parent(self) -> str:
        """Return the group that it is made in; PlaceError where there is none."""
        raise NotImplementedError

    def _set_up(self) -> None:
        """Set its limits and prove that they hold."""
        raise NotImplementedError

    def _cannot(self, why: str) -> PlaceError:
        return PlaceError(why, hint=self.hint)

    def enter(self) -> None:
        """Become a member, in the process that calls."""
        groups.write(self.folder, "cgroup.procs", 0)

    def remove(self) -> None:
        """Take it away: its processes are gone, and who was let live goes back to our own."""
        for fd in self.wakes:
            os.close(fd)
        self.wakes = ()
        if self.folder:
            # Not to the one above: of version 2, it may have groups below it and no processes.
            groups.release(self.folder, groups.own_group(self.version))
            groups.remove(self.folder)

    def begin(self, program: int, helpers: Collection[int]) -> None:
        """Its members are known to the kernel."""

    def members(self) -> list[int]:
        """List its processes."""
        return groups.members(self.folder)

    def known(self) -> list[int]:
        """List them: who is in a group is known at once."""
        return self.members()
