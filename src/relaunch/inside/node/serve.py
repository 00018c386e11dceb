"""A process that has torch imported, and forks the ranks of each run that is asked for.

What a run imports besides, a copy of it imports as well, and takes its place. It ends when nobody
needed it for a while, when a file changed that it has loaded, or with `rl warm stop`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time

from relaunch.inside.forks import ready
from relaunch.inside.node import lead, rank
from relaunch.inside.node.libraries import EACH, LATER, Libraries
from relaunch.inside.warm import begin, machine, where
from relaunch.inside.warm.switchboard import Switchboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from relaunch.inside.warm.peers import Peer

KIND = "ranks"
_IDLE_S = 1800.0
_LOOK_ROUND_S = 5.0
_FILES = 4
_MOST_BYTES = 1 << 20
_GO = b"go"
_READY = b"."


def serve(spec: dict[str, Any]) -> int:
    """Import, then answer until nobody needs it; the listener is descriptor 3."""
    begin.call_ourselves("rl-host")
    listener = socket.socket(fileno=3)
    try:
        Host(spec, listener).serve()
    except BaseException as error:
        where.leave_word(spec, error)
        return 1
    return 0


class Host:
    """Has torch, and the runs that were forked from it."""

    def __init__(
        self, spec: dict[str, Any], listener: socket.socket, libraries: Libraries | None = None
    ) -> None:
        """Import, where another has not; who connects meanwhile waits."""
        self.spec = spec
        self._listener = listener
        self._socket = machine.identity(self._path)
        self._idle_s = float(spec.get("idle_s") or _IDLE_S)
        self._busy_at = time.monotonic()
        self._is_ending = False
        self._runs: dict[Peer, tuple[int, int, int]] = {}
        """Who waits for a run: the process that leads it, its descriptor, what it has learnt."""
        self._successor = 0
        """The copy of us that imports what a run needed besides."""
        self._tried: set[str] = set()
        self._libraries = libraries or Libraries()
        if libraries is None:
            self._libraries.load()
        self._native = ready.native_threads()
        self._board = Switchboard(
            listener, self._heed, self._gone, lambda error: where.leave_word(spec, error)
        )

    @property
    def _path(self) -> str:
        return where.socket_path(self.spec["run"], self.spec["key"])

    def serve(self) -> None:
        """Answer until the end."""
        while self._runs or not self._is_ending:
            self._board.turn(_LOOK_ROUND_S)
            now = time.monotonic()
            if self._runs:
                self._busy_at = now
            is_home = machine.identity(self._path) == self._socket
            if now - self._busy_at > self._idle_s or not is_home:
                self._end()
        self._board.flush()

    def _end(self) -> None:
        if self._is_ending:
            return
        self._is_ending = True
        if self._successor:
            _kill(self._successor)
        if machine.identity(self._path) == self._socket:
            os.unlink(self._path)
        self._board.close()

    def _heed(self, peer: Peer, message: dict[str, Any], fds: list[int]) -> None:
        op = message.get("op")
        if op == "status":
            self._board.say(peer, self._status())
        elif op == "stop":
            self._end()
            self._board.say(peer, {"stopped": 0})
        elif op == "ask":
            self._busy_at = time.monotonic()
            self._board.say(peer, self._answer(message))
        elif op == "resume":
            self._busy_at = time.monotonic()
            self._run(peer, json.loads(message["id"]), fds)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Say whether ranks can be forked here now."""
        stale = self._libraries.stale()
        if not message.get("threads"):  # one process can import it by itself, not all ranks
            self._libraries.complete()
        self._idle_s = float(message.get("idle_s") or 0.0) or self._idle_s
        if stale or self._is_ending or self._libraries.why or self._native:
            self._end()  # the next one begins anew
        return {
            "why": self._libraries.why or self._native,
            "stale": stale or ("it is ending" if self._is_ending else ""),
            "took_s": self._libraries.took_s,
            "torch": getattr(sys.modules.get("torch"), "__version__", ""),
        }

    def _run(self, peer: Peer, spec: dict[str, Any], fds: list[int]) -> None:
        if len(fds) != _FILES or self._is_ending or self._libraries.why:
            self._board.say(peer, {"failed": self._libraries.why or "it is ending"})
            return
        near, far = os.pipe()
        learnt = os.memfd_create("learnt")
        pid = os.fork()
        if not pid:
            os.close(near)
            _be_leader(spec, fds, far, learnt, self._libraries.mode)
        os.close(far)
        is_ready = os.read(near, 1) == _READY
        os.close(near)
        pidfd = os.pidfd_open(pid)
        self._runs[peer] = pid, pidfd, learnt
        self._board.watch(pidfd, lambda: self._over(peer))
        self._board.say(peer, {"pid": pid} if is_ready else {"failed": "it could not begin"})

    def _over(self, peer: Peer) -> None:
        """A run ended: whoever is left of it ends too."""
        pid, pidfd, learnt = self._runs.pop(peer)
        self._board.unwatch(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        _kill_group(pid)
        self._busy_at = time.monotonic()
        self._board.say(peer, {"ended": status})
        names = os.pread(learnt, _MOST_BYTES, 0).decode("utf-8", "replace").split("\n")
        os.close(learnt)
        known = {*self._tried, *sys.modules, ""}
        self._learn([name for name in (*EACH, *LATER, *names) if name not in known])

    # --- what runs needed besides

    def _learn(self, names: list[str]) -> None:
        """Let a copy of us import it; if ranks can be forked from that one, it takes our place."""
        if not names or self._successor or self._is_ending:
            return
        self._tried.update(names)
        near, far = os.pipe()
        pid = os.fork()
        if not pid:
            self._succeed(names, far)
        os.close(far)
        self._successor = pid
        self._board.watch(near, lambda: self._hand_over(near))

    def _succeed(self, names: list[str], far: int) -> NoReturn:
        """Be the copy. Never returns."""
        try:
            _close_all_but(self._listener.fileno(), far)
            own = (0, 1, 2, self._listener.fileno(), far)
            self._libraries.also_aside(names)
            is_home = machine.identity(self._path) == self._socket
            if ready.unforkable(own) or self._libraries.stale() or not is_home:
                os._exit(1)
            host = Host(self.spec, self._listener, self._libraries)
            host._tried = self._tried
            host._idle_s = self._idle_s
            os.write(far, _READY)
            os.close(far)
            host.serve()
            os._exit(0)
        finally:
            os._exit(1)

    def _hand_over(self, near: int) -> None:
        """The copy is ready, or of no use."""
        is_ready = os.read(near, 1) == _READY
        self._board.unwatch(near)
        os.close(near)
        if is_ready and not self._is_ending:
            self._is_ending = True  # the socket is the copy's from now on
            self._board.close()
        else:
            _kill(self._successor)
        self._successor = 0

    def _gone(self, peer: Peer) -> None:
        """Nobody waits for a run any more."""
        if peer in self._runs:
            _kill_group(self._runs[peer][0])

    def _status(self) -> dict[str, Any]:
        return {
            "kind": KIND,
            "program": ["rl", "run", "--ranks"],
            "cwd": "",
            "pid": os.getpid(),
            "snapshots": [],
            "modules": len(sys.modules),
            "packages": [f"torch {getattr(sys.modules.get('torch'), '__version__', '')}"],
            "bytes": machine.memory_of(os.getpid())[0],
            "ends_after_s": self._idle_s,
            "idle_s": time.monotonic() - self._busy_at,
            "running": len(self._runs),
        }


def _be_leader(spec: dict[str, Any], fds: list[int], far: int, learnt: int, mode: Any) -> NoReturn:
    """Be the process that leads one run; it begins when who asked says so."""
    try:
        os.setsid()
        rank.die_with_parent()
        begin.call_ourselves("rl-ranks")
        for number in range(3):
            os.dup2(fds[number], number)
        _close_all_but(fds[3], far, learnt)
        os.umask(int(spec["umask"]))
        os.write(far, _READY)
        os.close(far)
        if os.read(fds[3], 8) != _GO:
            os._exit(0)  # who would have shown our output is gone
        os.close(fds[3])
        lead.end_like(lead.Leader(spec, mode, learnt).run())
    except BaseException as error:
        lead.write_all(2, f"rl: the ranks cannot be led: {error!r}\n".encode())
    finally:
        os._exit(125)


def _close_all_but(*kept: int) -> None:
    """Let go of what is another's."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:  # the one by which the folder was read
                pass


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except OSError:
        pass


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass
