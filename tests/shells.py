"""A real program on a real terminal of its own, typed at and read until it has said something."""

import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path

DEADLINE_S = 300.0
# A terminal must be taken by the new session's leader before it becomes the shell.
_TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
_TAKE += "os.execvp(sys.argv[1], sys.argv[1:])"


class Terminal:
    """Types at `argv`; `screen` is all it has drawn, without escape sequences."""

    def __init__(self, argv: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self._near, far = os.openpty()
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", _TAKE, *argv],
            stdin=far,
            stdout=far,
            stderr=far,
            env={**env},
            cwd=cwd,
            start_new_session=True,
        )
        os.close(far)
        self._raw = b""

    @property
    def screen(self) -> str:
        text = self._raw.decode(errors="replace")
        text = re.sub(r"\x1b(\][^\x07]*\x07|\[[0-9;?>=]*[a-zA-Z]|[=>()][0-9A-Z]?)", "", text)
        while "\b" in text.lstrip("\b"):  # what a shell steps back over, it draws anew
            text = re.sub(r"[^\x08]\x08", "", text)
        return text

    def type(self, text: str) -> None:
        """Press keys."""
        data = text.encode()
        while data:
            data = data[os.write(self._near, data) :]

    def wait(self, pattern: str, *, after: int = 0) -> int:
        """Read until the screen matches past `after`; returns where the match ended."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            found = re.compile(pattern).search(self.screen, after)
            if found:
                return found.end()
            left = deadline - time.monotonic()
            ready = select.select([self._near], [], [], max(left, 0))[0]
            assert ready, f"no {pattern!r} in {self.screen[after:]!r}"
            try:
                self._raw += os.read(self._near, 65536)
            except OSError:
                raise AssertionError(f"ended before {pattern!r}: {self.screen!r}") from None

    def kill(self) -> None:
        """End it without a chance to say goodbye."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Hang up."""
        if self.process.poll() is None:
            self.kill()
        os.close(self._near)
