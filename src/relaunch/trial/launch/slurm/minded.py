"""Which steps of ours run, and whether somebody still minds them: who is killed cancels nothing.

Each has a file that is locked as long as rl, or the guard that outlives it, is there. The system
lets go of the lock whatever happens to them.
"""

from __future__ import annotations

import os

from relaunch.trial.launch.slurm.ask import cancel, steps_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = "steps"


class Minded:
    """One step that is ours to end."""

    def __init__(self, folder: str, job: str, name: str) -> None:
        """Note it, before it begins."""
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, name)
        new = os.path.join(folder, f".{name}")
        self._file = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        _lock(self._file)
        os.write(self._file, f"{job} {os.stat(folder).st_ino} {os.uname().nodename}".encode())
        os.rename(new, self._path)  # nobody sees it unlocked

    def close(self) -> None:
        """It has ended."""
        try:
            os.unlink(self._path)
        except OSError:
            pass
        os.close(self._file)


def end_unminded(folder: str, env: Mapping[str, str]) -> None:
    """End the steps that nobody minds any more."""
    try:
        names = [name for name in os.listdir(folder) if not name.startswith(".")]
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            file = os.open(path, os.O_RDWR)
        except OSError:  # it has just ended
            continue
        try:
            if _lock(file):
                _end(name, os.read(file, 1000).decode(), path, env)
        finally:
            os.close(file)


def _end(name: str, said: str, path: str, env: Mapping[str, str]) -> None:
    job, folder, host = (*said.split(" ", 2), "", "")[:3]
    if folder != str(os.stat(os.path.dirname(path)).st_ino):  # of a copy nobody holds the lock
        os.unlink(path)
        return
    if host != os.uname().nodename:  # a lock may not be seen from other machines
        return
    steps = [step for step, called in steps_of(job, env).items() if called == name]
    if not steps or not cancel(steps, env):
        os.unlink(path)


def _lock(file: int) -> bool:
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
