"""The process that keeps the snapshots of one program: it knows them, and chooses between them.

One thread, one loop, nothing in it waits for a peer. Everything that it keeps ends with it: a
snapshot whose connection ends is gone. It was forked before any code of the user was imported, so
it is small.
"""

from __future__ import annotations

import os
import signal
import time

from . import choice, importable, machine, reason, refusals, scales, stencils, tapes, texts, where
from .peers import Peer, Running
from .places import Places, file_and_line
from .runs import Runs
from .switchboard import Switchboard

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from typing import Any

_IDLE_S = 2 * 3600.0
_DIE_S = 2.0
"""What a snapshot gets to end when its connection is closed."""
_NEW_TAPE_S = 60.0
"""Recorded output that is as young may belong to a program that just begins."""
_LOOK_ROUND_S = 2.0
"""How often to look whether we still should be there."""


class Host:
    """Serves one program until nobody needs it any more."""

    def __init__(self, spec: dict[str, Any], listener: socket.socket) -> None:
        """Know nothing yet."""
        self.spec = spec
        self.run: str = spec["run"]
        self.key: str = spec["key"]
        self.cwd = os.getcwd()
        self._here = machine.identity(".")
        self._socket = machine.identity(where.socket_path(self.run, self.key))
        self._board = Switchboard(
            listener, self._heed, self._gone, lambda error: where.leave_word(spec, error)
        )
        self._runs = Runs(self._board, self._note_over, float(spec.get("patience") or 0.0))
        self._scales = scales.Scales()
        self._sources = texts.Sources()
        self._texts = texts.Texts()
        self._places = Places(self._sources)
        self._start = importable.Importable()
        self._numbers = 0
        self._ended: list[tuple[int, importable.Importable]] = []
        """Number and surroundings of the runs that ended last."""
        self._dying: dict[int, float] = {}
        """The processes of ended snapshots that are still there, and how long they may be."""
        self._busy_at = time.monotonic()
        self._look_at = 0.0
        self._is_ending = False
        self._has_heir = False
        """The run that begins when we end has a host of its own, and the same key."""
        self._idle_s = _IDLE_S
        self._refused = refusals.Known()
        self._heed_wishes(spec)

    # --- the loop

    def serve(self) -> None:
        """Answer until the end."""
        self._heed_sigterm()
        stencils.sweep(str(self.spec.get("cache", "")))
        while self._runs or not self._is_ending:
            self._board.turn(self._patience())
            self._on_time()
        self._board.flush()
        if not os.path.lexists(where.socket_path(self.run, self.key)):  # else they are another's
            is_over = self._is_quiet() and not self._has_heir
            self._sweep_tapes(0.0 if is_over else _NEW_TAPE_S)

    def _heed_sigterm(self) -> None:
        near, far = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(far, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, lambda *_: None)

        def heed() -> None:
            os.read(near, 64)
            self._end()
            self._runs.hang_up()

        self._board.watch(near, heed)

    def _patience(self) -> float:
        """Return how long nothing is to be done."""
        due = [self._look_at, *self._runs.due_at]
        due += [self._scales.due_at] if self._snapshots else []
        due += [peer.running.due_at for peer in self._peers if peer.running]
        due += self._dying.values()
        return max(0.0, min(due) - time.monotonic())

    def _on_time(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for peer in self._peers:
            if peer.running and peer.running.due_at <= now:
                peer.running.tick()
        self._runs.on_time(now)
        for pidfd, until in self._dying.items():
            if until <= now:
                self._dying[pidfd] = now + _DIE_S
                machine.send(pidfd, signal.SIGKILL)
        if self._look_at <= now:
            self._look_at = now + _LOOK_ROUND_S
            self._look_round(now)
        if self._scales.due_at <= now:
            self._scales.measure(self._snapshots, self._processes())
            self._thin()

    def _look_round(self, now: float) -> None:
        """See whether we still should be there."""
        if not self._is_quiet():
            self._busy_at = now
        if now - self._busy_at > self._idle_s or not self._is_at_home():
            self._end()
        if self._is_ending:
            return
        self._thin()
        if self._is_quiet():
            self._sweep_tapes(_NEW_TAPE_S)

    def _is_quiet(self) -> bool:
        return not self._runs and not any(peer.running for peer in self._peers)

    def _is_at_home(self) -> bool:
        """Tell whether those who look for us find us: the folder goes at logout."""
        return machine.identity(where.socket_path(self.run, self.key)) == self._socket

    def _end(self) -> None:
        """Answer nobody new, and end as soon as no run needs us."""
        if self._is_ending:
            return
        self._is_ending = True
        if self._is_at_home():
            os.unlink(where.socket_path(self.run, self.key))
        self._board.close()
        for peer in [*self._peers]:
            self._retire(peer)

    # --- peers

    @property
    def _peers(self) -> set[Peer]:
        return self._board.peers

    def _gone(self, peer: Peer) -> None:
        """A connection ended; a snapshot ends with it."""
        if peer.running:
            self._note_ended(peer.running.number, peer.running.start)
            self._board.unwatch(peer.running.pidfd)
            peer.running.close()
            peer.running = None
            self._busy_at = time.monotonic()
            self._get_ready(max(self._snapshots, key=lambda one: one.elapsed, default=None))
        self._runs.gone(peer)
        if peer.pidfd >= 0:
            self._board.watch(peer.pidfd, lambda: self._bury(peer))
            self._dying[peer.pidfd] = time.monotonic() + _DIE_S
            self._sources.keep(self._digests())

    def _bury(self, peer: Peer) -> None:
        """The process of an ended snapshot is gone: others have a larger share of the memory."""
        self._board.unwatch(peer.pidfd)
        del self._dying[peer.pidfd]
        os.close(peer.pidfd)
        self._scales.put_all(self._snapshots)

    def _digests(self) -> set[str]:
        """Name the texts that somebody needs."""
        found = {digest for one in self._snapshots for _, digest in one.files.values()}
        for peer in self._peers:
            if peer.hello is not None:
                found |= {str(digest) for _, digest in peer.hello["files"].values()}
        return found

    # --- messages

    def _heed(self, peer: Peer, message: dict[str, Any], fds: list[int]) -> None:
        """Do what a message says; takes out of the descriptors what it keeps."""
        op = message.get("op")
        if op is None:
            return self._runs.heed(peer, message)
        if op == "running":
            return self._note_running(peer, message, fds)
        if op == "resume":
            return self._resume(peer, message, fds)
        answers: dict[str, Callable[[Peer, dict[str, Any]], dict[str, Any] | None]] = {
            "ask": self._ask,
            "status": self._status,
            "stop": self._stop,
            "ban": self._ban,
            "hello": self._hello,
            "sources": self._take_sources,
            "ping": self._ping,
            "edge": self._note_edge,
            "refused": self._note_refused,
        }
        if op != "status":
            self._busy_at = time.monotonic()
        answer = answers[op](peer, message)
        if answer is not None:
            self._board.say(peer, answer)
        return None

    def _note_running(self, peer: Peer, message: dict[str, Any], fds: list[int]) -> None:
        self._busy_at = time.monotonic()
        if not fds or peer.running:
            return
        self._refused.forget()
        parent = next(
            (one for one in self._snapshots if one.pid == machine.parent_of(peer.pid)), None
        )
        self._numbers += 1
        start = (parent.start if parent else None) or importable.Importable()
        elapsed = float(message.get("elapsed", 0.0))
        try:
            peer.running = Running(peer.pid, elapsed, fds[0], self._numbers, start)
        except ProcessLookupError:  # it ended before we came to it; what else it said counts
            self._note_ended(self._numbers, start)
            return
        self._board.watch(peer.running.pidfd, lambda: self._board.drop_after_last_words(peer))

    def _note_ended(self, number: int, start: importable.Importable) -> None:
        self._ended = [*self._ended[-3:], (number, start)]

    def _ping(self, _: Peer, message: dict[str, Any]) -> dict[str, Any]:
        self._heed_wishes(message.get("spec") or {})
        return {"ok": not self._is_ending}

    def _heed_wishes(self, spec: dict[str, Any]) -> None:
        """Take what the newest run asks for."""
        if "idle" in spec:
            self._idle_s = float(spec["idle"] or _IDLE_S)
        if "memory" in spec:
            self._scales.wish_bytes = float(spec["memory"] or 0.0)
        if "at" in spec:
            self._places.wish(spec["at"])
            for one in self._snapshots:
                one.is_wanted = self._places.is_wanted(one)

    def _note_refused(self, _: Peer, message: dict[str, Any]) -> None:
        file, line = file_and_line(message["at"])
        self._refused.note(message, f"{texts.name_of(file, self.cwd)}:{line}")

    def _note_edge(self, _: Peer, message: dict[str, Any]) -> None:
        self._places.note_edge(message["at"])

    # --- snapshots

    @property
    def _snapshots(self) -> list[choice.Snapshot]:
        return [peer.snapshot for peer in self._peers if peer.snapshot]

    def _keeper(self, number: object) -> Peer | None:
        for peer in self._peers:
            if peer.snapshot and peer.snapshot.id == number:
                return peer
        return None

    def _hello(self, peer: Peer, message: dict[str, Any]) -> dict[str, Any]:
        if self._is_ending:
            return {"ok": False}
        peer.hello = message
        need = self._sources.missing(str(digest) for _, digest in message["files"].values())
        return {"need": need} if need else self._welcome(peer)

    def _take_sources(self, peer: Peer, message: dict[str, Any]) -> dict[str, Any]:
        self._sources.add(message["sources"])
        return self._welcome(peer)

    def _welcome(self, peer: Peer) -> dict[str, Any]:
        """Count a snapshot among ours, unless its place is banned."""
        hello, peer.hello = peer.hello, None
        if hello is None:
            return {"ok": False}
        run, start = self._lineage(int(hello.get("of", 0)))
        self._numbers += 1
        snapshot = choice.Snapshot(self._numbers, peer.pid, hello, run)
        snapshot.start = start
        start.know(os.path.join(self.cwd, file) for file in snapshot.files)
        if self._sources.missing(digest for _, digest in snapshot.files.values()):
            return {"ok": False}
        if self._places.is_banned(snapshot):
            return {"ok": False}
        snapshot.is_past_imports = self._places.is_past_imports(snapshot)
        snapshot.is_wanted = self._places.is_wanted(snapshot)
        peer.snapshot = snapshot
        peer.pidfd = os.pidfd_open(peer.pid)
        self._scales.put_first(snapshot)
        self._thin()
        return {"ok": True}

    def _lineage(self, program: int) -> tuple[int, importable.Importable]:
        """Return which run a process is, and what could be imported when that began.

        A program may have ended before its last snapshot told us: then it is one of those that
        ended just now, and if those differ, the one that makes the snapshot useless.
        """
        running = [peer.running for peer in self._peers if peer.running]
        for one in running:
            if one.pid == program:
                return one.number, one.start
        lineages = [(one.number, one.start) for one in running]
        lineages += reversed(self._ended)
        now = importable.installed()
        strange = [one for one in lineages if one[1].packages != now]
        return (strange or lineages or [(0, self._start)])[0]

    # --- clients

    def _ask(self, _: Peer, message: dict[str, Any]) -> dict[str, Any]:
        self._heed_wishes(message)
        why = self._why_nowhere()
        if why:
            self._end()
            self._has_heir = True
            return {"cold": why}
        look = texts.Look(self._sources, self._texts, self.cwd)
        offered = [one for one in self._snapshots if not one.is_retired]
        if not offered and self._refused.listed():
            return {"cold": self._refused.why_none()}
        snapshot, verdict = choice.choose(offered, look, importable.installed())
        if snapshot is None:
            return {"cold": verdict.why}
        place = self._places.of(snapshot)
        line = snapshot.line
        if place is not None and snapshot.file in verdict.edited:
            line = place.line_in(verdict.edited[snapshot.file])
        answer = {
            "resume": snapshot.id,
            "at": f"{look.name(snapshot.file)}:{line}",
            "elapsed": snapshot.elapsed,
            "because": reason.because(snapshot, place, verdict, look),
            "tape": snapshot.tape,
            "mark": snapshot.mark,
        }
        self._get_ready(snapshot)
        return answer

    def _get_ready(self, snapshot: choice.Snapshot | None) -> None:
        """Have a snapshot fork ahead of time, for it will probably be the next to go on."""
        keeper = self._keeper(snapshot.id) if snapshot else None
        if keeper is not None:
            self._board.say(keeper, {"op": "ready"})

    def _why_nowhere(self) -> str:
        """Say why no snapshot at all can be used; empty if one might."""
        if machine.identity(self.cwd) != self._here:
            return "the folder is another one now"
        return ""

    def _resume(self, peer: Peer, message: dict[str, Any], fds: list[int]) -> None:
        """Let a run go on, if what was said when it was asked about is still so."""
        self._busy_at = time.monotonic()
        keeper = self._keeper(message.get("id"))
        verdict = self._judge(keeper)
        if len(fds) < 3:
            verdict.why = "there are no streams"
        if verdict.why or keeper is None or keeper.snapshot is None:
            self._board.say(peer, {"failed": verdict.why})
            return
        self._numbers += 1
        self._places.use(keeper.snapshot)
        sources = {file: source.text for file, source in verdict.edited.items()}
        order = {
            "op": "resume",
            "run": str(self._numbers),
            "sources": sources,
            "env": message.get("env") or {},
            "at": self._places.edge,
        }
        self._runs.begin(peer, keeper, verdict.name, order, fds)

    def _judge(self, keeper: Peer | None) -> choice.Verdict:
        if keeper is None or keeper.snapshot is None:
            return choice.Verdict("the snapshot is gone")
        why = self._why_nowhere()
        if why:
            return choice.Verdict(why)
        look = texts.Look(self._sources, self._texts, self.cwd)
        return choice.judge(keeper.snapshot, look, importable.installed())

    def _note_over(self, keeper: Peer) -> None:
        """A snapshot has one run less."""
        if keeper.snapshot and (self._is_ending or keeper.snapshot.is_retired):
            self._retire(keeper)
        self._busy_at = time.monotonic()

    def _retire(self, keeper: Peer) -> None:
        """End a snapshot as soon as no run needs it; it is not offered any more."""
        if keeper.snapshot is not None:
            keeper.snapshot.is_retired = True
            if not keeper.snapshot.resuming:
                self._board.drop(keeper)

    def _status(self, _: Peer, __: dict[str, Any]) -> dict[str, Any]:
        listed = []
        for one in sorted(self._snapshots, key=lambda one: one.elapsed):
            if not one.pss:
                scales.weigh(one, self._processes())
            watched = [*one.files, *(one.ledger.get("observed") or {})]
            listed.append(
                {
                    "id": one.id,
                    "at": f"{texts.name_of(one.file, self.cwd)}:{one.line}",
                    "elapsed": one.elapsed,
                    "pid": one.pid,
                    "pss": one.pss,
                    "wanted": one.is_wanted,
                    "watches": [texts.name_of(path, self.cwd) for path in watched],
                }
            )
        allowed = self._scales.allowed_bytes
        return {
            "program": self.spec.get("command", []),
            "cwd": self.cwd,
            "pid": os.getpid(),
            "snapshots": listed,
            "refused": self._refused.listed(),
            "allowed_bytes": int(allowed) if allowed < float("inf") else None,
            "ends_after_s": self._idle_s,
            "idle_s": time.monotonic() - self._busy_at,
            "running": sum(1 for peer in self._peers if peer.running),
        }

    def _stop(self, _: Peer, __: dict[str, Any]) -> dict[str, Any]:
        count = len(self._snapshots)
        self._end()
        return {"stopped": count}

    def _ban(self, _: Peer, message: dict[str, Any]) -> dict[str, Any]:
        """Never use again the place at which a snapshot stands, or stood."""
        number = str(message.get("id"))
        keeper = self._keeper(number)
        name = self._places.ban(number, keeper.snapshot if keeper else None)
        count = 0
        for peer in [*self._peers]:
            if peer.snapshot and self._places.name(peer.snapshot) == name:
                count += 1
                self._retire(peer)
        return {"banned": count}

    def _thin(self) -> None:
        """End snapshots while there are too many, or too little memory is left."""
        while victim := self._scales.to_drop(self._snapshots, is_one_going=bool(self._dying)):
            keeper = self._keeper(victim.id)
            assert keeper is not None
            self._board.drop(keeper)

    def _processes(self) -> set[int]:
        """Return those that stand for themselves: snapshots and runs."""
        found = {one.pid for one in self._snapshots} | self._runs.pids
        return found | {peer.running.pid for peer in self._peers if peer.running}

    def _sweep_tapes(self, older_than_s: float) -> None:
        """Remove recorded output that no snapshot needs."""
        tapes.sweep(self.run, self.key, {one.tape for one in self._snapshots}, older_than_s)
