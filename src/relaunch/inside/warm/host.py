"""The process that keeps the snapshots of one program: it knows them, chooses, and thins them out.

One thread, one loop, nothing in it waits for a peer. Everything that it keeps ends with it: a
snapshot whose connection ends is gone. It was forked before any code of the user was imported, so
it is small.
"""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time

from . import choice, importable, ladder, machine, reason, refusals, texts, where, wire
from .peers import Peer, Resumed, Running

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_IDLE_S = 2 * 3600.0
_DIE_S = 2.0
"""What a snapshot gets to end when its connection is closed."""
_NEW_TAPE_S = 60.0
"""Recorded output that is as young may belong to a program that just begins."""
_LOOK_ROUND_S = 2.0
"""How often to look whether we still should be there."""
_MEASURE_S = 3.0
"""How often the memory of all snapshots is measured, unless that is much work."""
_MEASURE_SHARE = 0.02
_HANG_UP_S = 5.0
"""What a program gets to end by itself after its client went away."""
_RESUME_S = 25.0
"""A snapshot that does not answer for so long hangs."""
_MEMORY_SHARE = 0.25
_LOW_MEMORY = 0.05
_MOST_FAILURES = 3
_MOST_PULLS = 32
"""How often one peer is read from before it is the others' turn."""


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
        self._listener: socket.socket | None = listener
        self._selector = selectors.DefaultSelector()
        self._peers: set[Peer] = set()
        self._resumed: dict[str, Resumed] = {}
        self._sources = texts.Sources()
        self._texts = texts.Texts()
        self._banned: dict[str, str] = {}
        self._places: dict[str, str] = {}
        """Where the snapshots stood that were used."""
        self._script = ""
        self._start = importable.Importable()
        self._numbers = 0
        self._ended: list[tuple[int, importable.Importable]] = []
        """Number and surroundings of the runs that ended last."""
        self._dying: dict[int, float] = {}
        """The processes of ended snapshots that are still there, and how long they may be."""
        self._busy_at = time.monotonic()
        self._look_at = 0.0
        self._measure_at = time.monotonic() + _MEASURE_S
        self._to_measure: list[choice.Snapshot] = []
        self._is_ending = False
        self._has_heir = False
        """The run that begins when we end has a host of its own, and the same key."""
        self._idle_s = _IDLE_S
        self._memory = 0.0
        """What a person allows; 0 if nobody said."""
        self._wishes: list[tuple[str, int]] = []
        self._refused = refusals.Known()
        self._edge: list[tuple[str, int]] = []
        """The statement after which the last run could not be forked any more."""
        self._heed_wishes(spec)
        self._patience_s = float(spec.get("patience") or _RESUME_S)

    # --- the loop

    def serve(self) -> None:
        """Answer until the end."""
        assert self._listener is not None
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._heed_sigterm()
        while not (self._is_ending and not self._resumed):
            for key, events in self._selector.select(self._patience()):
                if isinstance(key.data, Peer):
                    self._attend(key.data, events)
                elif key.data is None:
                    self._accept()
                else:
                    key.data()
            self._on_time()
        self._flush_all()
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
            for one in [*self._resumed.values()]:
                self._hang_up(one)

        self._selector.register(near, selectors.EVENT_READ, heed)

    def _patience(self) -> float:
        """Return how long nothing is to be done."""
        due = [self._look_at, self._measure_at if self._snapshots else self._look_at]
        due += [peer.running.due_at for peer in self._peers if peer.running]
        due += [one.give_up_at for one in self._resumed.values() if one.give_up_at]
        due += self._dying.values()
        return max(0.0, min(due) - time.monotonic())

    def _on_time(self) -> None:
        """Do what is due."""
        now = time.monotonic()
        for peer in self._peers:
            if peer.running and peer.running.due_at <= now:
                peer.running.tick()
        for run, one in [*self._resumed.items()]:
            if one.give_up_at and one.give_up_at <= now:
                self._give_up(run, one)
        for pidfd, until in self._dying.items():
            if until <= now:
                self._dying[pidfd] = now + _DIE_S
                machine.send(pidfd, signal.SIGKILL)
        if self._look_at <= now:
            self._look_at = now + _LOOK_ROUND_S
            self._look_round(now)
        if self._measure_at <= now:
            self._measure()

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
        return not self._resumed and not any(peer.running for peer in self._peers)

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
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None
        for peer in [*self._peers]:
            self._retire(peer)

    def _flush_all(self) -> None:
        """Let those have their last answer who read it soon."""
        import select

        until = time.monotonic() + 1.0
        for peer in self._peers:
            try:
                while peer.stream.is_waiting:
                    left = max(0.0, until - time.monotonic())
                    if not select.select([], [peer.stream.link], [], left)[1]:
                        break
                    peer.stream.push()
            except OSError:
                pass

    # --- peers

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            link, _ = self._listener.accept()
            pid, uid = wire.peer_of(link)
        except OSError:
            return
        if uid != os.geteuid():
            link.close()
            return
        link.setblocking(False)
        peer = Peer(link, pid)
        self._peers.add(peer)
        self._listen_to(peer)

    def _listen_to(self, peer: Peer) -> None:
        if peer.is_gone:
            return
        events = 0 if peer.stream.is_full else selectors.EVENT_READ
        if peer.stream.is_waiting:
            events |= selectors.EVENT_WRITE
        if events == peer.events:
            return
        if peer.events:
            self._selector.modify(peer.stream.link, events, peer)
        else:
            self._selector.register(peer.stream.link, events, peer)
        peer.events = events

    def _attend(self, peer: Peer, events: int) -> None:
        """Read and write as far as a peer lets us; what goes wrong with it ends only it."""
        if peer.is_gone:
            return
        try:
            if events & selectors.EVENT_WRITE:
                peer.stream.push()
            if events & selectors.EVENT_READ and not self._pull(peer):
                self._drop(peer)
                return
            self._listen_to(peer)
        except OSError:
            self._drop(peer)
        except Exception as error:
            where.leave_word(self.spec, error)
            self._drop(peer)

    def _pull(self, peer: Peer) -> bool:
        """Read what is there, but not for ever; False at the end of the stream."""
        for _ in range(_MOST_PULLS):
            if peer.is_gone or peer.stream.is_full:
                break
            try:
                if not peer.stream.pull():
                    return False
            except BlockingIOError:
                return True
            if peer.stream.is_complete:
                message, fds = peer.stream.take()
                try:
                    self._heed(peer, message, fds)
                finally:  # who uses them takes them out
                    for fd in fds:
                        os.close(fd)
        return True

    def _say(self, peer: Peer, message: dict[str, Any], fds: list[int] | None = None) -> None:
        """Send a message to a peer, who may be gone; descriptors that go with it are taken out."""
        if peer.is_gone:
            return
        try:
            peer.stream.put(message, fds)
            self._listen_to(peer)
        except OSError:
            self._drop(peer)

    def _drop(self, peer: Peer) -> None:
        """End a connection; a snapshot ends with it."""
        if peer.is_gone:
            return
        peer.is_gone = True
        self._peers.discard(peer)
        if peer.events:
            self._selector.unregister(peer.stream.link)
        peer.stream.forget()
        peer.stream.link.close()
        if peer.running:
            self._ended = [*self._ended[-3:], (peer.running.number, peer.running.start)]
            self._selector.unregister(peer.running.pidfd)
            peer.running.close()
            peer.running = None
            self._busy_at = time.monotonic()
            self._get_ready(max(self._snapshots, key=lambda one: one.elapsed, default=None))
        for run, one in [*self._resumed.items()]:
            if one.keeper is peer:
                self._lost(run, one)
            elif one.client is peer and one.pid:
                self._hang_up(one)
        if peer.pidfd >= 0:
            self._selector.register(peer.pidfd, selectors.EVENT_READ, lambda: self._bury(peer))
            self._dying[peer.pidfd] = time.monotonic() + _DIE_S
            self._sources.keep(self._digests())

    def _bury(self, peer: Peer) -> None:
        """The process of an ended snapshot is gone: others have a larger share of the memory."""
        self._selector.unregister(peer.pidfd)
        del self._dying[peer.pidfd]
        os.close(peer.pidfd)
        self._to_measure = [*self._snapshots]
        self._measure_at = min(self._measure_at, time.monotonic())

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
            return self._heed_snapshot(peer, message)
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
            self._say(peer, answer)
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
        peer.running = Running(peer.pid, elapsed, fds[0], self._numbers, start)
        self._selector.register(peer.running.pidfd, selectors.EVENT_READ, lambda: self._drop(peer))

    def _ping(self, _: Peer, message: dict[str, Any]) -> dict[str, Any]:
        self._heed_wishes(message.get("spec") or {})
        return {"ok": not self._is_ending}

    def _heed_wishes(self, spec: dict[str, Any]) -> None:
        """Take what the newest run asks for."""
        if "idle" in spec:
            self._idle_s = float(spec["idle"] or _IDLE_S)
        if "memory" in spec:
            self._memory = float(spec["memory"] or 0.0)
        if "at" in spec:
            self._wishes = [_file_and_line(place) for place in spec["at"]]
            for one in self._snapshots:
                self._note_wanted(one)

    def _note_refused(self, _: Peer, message: dict[str, Any]) -> None:
        file, line = _file_and_line(message["at"])
        self._refused.note(message, f"{texts.name_of(file, self.cwd)}:{line}")

    def _note_edge(self, _: Peer, message: dict[str, Any]) -> None:
        self._edge = [_file_and_line(message["at"])]

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
        if self._banned and self._place_name(snapshot) in self._banned:
            return {"ok": False}
        snapshot.is_past_imports = self._is_past_imports(snapshot)
        self._note_wanted(snapshot)
        peer.snapshot = snapshot
        peer.pidfd = os.pidfd_open(peer.pid)
        self._to_measure.insert(0, snapshot)
        self._measure_at = min(self._measure_at, time.monotonic() + 0.02)
        self._thin()
        return {"ok": True}

    def _note_wanted(self, snapshot: choice.Snapshot) -> None:
        wishes = [*self._wishes, *self._edge]
        snapshot.is_wanted = False
        if wishes and snapshot.file in snapshot.files:
            source = self._sources.source(snapshot.files[snapshot.file][1], snapshot.file)
            snapshot.is_wanted = ladder.is_wanted(snapshot, source, wishes)

    def _is_past_imports(self, snapshot: choice.Snapshot) -> bool:
        """Tell whether the script has done its imports; it is the file that was loaded first."""
        for file, (first, _) in snapshot.files.items():
            if first == 0:
                self._script = file
        if self._script not in snapshot.files:
            return False
        first, digest = snapshot.files[self._script]
        source = self._sources.source(digest, self._script)
        return ladder.is_past_imports(snapshot, source, first)

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

    def _place(self, snapshot: choice.Snapshot) -> reason.Place | None:
        if snapshot.file not in snapshot.files:
            return None
        digest = snapshot.files[snapshot.file][1]
        return reason.place_of(snapshot, self._sources.source(digest, snapshot.file))

    def _heed_snapshot(self, peer: Peer, message: dict[str, Any]) -> None:
        """Hear what became of a run."""
        run = str(message.get("run", ""))
        one = self._resumed.get(run)
        if one is None or one.keeper is not peer:
            return
        if "started" in message:
            self._started(one, int(message["started"]))
        elif "failed" in message:
            self._failed(run, one, str(message["failed"]))
        elif "ended" in message:
            self._forget_run(run, one)
            self._say(one.client, {"ended": message["ended"]})

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
        place = self._place(snapshot)
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
            self._say(keeper, {"op": "ready"})

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
            self._say(peer, {"failed": verdict.why})
            return
        self._numbers += 1
        run = str(self._numbers)
        keeper.snapshot.resuming += 1
        self._places[keeper.snapshot.id] = self._place_name(keeper.snapshot)
        self._resumed[run] = Resumed(peer, keeper, verdict.name, self._patience_s)
        sources = {file: source.text for file, source in verdict.edited.items()}
        order = {
            "op": "resume",
            "run": run,
            "sources": sources,
            "env": message.get("env") or {},
            "at": [f"{file}:{line}" for file, line in self._edge],
        }
        self._say(keeper, order, fds)

    def _judge(self, keeper: Peer | None) -> choice.Verdict:
        if keeper is None or keeper.snapshot is None:
            return choice.Verdict("the snapshot is gone")
        why = self._why_nowhere()
        if why:
            return choice.Verdict(why)
        look = texts.Look(self._sources, self._texts, self.cwd)
        return choice.judge(keeper.snapshot, look, importable.installed())

    def _started(self, one: Resumed, pid: int) -> None:
        one.give_up_at = 0.0
        one.pid = pid
        try:
            one.pidfd = os.pidfd_open(pid)
        except OSError:
            one.pidfd = -1
        if one.pidfd >= 0 and machine.parent_of(pid) != one.keeper.pid:
            os.close(one.pidfd)
            one.pidfd = -1
        if one.client.is_gone:
            self._hang_up(one)
        self._say(one.client, {"pid": pid})

    def _failed(self, run: str, one: Resumed, why: str) -> None:
        """Do not offer a snapshot again for sources with which it cannot go on."""
        self._forget_run(run, one)
        snapshot = one.keeper.snapshot
        if snapshot is not None:
            snapshot.refused.add(one.sources)
            if len(snapshot.refused) >= _MOST_FAILURES:
                self._retire(one.keeper)
        self._say(one.client, {"failed": why})

    def _forget_run(self, run: str, one: Resumed) -> None:
        del self._resumed[run]
        if one.pidfd >= 0:
            os.close(one.pidfd)
        snapshot = one.keeper.snapshot
        if snapshot is not None:
            snapshot.resuming -= 1
            if self._is_ending or snapshot.is_retired:
                self._retire(one.keeper)
        self._busy_at = time.monotonic()

    def _retire(self, keeper: Peer) -> None:
        """End a snapshot as soon as no run needs it; it is not offered any more."""
        if keeper.snapshot is not None:
            keeper.snapshot.is_retired = True
            if not keeper.snapshot.resuming:
                self._drop(keeper)

    def _lost(self, run: str, one: Resumed) -> None:
        """A snapshot died under a run: how that ends nobody will know, so it ends now."""
        if one.pid:
            self._signal(one, signal.SIGKILL)
        self._forget_run(run, one)
        if one.pid:
            self._say(one.client, {"ended": int(signal.SIGKILL)})
        else:
            self._say(one.client, {"failed": "the snapshot died"})

    def _hang_up(self, one: Resumed) -> None:
        """Tell a program to end whose client went away, as a terminal does that is closed."""
        if one.is_told_to_end:
            return
        one.is_told_to_end = True
        one.give_up_at = time.monotonic() + _HANG_UP_S
        self._signal(one, signal.SIGHUP)

    def _give_up(self, run: str, one: Resumed) -> None:
        if one.pid:
            one.give_up_at = time.monotonic() + _HANG_UP_S
            self._signal(one, signal.SIGKILL)
            return
        keeper = one.keeper
        self._failed(run, one, "the snapshot does not answer")
        machine.send(keeper.pidfd, signal.SIGKILL)
        self._drop(keeper)

    def _signal(self, one: Resumed, number: signal.Signals) -> None:
        """Send a signal to a resumed program and its children, but to no snapshot."""
        if one.pidfd < 0:
            return
        keep = {peer.pid for peer in self._peers if peer.snapshot or peer.hello}
        below = machine.below(one.pid, keep)
        machine.send(one.pidfd, number)
        for pid in below:
            try:
                os.kill(pid, number)
            except OSError:
                pass

    def _status(self, _: Peer, __: dict[str, Any]) -> dict[str, Any]:
        listed = []
        for one in sorted(self._snapshots, key=lambda one: one.elapsed):
            if not one.pss:
                self._weigh(one)
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
        allowed = self._allowed(machine.memory()[0])
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
        name = self._places.get(number, "")
        if keeper is not None and keeper.snapshot is not None:
            name = self._place_name(keeper.snapshot)
        if name:
            self._banned[name] = str(message.get("why", ""))
        count = 0
        for peer in [*self._peers]:
            snapshot = peer.snapshot
            if snapshot and (peer is keeper or self._place_name(snapshot) == name):
                count += 1
                self._retire(peer)
        return {"banned": count}

    def _place_name(self, snapshot: choice.Snapshot) -> str:
        place = self._place(snapshot)
        return place.name if place else f"{snapshot.file}:{snapshot.line}"

    # --- memory

    def _thin(self) -> None:
        """End snapshots while there are too many, or too little memory is left.

        For memory one at a time: what that gave is known only when the process is gone.
        """
        while len(self._snapshots) > ladder.MOST and self._drop_one(memory_is_short=False):
            pass
        if self._snapshots and not self._dying and self._is_memory_short():
            self._drop_one(memory_is_short=True)

    def _is_memory_short(self) -> bool:
        total, available = machine.memory()
        is_low = available < _LOW_MEMORY * total
        return is_low or sum(one.pss for one in self._snapshots) > self._allowed(total)

    def _allowed(self, total: int) -> float:
        """Return how many bytes all snapshots may take together."""
        return self._memory or _MEMORY_SHARE * total or float("inf")

    def _drop_one(self, memory_is_short: bool) -> bool:
        victim = None
        if memory_is_short:
            victim = ladder.too_large(self._snapshots, self._allowed(machine.memory()[0]))
        victim = victim or ladder.to_drop(self._snapshots, memory_is_short)
        keeper = self._keeper(victim.id) if victim else None
        if keeper is not None:
            self._drop(keeper)
        return keeper is not None

    def _measure(self) -> None:
        """Measure the memory of one snapshot, and say when to measure the next.

        That takes the kernel long for large processes, so one at a time, in little of our time.
        """
        self._to_measure = [one for one in self._to_measure if self._keeper(one.id)]
        if not self._to_measure:
            self._to_measure = [*self._snapshots]
        if not self._to_measure:
            self._measure_at = time.monotonic() + _MEASURE_S
            return
        began = time.monotonic()
        one = self._to_measure.pop(0)
        self._weigh(one)
        cost = time.monotonic() - began
        pause = cost / _MEASURE_SHARE
        if not self._to_measure:
            pause = max(pause, _MEASURE_S)
        self._measure_at = time.monotonic() + pause
        self._thin()

    def _weigh(self, snapshot: choice.Snapshot) -> None:
        """Measure a snapshot, with the process that it forked ahead of time but not with runs."""
        others = {one.pid for one in self._snapshots} | {one.pid for one in self._resumed.values()}
        others |= {peer.running.pid for peer in self._peers if peer.running}
        share, snapshot.alone = machine.memory_of(snapshot.pid)
        ahead = machine.below(snapshot.pid, others)
        snapshot.pss = share + sum(machine.memory_of(pid)[0] for pid in ahead)

    def _sweep_tapes(self, older_than_s: float) -> None:
        """Remove recorded output that no snapshot needs."""
        needed = {one.tape for one in self._snapshots}
        try:
            names = os.listdir(self.run)
        except OSError:
            return
        for name in names:
            path = os.path.join(self.run, name)
            if not name.startswith(f"{self.key}.") or not name.endswith((".tape", ".written")):
                continue
            try:
                if path not in needed and time.time() - os.stat(path).st_mtime >= older_than_s:
                    os.unlink(path)
            except OSError:
                pass


def _file_and_line(place: object) -> tuple[str, int]:
    name, _, line = str(place).rpartition(":")
    return os.path.normpath(name), int(line)
