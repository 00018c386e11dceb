"""Standard streams that were closed: never reused by accident, and closed for the program."""

from __future__ import annotations

import os

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
