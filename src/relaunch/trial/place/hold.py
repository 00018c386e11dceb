"""Holds a config set while a trial runs: the same set may be shared, another one waits.

Two locks. Whoever changes anything holds `sets.gate` for that moment; a trial shares `sets.lock`
while it runs. The kernel drops both when a process is killed, and the next one repairs.
"""

from __future__ import annotations

import errno
import fcntl
import os

from relaunch.errors import PlaceError
from relaunch.textfile import make_own_folder
from relaunch.trial.place.sets import (
    point,
    present_targets,
    read_state,
    repair,
    resting_targets,
    targets_for,
    write_state,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    from relaunch.trial.place.sets import ConfigSets


def _silent(_: str) -> None:
    """Tell nobody."""


class HeldSet:
    """A set in place for one trial: `with HeldSet(...) as held: run(env | held.env)`.

    An empty name holds the set that is in place when nobody has moved it.
    """

    def __init__(
        self,
        sets: ConfigSets,
        name: str,
        *,
        journal: str,
        label: str = "",
        tell: Callable[[str], object] = _silent,
    ) -> None:
        """Take what to hold; `label` is what others are told they wait for, as `#12`."""
        self.sets = sets
        self.name = name
        self.journal = journal
        self.label = label
        self.tell = tell
        self.env = {sets.flag: name} if sets.flag and name else {}
        self._lock: Lock | None = None

    def __enter__(self) -> Self:
        """Wait until no other set is held, then put this one in place."""
        if not self.sets.links:
            return self
        if self.name:
            targets_for(self.sets, self.name)  # an unknown name is said before any waiting
        try:
            self._lock = self._take()
        except PlaceError as error:
            if self.name:
                raise
            # Nothing had to move: a full disk is no reason not to run the program.
            self.tell(f"the set in place is not held: {error.message}")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let go; the last one out puts the links back."""
        if self._lock is not None:
            self._lock.leave()
            self._lock = None

    def _take(self) -> Lock:
        lock = Lock(self.journal)
        try:
            lock.share(self._put_in_place, self._is_in_place, self.tell)
        except OSError as error:
            lock.close()
            raise PlaceError(
                f"cannot lock the sets in {self.journal}: {error.strerror}",
                hint="rl --frozen -s SET -- CMD",
            ) from error
        except BaseException:
            lock.leave()
            raise
        return lock

    def _wanted(self) -> dict[str, str]:
        if self.name:
            return targets_for(self.sets, self.name)
        return resting_targets(self.sets, self.journal)

    def _is_in_place(self) -> bool:
        present = present_targets(self.sets)
        return all(present.get(link) == target for link, target in self._wanted().items())

    def _put_in_place(self) -> None:
        before = present_targets(self.sets)
        write_state(
            self.journal,
            {"set": self.name, "label": self.label, "pid": os.getpid(), "links": before},
        )
        for link, target in self._wanted().items():
            point(link, target)


class Lock:
    """The two locks of a project's sets, open but not yet taken."""

    def __init__(self, journal: str) -> None:
        """Open the lock files; the folder is made if need be."""
        self.journal = journal
        try:
            make_own_folder(journal)
            self.gate = _open(os.path.join(journal, "sets.gate"))
            self.held = _open(os.path.join(journal, "sets.lock"))
        except OSError as error:
            raise PlaceError(
                f"cannot lock the sets in {journal}: {error.strerror}",
                hint="rl --frozen -s SET -- CMD",
            ) from error

    def close(self) -> None:
        """Let go of both."""
        os.close(self.gate)
        os.close(self.held)

    def share(
        self,
        put_in_place: Callable[[], None],
        is_in_place: Callable[[], bool],
        tell: Callable[[str], object],
    ) -> None:
        """Hold together with others of the same set; alone, put it in place first."""
        told = False
        while True:
            fcntl.flock(self.gate, fcntl.LOCK_EX)
            if _try(self.held, fcntl.LOCK_EX):
                repair(self.journal)
                put_in_place()
                fcntl.flock(self.held, fcntl.LOCK_SH)  # behind the gate nobody can slip between
                fcntl.flock(self.gate, fcntl.LOCK_UN)
                return
            if _try(self.held, fcntl.LOCK_SH):
                if is_in_place():
                    fcntl.flock(self.gate, fcntl.LOCK_UN)
                    return
                fcntl.flock(self.held, fcntl.LOCK_UN)
            fcntl.flock(self.gate, fcntl.LOCK_UN)
            if not told:
                tell(f"waiting: {self._holder()}")
                told = True
            self._wait()

    def alone(self, tell: Callable[[str], object]) -> None:
        """Hold with nobody else, for a change that is meant to stay; what was left is repaired."""
        told = False
        while True:
            fcntl.flock(self.gate, fcntl.LOCK_EX)
            if _try(self.held, fcntl.LOCK_EX):
                repair(self.journal)
                return
            fcntl.flock(self.gate, fcntl.LOCK_UN)
            if not told:
                tell(f"waiting: {self._holder()}")
                told = True
            self._wait()

    def leave(self) -> None:
        """End a shared hold; the last one out puts the links back."""
        try:
            fcntl.flock(self.gate, fcntl.LOCK_EX)
            fcntl.flock(self.held, fcntl.LOCK_UN)
            if _try(self.held, fcntl.LOCK_EX):
                repair(self.journal)
        finally:
            self.close()

    def _wait(self) -> None:
        """Sleep until everyone who holds now is gone."""
        fcntl.flock(self.held, fcntl.LOCK_EX)
        fcntl.flock(self.held, fcntl.LOCK_UN)

    def _holder(self) -> str:
        state = read_state(self.journal)
        who = state.get("label") or "another trial"
        which = f"set `{state['set']}`" if state.get("set") else "the set in place"
        pid = f", pid {state['pid']}" if state.get("pid") else ""
        return f"{who} holds {which}{pid}"


def repair_sets(journal: str) -> None:
    """Put right what a killed relaunch left, unless a trial is using it; else costs nothing."""
    if not read_state(journal):
        return
    lock = Lock(journal)
    try:
        fcntl.flock(lock.gate, fcntl.LOCK_EX)
        if _try(lock.held, fcntl.LOCK_EX):
            repair(journal)
    finally:
        lock.close()


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _try(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True
