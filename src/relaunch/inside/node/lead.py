"""Leads the ranks of one run: forks them, shows what they say, ends all when one has failed."""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

from relaunch.inside.node import rank as ranks_
from relaunch.inside.node.lines import PATIENCE_S, Screen, Speaker, label_of
from relaunch.inside.node.script import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

_ASKED_S = 2.0
"""What a rank has to end by itself when it is told to."""
_LAST_S = 0.5
"""How long output is awaited of who has our streams and outlives its rank."""
_BLOCK = 1 << 16


class Rank:
    """One of them, as its leader knows it."""

    def __init__(self, number: int, pid: int) -> None:
        """It was just forked."""
        self.number, self.pid = number, pid
        self.status: int | None = None
        self.speakers: dict[int, Speaker] = {}


class Leader:
    """The process that the ranks are children of; to all others it is the program."""

    def __init__(self, spec: Mapping[str, Any], mode: Any, learn: int = -1) -> None:
        """`spec` says what is run, and how many of it; `learn` is a file for what it imports."""
        self._spec = spec
        self._learn = learn
        self._mode = mode
        self._count = 1 if spec["threads"] else int(spec["ranks"])
        self._ranks: dict[int, Rank] = {}
        self._by_fd: dict[int, tuple[Rank, Speaker]] = {}
        self._tells: dict[int, Rank] = {}
        self._poll = select.poll()
        self._first: Rank | None = None
        """The rank that failed first."""
        self._ends_at = 0.0
        self._told = 0
        """The signal that somebody ended us with."""
        joined = _are_one(1, 2)
        self._screens = {1: Screen(_writer(1))}
        self._screens[2] = self._screens[1] if joined else Screen(_writer(2))

    def run(self) -> int:
        """Run all to their end; returns the wait status that is the program's."""
        self._wake = self._listen()
        port = _free_port()
        program = Program(
            self._spec["kind"], self._spec["target"], self._spec["words"], self._spec["cwd"]
        )
        for number in range(self._count):
            self._fork(number, program, port)
        while any(one.status is None for one in self._ranks.values()):
            self._turn()
        self._drain()
        failed = self._first
        if failed is None:
            return next((one.status for one in self._ranks.values() if one.status), 0)
        if len(self._ranks) > 1:
            self._tell_who(failed)
        return failed.status or 0

    # --- beginning

    def _listen(self) -> int:
        """Hear of signals by a file: who ended, and who wants us to end."""
        near, far = os.pipe()
        for fd in (near, far):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT):
            signal.signal(number, self._heed)
        self._poll.register(near, select.POLLIN)
        return near

    def _fork(self, number: int, program: Program, port: int) -> None:
        near: dict[int, int] = {}
        far: dict[int, int] = {}
        for stream in (1, 2):
            if stream == 2 and self._screens[1] is self._screens[2]:
                far[2] = far[1]
            else:
                near[stream], far[stream] = os.pipe()
        heard, tell = os.pipe()
        flush_all()
        pid = os.fork()
        if pid == 0:
            self._become(number, program, port, far, tell)
        for fd in {*far.values(), tell}:
            os.close(fd)
        one = self._ranks[pid] = Rank(number, pid)
        label = b"" if self._spec["threads"] else label_of(number)
        for stream, fd in near.items():
            os.set_blocking(fd, False)
            echo = b"" if self._spec["threads"] else b"[rank%d]: " % number
            speaker = one.speakers[stream] = Speaker(self._screens[stream], label, echo)
            self._by_fd[fd] = one, speaker
            self._poll.register(fd, select.POLLIN)
        self._tells[heard] = one
        self._poll.register(heard, select.POLLIN)

    def _become(
        self, number: int, program: Program, port: int, far: dict[int, int], tell: int
    ) -> NoReturn:
        try:
            if number:
                nothing = os.open(os.devnull, os.O_RDONLY)
                os.dup2(nothing, 0)
            for stream, fd in far.items():
                os.dup2(fd, stream)
            learn = self._learn if number == 0 else -1
            kept = {0, 1, 2, tell, learn}
            for fd in map(int, os.listdir("/proc/self/fd")):
                if fd not in kept:
                    try:
                        os.close(fd)
                    except OSError:  # the one by which the folder was read
                        pass
            base = self._spec.get("env") or dict(os.environ)
            count = int(self._spec["ranks"])
            env = ranks_.environment(base, number, count, port)
            memory = int(self._spec["memory"])
            if self._spec["threads"]:
                from relaunch.inside.node.threads import lead as threads

                threads.be(program, env=env, ranks=count, mode=self._mode, tell=tell)
            ranks_.be(
                program, env=env, rank=number, ranks=count, memory_bytes=memory, mode=self._mode,
                tell=tell, learn=learn, roots=self._spec["roots"],
            )  # fmt: skip
        finally:
            os._exit(125)

    # --- while they run

    def _turn(self) -> None:
        wait = self._patience()
        for fd, _ in self._poll.poll(None if wait is None else max(0.0, wait) * 1000):
            if fd == self._wake:
                _empty(fd)
                self._collect()
            elif fd in self._tells:
                self._hear(fd)
            elif fd in self._by_fd:
                self._read(fd)
        now = time.monotonic()
        for _, speaker in self._by_fd.values():
            if speaker.since and now - speaker.since >= PATIENCE_S:
                speaker.hurry()
        if self._ends_at and now >= self._ends_at:
            self._signal(signal.SIGKILL)
            self._ends_at = now + _ASKED_S

    def _patience(self) -> float | None:
        now = time.monotonic()
        waits = [s.since + PATIENCE_S - now for _, s in self._by_fd.values() if s.since]
        if self._ends_at:
            waits.append(self._ends_at - now)
        return min(waits) if waits else None

    def _read(self, fd: int) -> None:
        one, speaker = self._by_fd[fd]
        data = _read(fd)
        if data is None:
            return
        if not data:
            speaker.end()
            self._forget(fd)
        elif self._is_heard(one):
            speaker.take(data, time.monotonic())

    def _is_heard(self, one: Rank) -> bool:
        """Tell whether a rank still has a say: once one has failed, the others only follow."""
        if self._first is not None:
            return one is self._first
        return not self._told or one.number == 0

    def _forget(self, fd: int) -> None:
        self._poll.unregister(fd)
        self._by_fd.pop(fd, None)
        self._tells.pop(fd, None)
        os.close(fd)

    def _hear(self, fd: int) -> None:
        """A rank says that it fails, or has ended."""
        one = self._tells[fd]
        said = os.read(fd, 16)
        if said:
            self._failed(one)
        else:
            self._forget(fd)

    def _collect(self) -> None:
        """See who ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            one = self._ranks.get(pid)
            if one is not None:
                one.status = status
                if status:
                    self._failed(one)

    def _failed(self, one: Rank) -> None:
        """The first that fails takes all others with it."""
        if self._first is not None or self._told:
            return
        for fd, (other, _) in list(self._by_fd.items()):
            if other is one:
                self._read_all(fd)
        self._first = one
        self._ends_at = time.monotonic() + _ASKED_S
        for other in self._ranks.values():
            if other is not one and other.status is None:
                _send(other.pid, signal.SIGTERM)

    def _read_all(self, fd: int) -> None:
        while fd in self._by_fd and select.select([fd], [], [], 0)[0]:
            self._read(fd)

    def _heed(self, number: int, _frame: object) -> None:
        """Pass on what ends us; a terminal has told the ranks of Ctrl-C itself."""
        if number == signal.SIGCHLD:
            return
        self._told = number
        if number == signal.SIGTERM:
            self._signal(signal.SIGTERM)
        self._ends_at = time.monotonic() + _ASKED_S

    def _signal(self, number: int) -> None:
        for one in self._ranks.values():
            if one.status is None and not (number == signal.SIGKILL and one is self._first):
                _send(one.pid, number)

    def _drain(self) -> None:
        """Show the last words."""
        until = time.monotonic() + _LAST_S
        while self._by_fd and time.monotonic() < until:
            ready = self._poll.poll(50)
            for fd, _ in ready:
                if fd in self._by_fd:
                    self._read(fd)
                elif fd in self._tells:
                    self._forget(fd)
                else:
                    _empty(fd)
            if not ready:
                break
        for _, speaker in self._by_fd.values():
            speaker.end()

    def _tell_who(self, failed: Rank) -> None:
        """Say which rank it was: exit codes do not tell."""
        status = failed.status or 0
        how = f"exit code {os.WEXITSTATUS(status)}"
        if os.WIFSIGNALED(status):
            how = signal.Signals(os.WTERMSIG(status)).name
        others = len(self._ranks) - 1
        text = f"rl: rank {failed.number} failed first: {how}; the other {others} were ended\n"
        write_all(2, text.encode("ascii"))


def end_like(status: int) -> NoReturn:
    """End this process as a rank ended."""
    flush_all()
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def flush_all() -> None:
    """Leave nothing in our own streams that a fork would write again."""
    for stream in (sys.stdout, sys.stderr):
        ranks_.flush(stream)


def write_all(fd: int, data: bytes) -> None:
    """Write all of it; nothing when nobody reads."""
    try:
        while data:
            data = data[os.write(fd, data) :]
    except OSError:
        pass


def _writer(fd: int) -> Callable[[bytes], None]:
    return lambda data: write_all(fd, data)


def _are_one(one: int, two: int) -> bool:
    try:
        return os.path.sameopenfile(one, two)
    except OSError:
        return False


def _free_port() -> int:
    """Find a port for the ranks to meet at."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as link:
        link.bind(("127.0.0.1", 0))
        return int(link.getsockname()[1])


def _read(fd: int) -> bytes | None:
    try:
        return os.read(fd, _BLOCK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def _empty(fd: int) -> None:
    try:
        while os.read(fd, 4096):
            pass
    except BlockingIOError:
        pass


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except OSError:
        pass
