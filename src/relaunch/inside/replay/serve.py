"""A process that has imported what a program needs, and forks for each replay of its calls.

Only libraries are imported, nothing of the user's: each replay loads that as it is then. It ends
when nobody needed it for ten minutes, when a library changes, or with `rl warm stop`.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import socket
import sys
import time

from relaunch.inside.replay import once
from relaunch.inside.warm import begin, machine, where
from relaunch.inside.warm.switchboard import Switchboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.inside.warm.peers import Peer

_IDLE_S = 600.0
_LOOK_ROUND_S = 5.0
_SHOWN = 5


def serve(spec: dict[str, Any]) -> int:
    """Import, then answer until nobody needs it; the listener is descriptor 3."""
    begin.call_ourselves("rl-host")
    listener = socket.socket(fileno=3)
    host = Host(spec, listener)
    try:
        host.serve()
    except BaseException as error:
        where.leave_word(spec, error)
        return 1
    return 0


class Host:
    """Has the imports, and the replays that run."""

    def __init__(self, spec: dict[str, Any], listener: socket.socket) -> None:
        """Import from `path`, what the replays need."""
        self.spec = spec
        sys.path[:] = spec["path"]
        self._asked: set[str] = set()
        self._socket = machine.identity(self._path)
        self._stamps = {file: _stamp(file) for file in _own_files()}
        """The files of what is imported, ours too, as they were then."""
        self._busy_at = time.monotonic()
        self._is_ending = False
        self._runs: dict[Peer, tuple[int, int]] = {}
        """Who waits for a replay: its process and the descriptor of that."""
        self._listener = listener
        self._board = Switchboard(
            listener, self._heed, self._gone, lambda error: where.leave_word(spec, error)
        )

    @property
    def _path(self) -> str:
        return where.socket_path(self.spec["run"], self.spec["key"])

    # --- imports

    def _import(self, names: list[str], roots: list[str]) -> None:
        """Import libraries that no replay needed before, as far as they can be."""
        new = [name for name in names if name not in self._asked]
        if not new:
            return
        self._asked.update(new)
        for name in new:
            try:
                importlib.import_module(name)
            except (Exception, SystemExit):
                continue
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str):
                continue
            if _is_own(file, roots):
                del sys.modules[name]  # a library loaded something of the user's
            else:
                self._stamps[file] = _stamp(file)
        gc.collect()
        gc.freeze()

    def _stale(self) -> str:
        """Name a library that changed since it was imported; empty if none did."""
        return next((file for file, was in self._stamps.items() if _stamp(file) != was), "")

    # --- the loop

    def serve(self) -> None:
        """Answer until the end."""
        while self._runs or not self._is_ending:
            self._board.turn(_LOOK_ROUND_S)
            now = time.monotonic()
            if self._runs:
                self._busy_at = now
            is_home = machine.identity(self._path) == self._socket
            if now - self._busy_at > _IDLE_S or not is_home:
                self._end()
        self._board.flush()

    def _end(self) -> None:
        if self._is_ending:
            return
        self._is_ending = True
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
        elif op == "signal" and peer in self._runs:
            machine.send(self._runs[peer][1], signal.Signals(int(message["number"])))
        elif op == "replay":
            self._busy_at = time.monotonic()
            self._replay(peer, message, fds)

    def _replay(self, peer: Peer, message: dict[str, Any], fds: list[int]) -> None:
        stale = self._stale()
        if stale or len(fds) != 3 or self._is_ending:
            self._end()
            self._board.say(peer, {"refused": stale or "it is ending"})
            return
        self._import(message["libraries"], message["roots"])
        cuda = sys.modules.get("torch.cuda")
        if cuda is not None and cuda.is_initialized():
            self._board.say(peer, {"refused": "a library uses the GPU when it is imported"})
            return
        pid = os.fork()
        if not pid:
            _be_replay(message, fds)
        pidfd = os.pidfd_open(pid)
        self._runs[peer] = pid, pidfd
        self._board.watch(pidfd, lambda: self._over(peer))

    def _over(self, peer: Peer) -> None:
        """A replay ended: its children end with it."""
        pid, pidfd = self._runs.pop(peer)
        self._board.unwatch(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(pid, 0)
        _kill_group(pid)
        self._busy_at = time.monotonic()
        self._board.say(peer, {"ended": status})

    def _gone(self, peer: Peer) -> None:
        """Nobody waits for a replay any more."""
        if peer in self._runs:
            _kill_group(self._runs[peer][0])

    def _status(self) -> dict[str, Any]:
        return {
            "kind": "imports",
            "program": ["rl", "replay"],
            "cwd": "",
            "pid": os.getpid(),
            "snapshots": [],
            "modules": len(sys.modules),
            "packages": _largest(),
            "bytes": machine.memory_of(os.getpid())[0],
            "ends_after_s": _IDLE_S,
            "idle_s": time.monotonic() - self._busy_at,
            "running": len(self._runs),
        }


def _own_files() -> list[str]:
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    rooms = [os.path.join(here, name) for name in ("capture", "replay")]
    found = [os.path.join(room, name) for room in rooms for name in os.listdir(room)]
    return [path for path in found if path.endswith(".py")]


def _is_own(file: str, roots: list[str]) -> bool:
    inner = [file[len(root) :] for root in roots if file.startswith(f"{root}/")]
    return bool(inner) and not any("-packages/" in one for one in inner)


def _largest() -> list[str]:
    """Name the packages with most modules."""
    counts: dict[str, int] = {}
    for name in sys.modules:
        top = name.partition(".")[0]
        if top not in sys.stdlib_module_names:
            counts[top] = counts.get(top, 0) + 1
    return sorted(counts, key=lambda name: -counts[name])[:_SHOWN]


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:
        pass


def _stamp(file: str) -> tuple[int, int]:
    try:
        found = os.stat(file)
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size


def _be_replay(message: dict[str, Any], fds: list[int]) -> None:
    """Be the process of one replay; never returns."""
    code = once.UNREADY
    try:
        os.setpgid(0, 0)
        for number, fd in enumerate(fds):
            os.dup2(fd, number)
        for fd in map(int, os.listdir("/proc/self/fd")):
            if fd > 2:
                try:
                    os.close(fd)
                except OSError:  # the one by which the folder was read
                    pass
        os.environ.clear()
        os.environ.update(message["env"])
        os.umask(int(message["umask"]))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _open_streams()
        code = once.replay(message["spec"])
    finally:
        once.flush()
        os._exit(code)


def _open_streams() -> None:
    """Give Python streams on the new descriptors: it chose their buffering by the old ones."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        line_by_line = number == 2 or os.isatty(number)
        stream = open(  # noqa: SIM115  # for as long as the process lives
            number,
            "w" if number else "r",
            1 if line_by_line else -1,
            encoding="utf-8",
            errors="backslashreplace" if number == 2 else "strict",
            closefd=False,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
