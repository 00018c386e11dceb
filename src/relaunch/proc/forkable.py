"""Starts a program that waits at its beginning to be forked: our child, which ends when we do."""

from __future__ import annotations

import fcntl
import os

from relaunch.proc.launch import find_program, restore_signals
from relaunch.proc.prctl import become_subreaper
from relaunch.proc.tree import MARKER
from relaunch.proc.workers import Worker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

LISTENER, HEARD, LINK = 500, 501, 502
"""Numbers of its descriptors: where it is asked, and where all that it says can be read."""


def start_forkable(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], listener: int
) -> Worker:
    """Start `argv`; it carries the marker of the worker that it is, and so do its forks."""
    path = find_program(argv[0], cwd, env)
    return Worker(lambda marker: _become(path, argv, cwd, {**env, MARKER: marker}, listener))


def start_held(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    link: int,
    output: int,
    heard: int,
    stdin: int,
) -> Worker:
    """Start `argv` with these for output and orders; it carries the marker of its worker."""
    path = find_program(argv[0], cwd, env)

    def become(marker: str) -> NoReturn:
        for fd, number in ((stdin, 0), (output, 1), (output, 2), (link, LINK), (heard, HEARD)):
            os.dup2(fd, number)
        become_subreaper()
        os.chdir(cwd)
        restore_signals((), ())
        os.execve(path, list(argv), {**env, MARKER: marker})

    return Worker(become)


def _become(
    path: str, argv: Sequence[str], cwd: str, env: Mapping[str, str], listener: int
) -> NoReturn:
    """Give it a pipe for its output, as any probe has, and be it."""
    near, far = os.pipe()
    for fd in (1, 2):
        os.dup2(far, fd)
    for fd, number in ((listener, LISTENER), (near, HEARD)):
        fcntl.fcntl(fd, fcntl.F_DUPFD, number)
    become_subreaper()  # orphans of its forks come to it
    os.chdir(cwd)
    restore_signals((), ())
    os.execve(path, list(argv), dict(env))
