"""Descriptors of ours, out of the way: the program's own have the numbers that it has alone."""

from __future__ import annotations

import fcntl
import os
import resource
import socket

_HIGH = 500


def higher(fd: int) -> int:
    """Give a file a number that programs do not come to."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    new = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH if most > 2 * _HIGH else most // 2)
    os.close(fd)
    return new


def put_aside(link: socket.socket) -> socket.socket:
    """Give a connection such a number."""
    return socket.socket(fileno=higher(link.detach()))
