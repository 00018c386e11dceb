"""Takes snapshots: forked processes that wait between two statements until somebody needs them."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import socket
import sys
import time

from . import begin, children, clocks, held, morph, refusals, sites, spine, where, wire, world
from .states import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

FOR_RUNNER = "RELAUNCH_WARM"
"""Comes with the environment of a resumed process, for us alone: what is new in its spec."""
_SETTLE = 1.0
"""Seconds that a program waits at its end for the last snapshots to be known."""
_HIGH = 500
"""Numbers of files that are ours begin here while those of the program come back."""
_MOST_WRITTEN = 1000
"""So many of the files that a program wrote are told."""
_PATIENCE = 0.1
"""Seconds until we try again where a snapshot was refused."""


class Camera:
    """Takes the snapshots of one process."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Make sure that there is a host."""
        self.spec = spec
        self.control = spec["control"]
        self.ledger = world.Ledger()
        self.children: set[int] = set()
        self.refused = refusals.Counted(self._say)
        self.pid = os.getpid()
        self.name, self.killable = _said("comm"), _said("oom_score_adj")
        if self.control >= 0:
            os.set_inheritable(self.control, False)
        self.known = os.pipe()
        """Where each snapshot says that the host knows it."""
        self.taken = 0
        begin.ensure(spec)
        self.link = self._running(0.0, -1)

    def attach(self, program: spine.Program) -> None:
        """Take snapshots of this program from now on."""
        self.ledger.install([sys.prefix, sys.base_prefix, self.spec["run"]])
        self.ledger.sources = program.files
        program.shoot = self.shoot
        program.settle = self.settle
        self.link.close()
        self.link = self._running(program.elapsed, program.flags.fd)
        os.register_at_fork(after_in_child=lambda: self._forked(program))
        children.watch(lambda: self._part(program))
        self.ledger.bytecode_is_read = program.close_all
        self.ledger.first_use = lambda frame: self._edge(program.place_of(frame))

    def _edge(self, place: str) -> None:
        """Say which statement makes the program impossible to fork: the next run stops before."""
        if place and os.getpid() == self.pid:
            self._say({"op": "edge", "at": place})

    def _say(self, message: dict[str, Any]) -> None:
        """Send a message to the host; nobody there, or the program closed our line: no matter."""
        try:
            if self._has_its_lines():
                wire.send(self.link, message)
        except OSError:
            pass

    def _forked(self, program: spine.Program) -> None:
        """In a child that the program made itself, nobody stops but to go on in edited code."""
        program.part()
        if self.ledger.forked.is_child:
            program.tell(self.ledger.forked.told, self._tell)

    def _tell(self, program: spine.Program, *_: object) -> bool:
        self.ledger.tell_modules()
        if program.caught:
            program.told[sites.CAUGHT] = 1
        return False

    def _hear(self, program: spine.Program) -> None:
        forked = self.ledger.forked
        if forked.told:
            program.hear(bytes(forked.told[: len(program.seen)]), bool(forked.told[sites.CAUGHT]))

    def _running(self, elapsed: float, flags: int) -> socket.socket:
        link = wire.connect(self.spec["run"], self.spec["key"])
        if flags >= 0:
            wire.send(link, {"op": "running", "pid": os.getpid(), "elapsed": elapsed}, [flags])
        for fd in (link.fileno(), flags, self.control, *self.known):
            if fd >= 0:
                found = os.fstat(fd)
                self.ledger.own_fds[fd] = (found.st_dev, found.st_ino)
        return link

    def shoot(self, program: spine.Program, number: int, frame: FrameType) -> bool:
        """Leave a snapshot behind, if one can be taken here; True in a process resumed from it."""
        began = time.perf_counter()
        pid = -1
        ready: tuple[int, ...] = ()
        mask = held.hold()
        try:
            self._bury()
            why = self._why_not(program, frame)
            if signal.sigpending() & mask:
                why = why or "a signal is held back by the program"
            if not why:
                self._hear(program)
                world.before_fork()
                mark = self._mark()
                state = world.World(self.ledger)
                elapsed = program.elapsed
                clocks.hold()
                self.name = _said("comm")
                ready = os.pipe()
                pid = self._fork(program.apart)
        except Exception as error:  # as when memory is exhausted: the program must not fail of us
            if held.is_theirs(error):
                held.release(mask)
                raise
            why = f"{type(error).__name__}: {error}"
            for fd in ready:
                os.close(fd)
        if pid:
            if not why:
                _wait_for(ready, state.holds())
            try:
                self._note(program, number, why, time.perf_counter() - began)
            finally:
                held.release(mask)
            return False
        try:
            state.let_go()
            for fd in ready:
                os.close(fd)
            waiting = _Waiting(self, program, number, frame, elapsed, mark)
            order = waiting.until_resumed()
        except BaseException:  # as when the host is gone: the program itself runs elsewhere
            os._exit(0)
        self._resume(program, order, state, elapsed, frame)
        held.release(mask)
        return True

    def _note(self, program: spine.Program, number: int, why: str, seconds: float) -> None:
        """Count a snapshot, or why there is none."""
        if not why:
            self.taken += 1
            program.paid(seconds)
            return
        if os.getpid() == self.pid:
            loaded = program.version(number)
            self.refused.note(why, f"{loaded.source.file}:{loaded.place(number)[2]}")
        program.wait(_PATIENCE)

    def _fork(self, apart: bool) -> int:
        """Fork, twice if the snapshot must not be a child of the program; 0 in the snapshot."""
        pid = spine.fork()
        if not apart:
            self.children.update({pid} - {0})
            return pid
        if pid == 0:
            try:
                if spine.fork() == 0:
                    return 0
            except BaseException:
                os._exit(1)
            os._exit(0)
        status = os.waitpid(pid, 0)[1]
        signal.sigtimedwait([signal.SIGCHLD], 0)  # nothing for the program's own handler
        if status:
            raise OSError("no more processes")
        return pid

    def _part(self, program: spine.Program) -> None:
        """End the snapshots that the program would meet; later ones are not its children."""
        if os.getpid() != self.pid:
            return
        program.apart = True
        children.end(self.children)
        while self._has_its_lines() and select.select([self.known[0]], [], [], 0)[0]:
            os.read(self.known[0], 64)
        self.taken = 0

    def settle(self) -> None:
        """Wait a moment for snapshots that the host does not know yet: the next run needs them."""
        if os.getpid() == self.pid:
            self.refused.rest()
            self._tell_written()
        until = time.monotonic() + _SETTLE
        while self.taken and os.getpid() == self.pid and self._has_its_lines():
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.known[0]], [], [], left)[0]:
                return
            self.taken -= len(os.read(self.known[0], self.taken))

    def _tell_written(self) -> None:
        """Say which files the program wrote, for who compares them with those of a cold run."""
        paths = [*self.ledger.written]
        if not paths:
            return
        try:
            with open(where.written_path(self.spec["tape"]), "x", encoding="utf-8") as file:
                json.dump(paths[:_MOST_WRITTEN], file)
        except (OSError, ValueError):
            pass

    def _bury(self) -> None:
        """Let snapshots that ended go: the program would meet them when it waits for children."""
        for pid in [*self.children]:
            try:
                if os.waitpid(pid, os.WNOHANG)[0]:
                    self.children.discard(pid)
            except ChildProcessError:
                self.children.discard(pid)

    def _why_not(self, program: spine.Program, frame: FrameType) -> str:
        if os.getpid() != self.pid:
            return "a forked child"
        if program.never:
            return program.never
        if not self._has_its_lines():
            return "the program closed files that are not its own"
        caller: FrameType | None = sys._getframe()
        while caller is not None and caller.f_back is not frame:
            caller = caller.f_back
        if caller is None or not morph.is_called_by(caller, frame):
            return "another tool runs the interpreter"
        return world.refuse(self.children, program.apart)

    def _has_its_lines(self) -> bool:
        """Tell whether our descriptors are still ours: programs close all, or take any number."""
        lines = (self.link.fileno(), self.control, *self.known)
        return all(fd < 0 or identity_of(fd) == self.ledger.own_fds.get(fd) for fd in lines)

    def _mark(self) -> int:
        """Ask for the length of the recorded output; OSError or ValueError if nobody records it."""
        if self.control < 0:
            return 0
        os.write(self.control, b"mark")
        return int(os.read(self.control, 32))

    def _resume(
        self,
        program: spine.Program,
        order: _Order,
        state: world.World,
        elapsed: float,
        frame: FrameType,
    ) -> None:
        """Put the world back in a process that goes on; what prevents it is said and ends it."""
        try:
            os.setsid()
            _call_ourselves(self.name)
            _tell("oom_score_adj", self.killable)
            self.spec.update(json.loads(order.env.pop(FOR_RUNNER, "{}")))
            program.flags.set(0, len(program.seen))
            order.step_aside()
            state.restore(order.fds[:3], order.env)
            vars(sys)["_relaunch_reports"] = order.env.get("RELAUNCH_HOOK", "")
            self.control = order.fds[3] if len(order.fds) > 3 else -1
            if self.control >= 0:
                os.set_inheritable(self.control, False)
            self.children = set()
            self.taken = 0
            self.refused = refusals.Counted(self._say)
            for fd in self.known:
                os.close(fd)
            self.known = os.pipe()
            self.pid = os.getpid()
            program.began = time.perf_counter() - elapsed
            program.spent = 0.0
            program.edit(order.sources, spine.frames(frame))
            program.want([*self.spec.get("at", ()), *order.at])
            program.due_at = time.perf_counter() + program.often
            self.link = self._running(elapsed, program.flags.fd)
            clocks.go_on()
        except Exception as error:  # whatever it is, another way must be taken
            order.answer(f"{type(error).__name__}: {error}")
            os._exit(0)
        order.answer("")
        if self.control >= 0 and os.read(self.control, 8) != b"go":
            os._exit(0)  # who would have shown our output is gone


def _higher(fd: int) -> int:
    """Give a file a number that programs do not come to."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    new = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH if most > 2 * _HIGH else most // 2)
    os.close(fd)
    return new


class _Order:
    """What a process gets that is to go on."""

    def __init__(self, message: dict[str, Any], fds: list[int], line: socket.socket) -> None:
        self.sources: dict[str, str] = message["sources"]
        self.env: dict[str, str] = message["env"]
        self.at: list[str] = message["at"]
        self.fds = fds
        self._line = line

    def step_aside(self) -> None:
        """Leave the low numbers of files to the program, whose own are about to come back."""
        self._line = socket.socket(fileno=_higher(self._line.detach()))
        self.fds[3:] = [_higher(fd) for fd in self.fds[3:]]

    def answer(self, why: str) -> None:
        """Say that it goes on, or why not."""
        self._line.sendall(why.encode("utf-8", "replace") or b"\0")
        self._line.close()


class _Waiting:
    """The life of a snapshot: it tells the host what it is, and forks when it is told to."""

    def __init__(
        self,
        camera: Camera,
        program: spine.Program,
        number: int,
        frame: FrameType,
        elapsed: float,
        mark: int,
    ) -> None:
        self.camera = camera
        self.program = program
        self.links: dict[int, tuple[int, str]] = {}
        self.ready: tuple[int, socket.socket] | None = None
        """A process that has been forked already, and the line to it."""
        camera.link.close()
        if camera.control >= 0:
            os.close(camera.control)
        _step_aside()
        self.host = wire.connect(camera.spec["run"], camera.spec["key"])
        self._introduce(number, frame, elapsed, mark)

    def _introduce(self, number: int, frame: FrameType, elapsed: float, mark: int) -> None:
        program = self.program
        loaded = program.version(number)
        line = loaded.place(number)[2]
        files = {
            file: [one.first, one.source.digest]
            for file, one in program.files.items()
            if not one.stale
        }
        message = {
            "op": "hello",
            "pid": os.getpid(),
            "of": self.camera.pid,
            "at": f"{loaded.source.file}:{line}",
            "site": number,
            "elapsed": elapsed,
            "tape": self.camera.spec.get("tape", ""),
            "mark": mark,
            "seen": bytes(program.seen).hex(),
            "files": files,
            "ledger": self.camera.ledger.manifest(),
            "dissects": program.dissects,
            # An exception on its way carries the lines of functions that are left already.
            "lines_seen": self.camera.ledger.lines_seen
            or program.caught
            or sys.exc_info()[1] is not None,
        }
        wire.send(self.host, message)
        answer, _ = wire.receive(self.host)
        if answer and answer.get("need"):
            texts = {one.source.digest: one.source.text for one in program.files.values()}
            wanted = {digest: texts[digest] for digest in answer["need"]}
            wire.send(self.host, {"op": "sources", "sources": wanted})
            answer, _ = wire.receive(self.host)
        os.write(self.camera.known[1], b".")
        if not answer or not answer.get("ok"):
            os._exit(0)

    def until_resumed(self) -> _Order:
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

    def _obey(self, message: dict[str, Any], fds: list[int]) -> _Order | None:
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

    def _prepare(self, foreign: Sequence[int] = ()) -> _Order | None:
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
        return _Order(message, fds, far)

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


def _step_aside() -> None:
    """Leave the terminal and the streams of the run that goes on."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    if nothing > 2:
        os.close(nothing)
    _call_ourselves("rl-snapshot")
    _tell("oom_score_adj", "900")


def _call_ourselves(name: str) -> None:
    """Say who we are to those who list processes."""
    _tell("comm", name)


def _wait_for(ready: Sequence[int], is_needed: bool) -> None:
    """Wait until a snapshot holds no file of the program any more: it closes this pipe then."""
    os.close(ready[1])
    if is_needed:
        select.select([ready[0]], [], [], _SETTLE)
    os.close(ready[0])


def _said(name: str) -> str:
    with open(f"/proc/self/{name}", encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def _tell(name: str, text: str) -> None:
    try:
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        pass
