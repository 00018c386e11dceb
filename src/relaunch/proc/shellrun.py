"""A line of shell that runs beside us: its output is read as it comes, and it can be ended."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_MOST_BYTES = 1 << 20
"""Of more output, the beginning is kept."""


class ShellRun:
    """One run of a line, in a process group of its own, with nothing to read."""

    def __init__(self, line: str) -> None:
        """Start it; OSError when no process can be started."""
        near, far = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        actions = [
            (os.POSIX_SPAWN_DUP2, nothing, 0),
            (os.POSIX_SPAWN_DUP2, far, 1),
            (os.POSIX_SPAWN_DUP2, far, 2),
        ]
        try:
            self.pid = os.posix_spawn(
                "/bin/sh",
                ["sh", "-c", line],
                os.environ,
                file_actions=actions,
                setpgroup=0,
                setsigmask=(),
                setsigdef=(_signal.SIGPIPE, _signal.SIGINT),
            )
        except OSError:
            os.close(near)
            raise
        finally:
            os.close(far)
            os.close(nothing)
        os.set_blocking(near, False)
        self._file = near
        self._blocks: list[bytes] = []
        self._size = 0
        self.code: int | None = None
        """How it ended, 128+n when a signal did; None while it runs."""

    def fileno(self) -> int:
        """Where its output comes, for a poll; -1 when it has ended."""
        return self._file

    @property
    def text(self) -> str:
        """What it said so far."""
        return os.fsdecode(b"".join(self._blocks))

    def read(self) -> bool:
        """Take what it says; True when it has ended."""
        try:
            block = os.read(self._file, 1 << 16)
        except BlockingIOError:
            return False
        if block:
            if self._size < _MOST_BYTES:
                self._blocks.append(block)
                self._size += len(block)
            return False
        self._collect()
        return True

    def stop(self) -> None:
        """End it and all of its group."""
        if self.code is None:
            try:
                os.killpg(self.pid, _signal.SIGKILL)
            except OSError:
                pass
            self._collect()

    def _collect(self) -> None:
        os.close(self._file)
        self._file = -1
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.code = code if code >= 0 else 128 - code
