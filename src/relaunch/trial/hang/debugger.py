"""Has the program open a debugger in the thread that hangs."""

from __future__ import annotations

import os
import time

from relaunch.inside.hung import ASKED, LEFT, OPEN, SIGNAL
from relaunch.inside.protocol import HUNG
from relaunch.look.waits.proc import read
from relaunch.proc.tree import send

_ANSWER_S, _PAUSE_S = 2.0, 0.02


class Debugger:
    """The folder by which the program and we agree, for one program."""

    def __init__(self, folder: str) -> None:
        """Take an empty folder, which `remove` takes away."""
        self._folder = folder

    def env(self) -> dict[str, str]:
        """Return what the program's environment needs."""
        return {HUNG: self._folder}

    def open(self, pid: int, tid: int) -> bool:
        """Ask a process to open it at a thread, and tell whether it does."""
        if not _catches(pid, SIGNAL):
            return False
        path = os.path.join(self._folder, str(pid))
        try:
            fd = os.open(path + ASKED, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.write(fd, str(tid).encode())
            os.close(fd)
        except OSError:
            return False
        send(pid, SIGNAL)
        until = time.monotonic() + _ANSWER_S
        while time.monotonic() < until:
            if os.path.exists(path + OPEN):
                return True
            time.sleep(_PAUSE_S)
        return False

    def was_left(self) -> bool:
        """Tell whether the person ended a process from there."""
        try:
            return any(name.endswith(LEFT) for name in os.listdir(self._folder))
        except OSError:
            return False

    def remove(self) -> None:
        """Take the folder away."""
        try:
            for name in os.listdir(self._folder):
                os.unlink(os.path.join(self._folder, name))
            os.rmdir(self._folder)
        except OSError:
            pass


def _catches(pid: int, signal: int) -> bool:
    """Tell whether a process has a handler for a signal that would end it otherwise."""
    for line in read(f"/proc/{pid}/status").split(b"\n"):
        if line.startswith(b"SigCgt:"):
            return bool(int(line.split()[1], 16) >> (signal - 1) & 1)
    return False
