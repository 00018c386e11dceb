"""Says lines on the program's standard error, whole ones, whatever the program does to it."""

from __future__ import annotations

import os

from relaunch.inside.printable import printable

TYPE_CHECKING = False

_write = os.write
_HIGH = 500
_FIRST = "first"


class Voice:
    """One line at a time, each by one write: those of many processes never mix within a line."""

    def __init__(self, folder: str) -> None:
        """Take standard error as it is now: pytest and others will turn it elsewhere."""
        self._fd = _aside(2)
        self._is_first = _comes_first(folder)
        self.prefix = ""
        self.begin()

    def begin(self, *, is_fork: bool = False) -> None:
        """Find out who speaks; after a fork, again."""
        self._is_first = self._is_first and not is_fork
        self.prefix = _name(self._is_first)

    def say(self, text: str) -> None:
        """Say one line; who cannot hear it is not made to."""
        data = f"{self.prefix}{printable(text)}\n".encode()
        try:
            while data:
                data = data[_write(self._fd, data) :]
        except OSError:
            pass


def _aside(fd: int) -> int:
    """Have a file under a number that programs do not come to."""
    try:
        import fcntl

        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    except (OSError, ImportError, ValueError):
        return fd


def _comes_first(folder: str) -> bool:
    """Tell whether this process is the one that was launched, and not a child of it."""
    try:
        os.close(os.open(f"{folder}/{_FIRST}", os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError:
        return False
    return True


def _name(is_first: bool) -> str:
    """Return who speaks, where that is not plain: a rank, a worker of pytest, a process."""
    env = os.environ
    if env.get("RANK") and env.get("WORLD_SIZE", "1") != "1":
        return f"[rank {env['RANK']}] "
    if env.get("PYTEST_XDIST_WORKER"):
        return f"[{env['PYTEST_XDIST_WORKER']}] "
    return "" if is_first else f"[{os.getpid()}] "
