"""The standard streams we were given: closed ones, shared ones, and pipes."""

from __future__ import annotations

import fcntl
import os
import stat

PIPE_BYTES = 1 << 20

_closed: set[int] = set()


def plug() -> frozenset[int]:
    """Fill closed standard streams, so that no file of ours takes their number; return which.

    The earlier in the life of the process the better; safe to call again.
    """
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            _closed.add(fd)
    return frozenset(_closed)


def are_one_file(first: int, second: int) -> bool:
    """Tell whether both streams go to one place that keeps what comes, as after `2>&1`."""
    one, other = os.fstat(first), os.fstat(second)
    return os.path.samestat(one, other) and not stat.S_ISCHR(one.st_mode)


def let_go_of_stdin() -> None:
    """Let who writes into our stdin see when the program stops reading it."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def enlarge(pipe: int) -> None:
    """Give a pipe the largest size that any user may have."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (OSError, AttributeError):  # above this user's limit, or not Linux
        pass
