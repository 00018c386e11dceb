"""A Python program that is held before it reads its input, and forked for each attempt.

Nothing here waits: who has several of them waits for all at once, and lets each take what came.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import time

from relaunch.inside.held.serve import VERSION
from relaunch.inside.protocol import HELD
from relaunch.proc.forkable import HEARD, LINK, start_held
from relaunch.record import Record
from relaunch.trial.launch.forks import own_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.proc.workers import Worker
    from relaunch.trial.launch.forks import Noted
else:
    import _socket

LATE, OPEN, START = "late", "open", "start"
"""At the first opening, with what it imports after that; at the opening; at its start."""
_BLOCK = 1 << 16
_HEAD = 5
_PIPE_BYTES = 1 << 20
_SET_PIPE_SIZE = 1031
_TRIES = 5


class Spec(Record):
    """Where a program is to be held."""

    at: str
    inputs: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    noted: Noted | None = None
    """What to import at its start."""
    roots: tuple[str, ...] = ()
    words: int = 0
    """How many of its last words change."""
    stdin: str = ""
    memory_bytes: int = 0
    is_race: bool = False
    """Its threads are scheduled: each fork gets an order for them."""


class End(Record):
    """How one fork ended, and what it wrote, after what the program had written before."""

    status: int
    output: bytes
    seconds: float


class Gone(Exception):
    """It cannot be held, or is gone; says why."""


class Held:
    """One program that is held."""

    def __init__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], spec: Spec, folder: str
    ) -> None:
        """Start it; OSError or LaunchError if it cannot be started. `ready` says when it waits."""
        self._argv, self._cwd, self._env = argv, cwd, env
        self._spec, self._folder = spec, folder
        self._own: list[str] = []
        self._tries = _TRIES
        self._begin()

    def _begin(self) -> None:
        self.is_ready = False
        self.is_busy = False
        self.facts: dict[str, Any] = {}
        self._began = time.monotonic()
        self.took_s = 0.0
        """What it took until it was held."""
        self._before = b""
        self._output: list[bytes] = []
        self._heard = bytearray()
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        near, far = os.pipe()
        stdin = os.open(self._spec.stdin or os.devnull, os.O_RDONLY)
        try:
            fcntl.fcntl(near, _SET_PIPE_SIZE, _PIPE_BYTES)
        except OSError:
            pass
        path = os.path.join(self._folder, "held.spec")
        with open(path, "wb") as file:
            file.write(marshal.dumps(self._told(), VERSION))
        try:
            self._worker: Worker = start_held(
                self._argv,
                cwd=self._cwd,
                env={**self._env, HELD: path},
                link=theirs.fileno(),
                output=far,
                heard=near,
                stdin=stdin,
            )
        finally:
            theirs.close()
            for fd in (far, stdin):
                os.close(fd)
        self._link, self._near = ours, near
        os.set_blocking(near, False)
        ours.setblocking(False)

    def _told(self) -> dict[str, Any]:
        spec = self._spec
        noted = spec.noted
        modules = noted.modules if noted is not None and spec.at != OPEN else ()
        return {
            "parent": os.getpid(),
            "at": spec.at,
            "inputs": [os.path.realpath(one) for one in spec.inputs],
            "folders": [os.path.realpath(one) for one in spec.folders],
            "modules": [
                (name, "own" if name in self._own else kind, file) for name, kind, file in modules
            ],
            "path": own_path(noted.path, self._cwd, spec.roots) if noted is not None else [],
            "roots": list(spec.roots),
            "words": spec.words,
            "stdin": spec.stdin,
            "memory": spec.memory_bytes,
            "race": spec.is_race,
            "link": LINK,
            "heard": HEARD,
        }

    def files(self) -> list[int]:
        """Return what turns readable when there is something to take."""
        return [self._link.fileno(), self._near]

    def go(
        self, words: Sequence[str] | None = None, *, order: Mapping[str, Any] | None = None
    ) -> None:
        """Fork once; with other words where these change, or an order for its threads.

        Gone if there is nobody.
        """
        self._output = []
        self.is_busy = True
        self.began = time.monotonic()
        told = dict(order) if order is not None else list(words) if words is not None else None
        self._say(b"F", marshal.dumps(told, VERSION) if told is not None else b"")

    def kill(self) -> None:
        """End the fork that runs; its end is told as ever."""
        self._say(b"K", b"")

    def _say(self, kind: bytes, data: bytes) -> None:
        try:
            self._link.setblocking(True)
            self._link.sendall(kind + len(data).to_bytes(4, "little") + data)
            self._link.setblocking(False)
        except OSError:
            raise Gone("what was held is gone") from None

    def take(self) -> End | None:
        """Take what came: how the fork ended, if it did. Gone if it cannot be held."""
        is_gone = self._listen()
        self._read_output()
        while len(self._heard) >= _HEAD:
            size = int.from_bytes(self._heard[1:_HEAD], "little")
            if len(self._heard) < _HEAD + size:
                break
            kind, data = chr(self._heard[0]), bytes(self._heard[_HEAD : _HEAD + size])
            del self._heard[: _HEAD + size]
            if kind == "E":
                return self._ended(data)
            self._told_of(kind, data)
            if kind == "U":
                return None  # it began anew: who is gone is the one before
        if is_gone:
            raise Gone("the program does not open it" if not self.is_ready else "it ended")
        return None

    def _told_of(self, kind: str, data: bytes) -> None:
        told = marshal.loads(data)
        if kind == "U" and self._tries:
            self._tries -= 1
            self._own += told
            self.close()
            self._begin()
        elif kind == "R":
            self.facts, self.is_ready = told, True
            self.took_s = time.monotonic() - self._began
            self._before = b"".join(self._output)
            self._output = []
        else:
            raise Gone(told["why"] if isinstance(told, dict) else "its libraries import it")

    def _ended(self, data: bytes) -> End:
        self._read_output()
        self.is_busy = False
        if data[4:]:
            raise Gone(data[4:].decode("utf-8", "replace"))
        output = b"".join([self._before, *self._output])
        seconds = time.monotonic() - self.began
        return End(status=int.from_bytes(data[:4], "little"), output=output, seconds=seconds)

    def _listen(self) -> bool:
        while True:
            try:
                block = self._link.recv(_BLOCK)
            except BlockingIOError:
                return False
            except OSError:
                return True
            if not block:
                return True
            self._heard += block

    def _read_output(self) -> None:
        while True:
            try:
                block = os.read(self._near, _PIPE_BYTES)
            except BlockingIOError:
                return
            if not block:
                return
            self._output.append(block)

    def close(self) -> str:
        """End it, with what it forked; returns the marker of what that may have started."""
        self._link.close()
        os.close(self._near)
        self._worker.kill()
        return self._worker.marker
