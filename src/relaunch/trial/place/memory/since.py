"""Where the kernel's own notes of its kills stood when a program began: only later ones count.

Asked when the program was just started, so that nobody waits for it. Not by the time stamps of the
kernel's log: its clock is not the one that is corrected, and on a machine that runs for months the
two are seconds apart.
"""

from __future__ import annotations

import os

from relaunch.proc.companion import Companion
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import groups

LOG = "/dev/kmsg"
_COUNTS = ((1, "memory.oom_control"), (2, "memory.events"))


class Since(Companion):
    """The place in the log, and the count of kills in our own group."""

    def __init__(self) -> None:
        """Nothing was begun yet."""
        self._log = -1
        self._killed = 0

    def launched(self, pid: int) -> None:
        """Note how far both are."""
        try:
            self._log = os.open(LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._log, 0, os.SEEK_END)
        except OSError:  # not for us to read
            pass
        self._killed = _kills_in_group()

    def kills_in_group(self) -> int:
        """Return how often the kernel ended a process of our own group since then."""
        return _kills_in_group() - self._killed

    def records(self) -> list[str]:
        """Return what the kernel wrote into its log since then; nothing where we may not read."""
        found: list[str] = []
        while self._log >= 0:
            try:
                found.append(os.read(self._log, 1 << 13).decode("utf-8", "replace"))
            except BrokenPipeError:  # overwritten meanwhile; the next read is of the oldest left
                continue
            except OSError:
                break
        return found

    def close(self) -> None:
        """Let go of the log."""
        if self._log >= 0:
            os.close(self._log)
            self._log = -1


def _kills_in_group() -> int:
    cgroups, mounts = map(read_if_there, ("/proc/self/cgroup", "/proc/self/mountinfo"))
    counts = [0]
    for version, name in _COUNTS:
        if folder := groups.group_in(version, cgroups, mounts):
            counts.append(groups.number(folder, name, "oom_kill"))
    return max(counts)
