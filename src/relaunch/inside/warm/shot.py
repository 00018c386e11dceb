"""Takes snapshots: forked processes that wait between two statements until somebody needs them."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time

from . import begin, children, clocks, held, morph, refusals, sites, spine, where, wire, world
from .aside import higher, put_aside
from .states import identity_of
from .waiting import Waiting, be_known_as, step_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Sequence
    from types import FrameType
    from typing import Any

    from .waiting import Order

FOR_RUNNER = "RELAUNCH_WARM"
"""Comes with the environment of a resumed process, for us alone: what is new in its spec."""
_SETTLE = 1.0
"""Seconds that a program waits at its end for the last snapshots to be known."""
_MOST_WRITTEN = 1000
"""So many of the files that a program wrote are told."""
_DEPTH = 40
"""Levels of calls that we need."""
_PATIENCE = 0.1
"""Seconds until we try again where a snapshot was refused."""


class Camera:
    """Takes the snapshots of one process."""

    def __init__(self, spec: dict[str, Any]) -> None:
        """Make sure that there is a host."""
        self.spec = spec
        self.control = higher(spec["control"]) if spec["control"] >= 0 else -1
        self.ledger = world.Ledger()
        self.children: set[int] = set()
        self.refused = refusals.Counted(self._say)
        self.pid = os.getpid()
        self.name, self.killable = _said("comm"), _said("oom_score_adj")
        self.known = _pipe()
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
        self.ledger.bytecode_is_read = lambda: self._close(program)
        self.ledger.first_use = lambda frame: self._edge(program.place_of(frame))

    def _close(self, program: spine.Program) -> None:
        """Take no more snapshots, and leave no trace in the program's functions."""
        if not program.is_closed:
            program.close_all()
            self.refused.note(program.never, program.place_of(sys._getframe()))

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
        link = put_aside(wire.connect(self.spec["run"], self.spec["key"]))
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
            if held.is_due(program.mask or mask):
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
            waiting = self._become_snapshot(program, number, elapsed, mark)
            order = waiting.until_resumed()
        except BaseException:  # as when the host is gone: the program itself runs elsewhere
            os._exit(0)
        self._resume(program, order, state, elapsed, frame)
        held.release(mask)
        return True

    def _become_snapshot(
        self, program: spine.Program, number: int, elapsed: float, mark: int
    ) -> Waiting:
        """Leave the run, and have the host know us; nobody waits who is not wanted."""
        self.link.close()
        if self.control >= 0:
            os.close(self.control)
        step_aside()
        waiting = Waiting(wire.connect(self.spec["run"], self.spec["key"]))
        hello = self._hello(program, number, elapsed, mark)
        is_wanted = waiting.introduce(hello, program.files.values())
        os.write(self.known[1], b".")
        if not is_wanted:
            os._exit(0)
        return waiting

    def _hello(
        self, program: spine.Program, number: int, elapsed: float, mark: int
    ) -> dict[str, Any]:
        """Say what a snapshot is, for the host."""
        loaded = program.version(number)
        line = loaded.line(number)
        files = {
            file: [one.first, one.source.digest]
            for file, one in program.files.items()
            if not one.stale
        }
        return {
            "op": "hello",
            "pid": os.getpid(),
            "of": self.pid,
            "at": f"{loaded.source.file}:{line}",
            "site": number,
            "elapsed": elapsed,
            "tape": self.spec.get("tape", ""),
            "mark": mark,
            "seen": bytes(program.seen).hex(),
            "files": files,
            "ledger": self.ledger.manifest(),
            "dissects": program.dissects,
            # An exception on its way carries the lines of functions that are left already.
            "lines_seen": self.ledger.lines_seen or program.caught or sys.exc_info()[1] is not None,
        }

    def _note(self, program: spine.Program, number: int, why: str, seconds: float) -> None:
        """Count a snapshot, or why there is none."""
        if not why:
            self.taken += 1
            program.paid(seconds)
            return
        if os.getpid() == self.pid:
            loaded = program.version(number)
            self.refused.note(why, f"{loaded.source.file}:{loaded.line(number)}")
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
        _go_down(_DEPTH)
        if program.never:
            return program.never
        if not self._has_its_lines():
            return "the program closed files that are not its own"
        if not morph.is_called_by(sys._getframe(), frame):
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
        order: Order,
        state: world.World,
        elapsed: float,
        frame: FrameType,
    ) -> None:
        """Put the world back in a process that goes on; what prevents it is said and ends it."""
        try:
            os.setsid()
            be_known_as(self.name, self.killable)
            self.spec.update(json.loads(order.env.pop(FOR_RUNNER, "{}")))
            program.flags.set(0, len(program.seen))
            order.step_aside()
            state.prepare(order.fds[:3])
            program.edit(order.sources, spine.frames(frame))  # before any file is touched
            state.restore(order.env)
            vars(sys)["_relaunch_reports"] = order.env.get("RELAUNCH_HOOK", "")
            self.control = order.fds[3] if len(order.fds) > 3 else -1
            self.children = set()
            self.taken = 0
            self.refused = refusals.Counted(self._say)
            for fd in self.known:
                os.close(fd)
            self.known = _pipe()
            self.pid = os.getpid()
            program.began = time.perf_counter() - elapsed
            program.spent = 0.0
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


def _go_down(levels: int) -> None:
    """RecursionError if the program is so deep that what we do after a fork would fail."""
    if levels:
        _go_down(levels - 1)


def _pipe() -> tuple[int, int]:
    near, far = os.pipe()
    return higher(near), higher(far)


def _wait_for(ready: Sequence[int], is_needed: bool) -> None:
    """Wait until a snapshot holds no file of the program any more: it closes this pipe then."""
    os.close(ready[1])
    if is_needed:
        select.select([ready[0]], [], [], _SETTLE)
    os.close(ready[0])


def _said(name: str) -> str:
    with open(f"/proc/self/{name}", encoding="utf-8", errors="replace") as file:
        return file.read().strip()
