"""The life of a snapshot: it tells the host what it is, and forks when it is to go on."""

from __future__ import annotations

import os
import select
import socket

from . import spine, wire
from .aside import higher, put_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from .loaded import Loaded


class Order:
    """What a process gets that is to go on."""

    def __init__(self, message: dict[str, Any], fds: list[int], line: socket.socket) -> None:
        self.sources: dict[str, str] = message["sources"]
        self.env: dict[str, str] = message["env"]
        self.at: list[str] = message["at"]
        self.fds = fds
        self._line = line

    def step_aside(self) -> None:
        """Leave the low numbers of files to the program, whose own are about to come back."""
        self._line = put_aside(self._line)
        self.fds[3:] = [higher(fd) for fd in self.fds[3:]]

    def answer(self, why: str) -> None:
        """Say that it goes on, or why not."""
        self._line.sendall(why.encode("utf-8", "replace") or b"\0")
        self._line.close()


class Waiting:
    """A snapshot, from its first word to the host to the end of the last run from it."""

    def __init__(self, host: socket.socket) -> None:
        self.host = host
        self.links: dict[int, tuple[int, str]] = {}
        self.ready: tuple[int, socket.socket] | None = None
        """A process that has been forked already, and the line to it."""

    def introduce(self, hello: dict[str, Any], loaded: Iterable[Loaded]) -> bool:
        """Tell the host what we are, and the sources that it does not know; False if unwanted."""
        wire.send(self.host, hello)
        answer, _ = wire.receive(self.host)
        if answer and answer.get("need"):
            texts = {one.source.digest: one.source.text for one in loaded}
            wanted = {digest: texts[digest] for digest in answer["need"]}
            wire.send(self.host, {"op": "sources", "sources": wanted})
            answer, _ = wire.receive(self.host)
        return bool(answer and answer.get("ok"))

    def until_resumed(self) -> Order:
        """Wait; returns only in a new process that is to go on."""
        while True:
            talk = self.host.fileno()
            for one in select.select([talk, *self.links], [], [])[0]:
                if one != talk:
                    self._ended(one)
                    order = None if self.ready else self._prepare()
                    if order:
                        return order
                    continue
                try:
                    message, fds = wire.receive(self.host)
                except OSError:
                    message, fds = None, []
                if message is None:
                    os._exit(0)
                order = self._obey(message, fds)
                if order:
                    return order

    def _obey(self, message: dict[str, Any], fds: list[int]) -> Order | None:
        """Do what the host says; returns an order in the process that is to go on."""
        if message["op"] not in ("resume", "ready"):
            return None
        if self.ready is None:
            order = self._prepare(fds)
            if order:
                return order
        if message["op"] == "ready":
            return None
        self._resume(message, fds)
        return None

    def _prepare(self, foreign: Sequence[int] = ()) -> Order | None:
        """Fork the next process ahead of time: large ones take long. It returns with its order.

        `foreign` descriptors are open here for another one.
        """
        near, far = socket.socketpair()
        try:
            pid = spine.fork()
        except OSError:  # there are no more processes; later there may be
            near.close()
            far.close()
            return None
        if pid:
            far.close()
            self.ready = (pid, near)
            return None
        near.close()
        self.host.close()
        for link in (*self.links, *foreign):
            os.close(link)
        message, fds = wire.receive(far)
        if message is None:
            os._exit(0)
        return Order(message, fds, far)

    def _resume(self, message: dict[str, Any], fds: list[int]) -> None:
        """Hand an order to the process that waits for it, and tell what became of that."""
        if self.ready is None:
            wire.send(self.host, {"failed": "no more processes", "run": message["run"]})
            for fd in fds:
                os.close(fd)
            return
        pid, line = self.ready
        self.ready = None
        why = b""
        try:
            wire.send(line, message, fds)
            why = line.recv(4096)
        except OSError:
            pass
        line.close()
        for fd in fds:
            os.close(fd)
        if why != b"\0":
            os.waitpid(pid, 0)
            words = why.decode("utf-8", "replace") or "it died while it was resumed"
            wire.send(self.host, {"failed": words, "run": message["run"]})
            return
        self.links[os.pidfd_open(pid)] = (pid, message["run"])
        wire.send(self.host, {"started": pid, "run": message["run"]})

    def _ended(self, link: int) -> None:
        pid, run = self.links.pop(link)
        os.close(link)
        _, status = os.waitpid(pid, 0)
        wire.send(self.host, {"ended": status, "run": run})


def step_aside() -> None:
    """Leave the terminal and the streams of the run that goes on."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    if nothing > 2:
        os.close(nothing)
    be_known_as("rl-snapshot", "900")


def be_known_as(name: str, killable: str) -> None:
    """Say who we are to those who list processes, and to who ends some when memory is short."""
    _tell("comm", name)
    _tell("oom_score_adj", killable)


def _tell(name: str, text: str) -> None:
    try:
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        pass
