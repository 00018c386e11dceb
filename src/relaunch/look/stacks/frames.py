"""Frames, threads, and the stacks of one process; how a place in the user's code is called."""

from __future__ import annotations

import os

from relaunch.errors import RelaunchError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAIN = "MainThread"
_FORKS = ("/multiprocessing/popen_fork.py", "/multiprocess/popen_fork.py")


class LookError(RelaunchError):
    """A running process cannot be looked at."""


class Frame(Record):
    """A function that is being run, and the line it is at."""

    file: str
    line: int
    function: str
    locals: Mapping[str, str] = {}
    """Variable to its repr, where they were asked for."""
    is_native: bool = False
    """Not Python: the file is a source of C where that is known, else a library."""


class Thread(Record):
    """One thread of a process; its frames, innermost first."""

    id: int
    """As the kernel counts threads: /proc/PID/task/ID. 0 when that is not known."""
    name: str
    frames: tuple[Frame, ...]
    has_gil: bool = False
    doing: str = ""
    """What the kernel says, seen before anybody stopped it: `running`, `futex`, `read 5 pipe`."""


class ProcessStacks(Record):
    """One process, all its threads, and how they were read; or why they were not."""

    pid: int
    node: str = ""
    """The host it runs on."""
    command: str = ""
    parent: int = 0
    state: str = ""
    """As the kernel has it: R, S, D, T (stopped), t (traced), Z."""
    rank: int | None = None
    rank_from: str = ""
    """The variable that says so; those of one world that say it by a better one are its ranks."""
    world: str = ""
    """Who counts ranks together: a job and its step, or where they meet."""
    world_size: int = 0
    """How many ranks there are to be; 0 when nobody says."""
    is_python: bool = True
    threads: tuple[Thread, ...] = ()
    read_by: str = ""
    """`py-spy` and so on; nothing when there are no stacks."""
    problem: str = ""
    """Why there are none, or less than was asked for."""
    fix: str = ""
    """What to type for more."""

    @property
    def has_ended(self) -> bool:
        """Tell whether it only waits to be collected."""
        return self.state in ("Z", "X")

    @property
    def is_stopped(self) -> bool:
        """Tell whether it stands still already, by a signal or a debugger."""
        return self.state in ("T", "t")

    @property
    def is_read(self) -> bool:
        """Tell whether its stacks are known; what the kernel says of its threads is not that."""
        is_known = bool(self.threads) and not self.problem
        return is_known or any(thread.frames for thread in self.threads)

    @property
    def main(self) -> Thread | None:
        """Return its first thread: the one with the number of the process."""
        for thread in self.threads:
            if thread.id == self.pid:
                return thread
        return next((one for one in self.threads if one.name == MAIN), None)


def chain(frames: Sequence[Frame], roots: Sequence[str], most: int = 3) -> str:
    """Say where a thread is by the user's own frames: `loader.py:9 load_rows <- train.py:12`."""
    return " <- ".join(map(place, _own(frames, roots)[:most]))


def functions(frames: Sequence[Frame], roots: Sequence[str]) -> tuple[str, ...]:
    """Return the user's own functions, innermost first: the identity of a place, for lines move."""
    return tuple(f"{os.path.basename(one.file)} {one.function}" for one in _own(frames, roots))


def is_own(frames: Sequence[Frame], roots: Sequence[str]) -> bool:
    """Tell whether any of the user's own code is being run."""
    return any(is_own_file(one.file, roots) for one in frames)


def since_fork(frames: Sequence[Frame]) -> Sequence[Frame]:
    """Return what a thread runs in its own process: a forked worker has its parent's frames too."""
    for at, one in enumerate(frames):
        if one.file.endswith(_FORKS):
            return frames[:at]
    return frames


def is_own_file(file: str, roots: Iterable[str]) -> bool:
    """Tell whether a file is of the user: below one of the roots, and no library there."""
    inside = any(file.startswith(root.rstrip(os.sep) + os.sep) for root in roots)
    return inside and not is_library(file)


def is_library(file: str) -> bool:
    """Tell whether a file was installed with Python, or into it."""
    return "/site-packages/" in file or "/dist-packages/" in file or "/lib/python3" in file


def place(frame: Frame) -> str:
    """Say where a frame is: `loader.py:9 load_rows`."""
    at = f"{os.path.basename(frame.file)}:{frame.line}"
    return at if frame.function == "<module>" else f"{at} {frame.function}"


def _own(frames: Sequence[Frame], roots: Sequence[str]) -> list[Frame]:
    """Return the frames of the user's own files; all, where none is."""
    own = [one for one in frames if is_own_file(one.file, roots)]
    return own or [*frames]
