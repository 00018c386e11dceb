"""Which processes are meant: by pid, by a pattern in name or command line, by user."""

from __future__ import annotations

import os

from relaunch.look.stacks.frames import LookError
from relaunch.look.trees import is_rl, lineage
from relaunch.look.usage import command, owner, stat_of
from relaunch.patterns import NotFinished, Patience

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Collection, Sequence

    from relaunch.look.trees import Matches

INTERPRETERS = ("python", "pypy", "bash", "sh", "zsh", "torchrun", "accelerate", "deepspeed",
                "srun", "mpirun", "pytest", "node", "ruby", "perl", "java", "rl", "sudo",
                "env", "make", "uv", "conda")  # fmt: skip
"""Who runs other programs is never run by a guess: a training would start twice."""


def by_pid(pid: int) -> Matches | None:
    """Match one process that is there; None when it is not."""
    found = stat_of(pid)
    if found is None or found.state == "Z":
        return None
    started = found.started

    def matches(other: int, _: str) -> bool:
        if other != pid:
            return False
        stat = stat_of(other)
        return stat is not None and stat.started == started

    return matches


def by_pattern(pattern: re.Pattern[str] | None, uid: int | None) -> Matches:
    """Match who has the pattern in its name or command line, and belongs to the user.

    Never us, nor who started us, nor another rl: their words are the names of other programs.
    """
    above = frozenset(lineage(os.getpid()))
    look = Patience().first

    def matches(pid: int, name: str) -> bool:
        if pid in above or (uid is not None and owner(pid) != uid):
            return False
        if pattern is None:
            return not is_rl(pid)
        try:
            found = look(pattern, name) or look(pattern, " ".join(command(pid)))
        except NotFinished as why:
            raise LookError(f"{why}, the name and command line of process {pid}") from None
        return found is not None and not is_rl(pid)

    return matches


def any_of(several: Sequence[Matches]) -> Matches:
    """Match who matches one of them."""
    return lambda pid, name: any(one(pid, name) for one in several)


def is_command(word: str, path: str) -> bool:
    """Tell a line of shell from a pattern: of several words, the first is a program on `path`.

    `df -h /tmp` is one; `python train.py` is not: that is a process to be watched.
    """
    first, *rest = word.split() or [""]
    if not rest:
        return False
    name = os.path.basename(first).rstrip("0123456789.")
    return name not in INTERPRETERS and _is_program(first, path.split(os.pathsep))


def _is_program(name: str, folders: Collection[str]) -> bool:
    places = [name] if "/" in name else [os.path.join(folder, name) for folder in folders]
    return any(os.path.isfile(one) and os.access(one, os.X_OK) for one in places)
