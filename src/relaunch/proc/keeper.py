"""Starts the program on a terminal of its own, below a keeper that leads its session."""

from __future__ import annotations

import fcntl
import os
import termios

from relaunch.proc.guard import close_others
from relaunch.proc.prctl import die_with_parent

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal

    from relaunch.proc.launch import Start
else:
    import _signal


def fork_session(start: Start, slave: int, statuses: int) -> int:
    """Start the program in a session of its own on the terminal `slave`; return its keeper's pid.

    The session's leader is a keeper that only waits: a program that led its own session could not
    be stopped by Ctrl-Z, because the kernel never stops an orphaned process group.
    The keeper writes lines to `statuses`: the program's pid, then each wait status.
    """
    me = os.getpid()
    keeper = os.fork()
    if keeper == 0:
        try:
            _keep(start, slave, statuses, me)
        finally:
            os._exit(125)
    start.close_report()
    return keeper


def _keep(start: Start, slave: int, statuses: int, parent: int) -> None:
    die_with_parent(_signal.SIGKILL)
    if os.getppid() != parent:
        return
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    me = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            os.tcsetpgrp(slave, os.getpid())
        finally:
            start.run(me)
    os.write(statuses, b"%d\n" % pid)
    start.close_report()
    close_others(slave, statuses)
    status = 0x7F
    while os.WIFSTOPPED(status):
        _, status = os.waitpid(pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            os.tcsetpgrp(slave, me)  # who lives on is not hung up with us
        os.write(statuses, b"%d\n" % status)
    os._exit(0)
