"""Runs a command on a terminal of its own and tells when something is first seen there."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import shutil
import signal
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.spend import Unmeasured

PATIENCE_S = 120.0


class Terminal:
    """A terminal with one command on it, which echoes nothing and changes no newline."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> None:
        self.seen = b""
        self.argv = argv
        self.near, far = pty.openpty()
        _plain(far)
        program = shutil.which(argv[0], path=env.get("PATH")) or argv[0]
        name = os.ttyname(far)
        dup = os.POSIX_SPAWN_DUP2
        # Opened by a session leader, so it becomes the controlling terminal.
        actions = [(os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0), (dup, 0, 1), (dup, 0, 2)]
        here = os.getcwd()
        os.chdir(cwd)
        try:
            self.began = time.monotonic()
            self.pid = os.posix_spawn(
                program, list(argv), dict(env), file_actions=actions, setsid=True
            )
        except OSError as error:
            os.close(self.near)
            raise Unmeasured(f"could not start {argv[0]}: {error.strerror}") from None
        finally:
            os.chdir(here)
            os.close(far)
        self.ended = os.pidfd_open(self.pid)
        self.poll = select.poll()
        self.poll.register(self.near, select.POLLIN)
        self.poll.register(self.ended, select.POLLIN)

    def type(self, line: str) -> None:
        """Type a line; what is seen from now on starts afresh, and so does the clock."""
        self.seen = b""
        self.began = time.monotonic()
        os.write(self.near, line.encode() + b"\n")

    def until(self, *texts: str, patience_s: float = PATIENCE_S) -> float:
        """Wait for one of the texts; return the seconds since the start or the typing."""
        wanted = [text.encode() for text in texts]
        while not any(text in self.seen for text in wanted):
            if not self._read(patience_s):
                raise Unmeasured(f"{self._name()}: no `{texts[0]}`, it said: {self.text[-600:]}")
        return time.monotonic() - self.began

    def to_the_end(self) -> float:
        """Read until the command ends; return the seconds since the start."""
        while self._read(PATIENCE_S):
            pass
        return time.monotonic() - self.began

    @property
    def text(self) -> str:
        """All that was seen."""
        return self.seen.decode(errors="replace").replace("\r\n", "\n")

    def close(self) -> int:
        """End the command if it still runs, by its id; return its exit code."""
        if not _is_ready(self.ended):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.near)
        os.close(self.ended)
        return os.waitstatus_to_exitcode(status)

    def _read(self, patience_s: float) -> bool:
        """Take in what is there; False at the end or when patience is gone."""
        while True:
            left_s = self.began + patience_s - time.monotonic()
            ready = dict(self.poll.poll(max(0.0, left_s) * 1000))
            if self.near in ready:
                try:
                    block = os.read(self.near, 1 << 20)
                except OSError:  # EIO: the last user of the terminal is gone
                    block = b""
                if block:
                    self.seen += block
                    return True
                if self.ended in ready or left_s < 0:
                    return False
                time.sleep(0.001)
                continue
            return False

    def _name(self) -> str:
        return os.path.basename(self.argv[0])


def _plain(fd: int) -> None:
    """Switch off echo and the translation of newlines."""
    modes = termios.tcgetattr(fd)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(fd, termios.TCSANOW, modes)


def _is_ready(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
