"""Starts a process that outlives us: in a session of its own, with one descriptor of ours."""

from __future__ import annotations

import os

from relaunch.proc.guard import close_others
from relaunch.proc.launch import restore_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def start_detached(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], inherited: int
) -> None:
    """Start `argv`, which finds the descriptor `inherited` as 3 and the null device as 0 to 2.

    Nobody waits for it, and nothing of it shows; OSError when no process can be started.
    """
    middle = os.fork()
    if middle == 0:
        try:
            os.setsid()
            if os.fork() == 0:
                _become(argv, cwd, env, inherited)
        finally:
            os._exit(0)
    os.waitpid(middle, 0)


def _become(argv: Sequence[str], cwd: str, env: Mapping[str, str], inherited: int) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    kept = os.dup(inherited) if inherited <= 3 else inherited
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.dup2(kept, 3)
    close_others(0, 1, 2, 3)
    os.chdir(cwd)
    os.umask(0o077)
    restore_signals((), ())
    os.execve(argv[0], list(argv), dict(env))
