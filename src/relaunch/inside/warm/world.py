"""The world around a snapshot, taken right before a fork and put back in a resumed process.

A forked process shares more with its parent than it seems: offsets of open files, sockets, locks,
memory mapped for sharing. What can be made its own again is; `refuse` has the rest.
"""

from __future__ import annotations

import os
import posix
import sys

from . import bars, multiproc, pools, shared
from .kept import Kept, keep
from .ledger import Ledger
from .native import renew_generators, renew_torch
from .opened import CannotRestore, open_files, open_pipes, stream_of
from .pipes import Pipe
from .refuse import refuse
from .states import folder_of, identity_of, kind_of, open_fds
from .still import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

__all__ = ["CannotRestore", "Ledger", "World", "before_fork", "changed", "refuse"]

_STREAMS = ("input", "output", "error")
_NUMPY = "numpy.random.mtrand"


def before_fork() -> None:
    """Make a fork harmless: pause pools of threads.

    Nothing is flushed: what is still in a buffer is copied with it, and written when the resumed
    program flushes, as it would be in a cold run.
    """
    pools.pause()


class World:
    """What is to be put back in a resumed process; taken right before the fork."""

    def __init__(self, ledger: Ledger) -> None:
        """Keep open files, written files, shared memory, streams and random states."""
        self.ledger = ledger
        self.pid = os.getpid()
        self.files = open_files(ledger)
        self.pipes = [Pipe(fds) for fds in open_pipes(ledger)]
        self.memory = shared.Memory()
        self.has_torch_pool = pools.has_torch_pool()
        self.bars = bars.Monitors()
        self.kept = [keep(ledger, path, base) for path, base in ledger.written.items()]
        self.streams = {fd: stream for fd in open_fds() if (stream := stream_of(fd, ledger)) >= 0}
        self.terminals = {stream: _is_terminal(fd) for fd, stream in self.streams.items()}
        self.cwd = os.getcwd()
        self.leads = ledger.role.believed
        self.closed = [fd for fd in range(3) if identity_of(fd) is None]
        self.random = _random_states(ledger)
        self.new_streams: list[tuple[int, int] | None] = []

    def holds(self) -> bool:
        """Tell whether a snapshot would keep something open for others, until it lets go."""
        return bool(self.pipes or self.files)

    def let_go(self) -> None:
        """In the snapshot: keep no pipe that somebody waits for, and no lock; only the numbers."""
        numbers = {fd for one in (self.pipes, self.files) for each in one for fd, _ in each.fds}
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for fd in numbers - {nothing}:
            os.dup2(nothing, fd, inheritable=False)
        if nothing not in numbers:  # a library may have closed its own when it heard of the fork
            os.close(nothing)

    def prepare(self, fds: Sequence[int]) -> None:
        """Have these standard streams, and look whether the world can be put back.

        The descriptors are used up. CannotRestore says what prevents it; nothing is changed then.
        """
        self._check(fds)
        self._do(self._try_files, lambda: self._streams(fds))

    def restore(self, env: Mapping[str, str]) -> None:
        """Put the world back; CannotRestore says what prevents it."""
        self._do(self._files, lambda: os.chdir(self.cwd), self._open_all)
        os.environ.update(env)
        self.ledger.role.play(self.leads)
        _set_random_states(self.ledger, self.random)
        multiproc.rename(self.pid)
        if self.has_torch_pool:
            pools.renew_torch_pool()
        self.bars.renew()
        self._settle()

    def _do(self, *steps: Callable[[], object]) -> None:
        """Do what the program is not to hear of."""
        self.ledger.asleep = True
        try:
            for step in steps:
                step()
        except OSError as error:
            name = error.filename or "a file"
            raise CannotRestore(f"{name} cannot be put back: {error.strerror}") from None
        finally:
            self.ledger.asleep = False

    def _open_all(self) -> None:
        for file in self.files:
            file.reopen()
        for pipe in self.pipes:
            pipe.reopen()
        self.memory.map_anew({one.identity: one.fds[0][0] for one in self.files})

    def _check(self, fds: Sequence[int]) -> None:
        for stream, (fd, kind) in enumerate(zip(fds, _STREAMS, strict=False)):
            old = self.terminals.get(stream, _is_terminal(fd))
            if _is_terminal(fd) != old:
                word = "no terminal" if old else "a terminal"
                raise CannotRestore(f"the standard {kind} is {word} now")

        for fd, size in self.ledger.terminal_sizes.items():
            if fd < len(fds) and _terminal_size(fds[fd]) != size:
                raise CannotRestore("the terminal has another size now")

    def _try_files(self) -> None:
        """Look whether all can be put back and opened, before anything is changed."""
        kept = {one.path: one.kind for one in self.kept}
        for path, kind in kept.items():
            folder = folder_of(path)
            if kind in ("file", "link") and kept.get(folder) != "dir" and kind_of(folder) != "dir":
                raise CannotRestore(f"{folder} is gone")
        for one in self.kept:
            one.try_put_back()
        for file in self.files:
            if file.path not in kept:
                file.try_open()

    def _files(self) -> None:
        """Folders first, from above; removals last, from below."""
        by_depth = sorted(self.kept, key=lambda one: one.path.count("/"))
        for one in by_depth:
            if one.kind == "dir":
                one.put_back()
        for one in sorted(self.kept, key=Kept.age):
            if one.kind in ("file", "link"):
                one.put_back()
        for one in reversed(by_depth):
            if one.kind == "absent":
                one.put_back()

    def _streams(self, fds: Sequence[int]) -> None:
        for fd, stream in self.streams.items():
            os.dup2(fds[stream], fd, inheritable=fd <= 2 or os.get_inheritable(fd))
        for fd in self.closed:
            os.close(fd)
        self.new_streams = [identity_of(fd) for fd in fds]
        for fd in {*fds}:
            if fd > 2:
                os.close(fd)

    def _settle(self) -> None:
        """Know again which descriptors are ours, and how much of appended files was there."""
        ledger = self.ledger
        theirs = {fd for file in self.files for fd, _ in file.fds}
        theirs |= {fd for pipe in self.pipes for fd, _ in pipe.fds}
        ledger.know_fds()
        ledger.streams = self.new_streams
        for fd in theirs:
            ledger.own_fds.pop(fd, None)
        for one in self.kept:
            if one.base >= 0 and one.kind == "file":
                ledger.written[one.path] = posix.stat(one.path).st_size - len(one.data)


def _terminal_size(fd: int) -> tuple[int, int] | None:
    try:
        columns, lines = posix.get_terminal_size(fd)
    except OSError:
        return None
    return columns, lines


def _is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def _random_states(ledger: Ledger) -> dict[str, Any]:
    states: dict[str, Any] = {}
    random: Any = sys.modules.get("random")
    if random is not None and ("random" in ledger.seeded or "random" not in ledger.watched):
        states["random"] = random.getstate()
    return states


def _set_random_states(ledger: Ledger, states: Mapping[str, Any]) -> None:
    """Put seeded generators back, which forking has reseeded; give the others fresh entropy."""
    if "random" in states:
        random: Any = sys.modules["random"]
        random._inst.setstate(states["random"])
    numpy: Any = sys.modules.get(_NUMPY)
    if numpy is not None and _NUMPY in ledger.watched and _NUMPY not in ledger.seeded:
        numpy._rand.seed()
    renew_torch(ledger)
    renew_generators(ledger)
