"""Leading a group or session of processes: a resumed program leads its own and does not know it.

It needs them, so that Ctrl-C and `kill` find it alone. What it may still become, as a cold run
might, is only noted.
"""

from __future__ import annotations

import posix

GROUP, SESSION = "group", "session"


class Role:
    """What the program believes to lead."""

    def __init__(self) -> None:
        self._pid = 0
        self._believed = ""

    def is_played(self) -> bool:
        """Tell whether this very process leads more than the program knows."""
        return self._pid == posix.getpid()

    @property
    def believed(self) -> str:
        """What it leads: a session, a group, or nothing."""
        pid = posix.getpid()
        if self.is_played():
            return self._believed
        if posix.getsid(0) == pid:
            return SESSION
        return GROUP if posix.getpgrp() == pid else ""

    def play(self, believed: str) -> None:
        """Let the program believe this from now on."""
        self._pid, self._believed = posix.getpid(), believed
