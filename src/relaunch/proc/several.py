"""Helper commands in turns, for many tasks at once, each command with a time limit; no threads.

A task is a generator: it yields a command and is sent what came of it, or yields a number and is
resumed after so many seconds. What it returns is its result.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.proc.capture import Captured
from relaunch.proc.ours import plain_env
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Generator, Iterable, Sequence
    from typing import Any, TypeVar

    Result = TypeVar("Result")
    Task = Generator["Command | float", Captured | None, Result]
else:
    import _signal

TIMED_OUT = 124
"""The code of a command that took too long, as `timeout` has it."""
_KILLED_S = 0.5
"""One that does not end even then hangs in the kernel, and is left to it."""
_REAP_S = 0.005


class Command(Record):
    """What to run, its input empty, and how long that may take."""

    argv: Sequence[str]
    """Its first word is a path: nobody looks on PATH."""
    limit_s: float


def drive(tasks: Sequence[Task[Result]], *, at_once: int) -> list[Result]:
    """Run all tasks to their ends, so many commands at the same time; results in their order."""
    crew = _Crew(tasks, at_once)
    try:
        while crew.go_on():
            pass
    except BaseException:
        crew.stop()
        raise
    return [crew.results[at] for at in range(len(tasks))]


class _Running:
    """One command under way."""

    def __init__(self, task: int, command: Command, mask: Iterable[int]) -> None:
        """Start it in a process group of its own: what the terminal sends us is not for it."""
        self.task = task
        self.until = time.monotonic() + command.limit_s
        out, out_far = os.pipe()
        err, err_far = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        actions = [
            (os.POSIX_SPAWN_DUP2, nothing, 0),
            (os.POSIX_SPAWN_DUP2, out_far, 1),
            (os.POSIX_SPAWN_DUP2, err_far, 2),
        ]
        try:
            argv = list(command.argv)
            self.pid = os.posix_spawn(
                argv[0],
                argv,
                plain_env(os.environ),
                file_actions=actions,
                setpgroup=0,
                setsigmask=mask,
            )
        except OSError:
            os.close(out)
            os.close(err)
            raise
        finally:
            for fd in (nothing, out_far, err_far):
                os.close(fd)
        self.open = {out: 0, err: 1}
        self._kept: tuple[list[bytes], list[bytes]] = ([], [])

    def read(self, fd: int) -> None:
        """Take what a stream has."""
        block = os.read(fd, 1 << 20)
        if block:
            self._kept[self.open[fd]].append(block)
        else:
            del self.open[fd]
            os.close(fd)

    def ended(self) -> Captured | None:
        """Return what came of it, once it has ended or its time is over."""
        is_late = time.monotonic() >= self.until
        if self.open and not is_late:
            return None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid and not is_late:
            return None
        if not pid:
            self.kill()
            return Captured(code=TIMED_OUT, out=b"", err=b"it took too long")
        self._close()
        code = os.waitstatus_to_exitcode(status)
        out, err = (b"".join(blocks) for blocks in self._kept)
        return Captured(code=code if code >= 0 else 128 - code, out=out, err=err)

    def kill(self) -> None:
        """End it, with all it started."""
        try:
            os.killpg(self.pid, _signal.SIGKILL)
        except OSError:
            pass
        until = time.monotonic() + _KILLED_S
        while not os.waitpid(self.pid, os.WNOHANG)[0] and time.monotonic() < until:
            time.sleep(_REAP_S)
        self._close()

    def _close(self) -> None:
        for fd in self.open:
            os.close(fd)
        self.open = {}


class _Crew:
    """The tasks, which of them wait for a command or a moment, and what came of the others."""

    def __init__(self, tasks: Sequence[Task[Any]], at_once: int) -> None:
        """Begin with none."""
        self._tasks = tasks
        self._at_once = max(1, at_once)
        self._waiting = [*reversed(range(len(tasks)))]
        """Tasks that are not begun, the next one last."""
        self._commands: list[tuple[int, Command]] = []
        self._running: list[_Running] = []
        self._asleep: list[tuple[float, int]] = []
        self.results: dict[int, Any] = {}

    def go_on(self) -> bool:
        """Start what can be started, wait for something, and hand it on; False at the end."""
        while self._places():
            if self._commands:
                self._start(*self._commands.pop(0))
            elif self._waiting:
                self._resume(self._waiting.pop(), None)
            else:
                break
        if not (self._running or self._asleep):
            return False
        self._wait()
        for one in [*self._running]:
            done = one.ended()
            if done is not None:
                self._running.remove(one)
                self._resume(one.task, done)
        now = time.monotonic()
        due = [task for when, task in self._asleep if when <= now]
        self._asleep = [(when, task) for when, task in self._asleep if when > now]
        for task in due:
            self._resume(task, None)
        return True

    def _places(self) -> bool:
        return len(self._running) + len(self._asleep) < self._at_once

    def _start(self, task: int, command: Command) -> None:
        # An interruption in between would leave a command that nobody ends.
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
        try:
            self._running.append(_Running(task, command, mask))
            failure = None
        except OSError as error:
            failure = str(error)
        finally:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        if failure is not None:
            self._resume(task, Captured(code=127, out=b"", err=failure.encode()))

    def _resume(self, task: int, done: Captured | None) -> None:
        try:
            wish = self._tasks[task].send(done)
        except StopIteration as end:
            self.results[task] = end.value
            return
        if isinstance(wish, Command):
            self._commands.append((task, wish))
        else:
            self._asleep.append((time.monotonic() + wish, task))

    def _wait(self) -> None:
        """Sleep until a command says something, or a moment comes."""
        poll = select.poll()
        files = {fd: one for one in self._running for fd in one.open}
        for fd in files:
            poll.register(fd, select.POLLIN)
        now = time.monotonic()
        until = [one.until for one in self._running] + [when for when, _ in self._asleep]
        if any(not one.open for one in self._running):  # it is silent, and about to end
            until.append(now + _REAP_S)
        for fd, _ in poll.poll(max(0.0, min(until) - now) * 1000 + 1):
            files[fd].read(fd)

    def stop(self) -> None:
        """End what runs, and let every task tidy up."""
        for one in self._running:
            one.kill()
        for task in self._tasks:
            task.close()
