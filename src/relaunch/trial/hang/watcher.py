"""The process of ours that watches whether a program hangs, and acts when it does.

It reads /proc twice a second, as little as is needed: as long as CPU is used, nothing but that. It
attaches to nobody. It hears which process is the program, and tells what it found, one JSON value
on a line.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.jsontext import dumps
from relaunch.look.stacks.ladder import Asked, look
from relaunch.look.tree import below, children
from relaunch.look.waits import threads
from relaunch.look.waits.kernelwork import under_way
from relaunch.look.waits.meaning import Meaning
from relaunch.look.waits.proc import read
from relaunch.look.waits.signals import awaited, has_timers
from relaunch.proc.left_out import left_out
from relaunch.record import Record
from relaunch.trial.hang import words
from relaunch.trial.hang.ending import end
from relaunch.trial.hang.grading import (
    CERTAIN,
    WAITING,
    Seen,
    after_silence,
    are_on_their_way,
    certain,
    own_part,
)
from relaunch.trial.hang.passive import Known
from relaunch.trial.hang.window import Window, is_python

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.look.stacks import ProcessStacks, Thread
    from relaunch.look.waits.meaning import Wait
    from relaunch.trial.hang.debugger import Debugger
    from relaunch.trial.hang.grading import Finding

    Key = tuple[int, int]

KILL, KEEP, PDB = "kill", "keep", "pdb"
_LOOK_S, _LONGEST_S = 0.4, 1.0
"""How long to wait between two looks: longer at a tree that takes long to look at."""
_CONFIRM_S = 1.5
"""So long nobody may have moved before a hang is certain: a packet is under way for less."""
_FIRST_ANEW_S, _ANEW_S, _ANEW_SHARE = 1.0, 5.0, 200
"""After so long it is asked again who holds the other ends, and then after twice as long: somebody
else may have let go, as one that was just forked does; later where asking takes long."""
_SLIGHT = 4
"""CPU time between two looks, in hundredths of a second, that threads which only look may use."""
_SHARE = 50
"""Looking uses at most one part in so many of the time."""
_MOST_PATIENCE = 8
"""So much longer than at first one is looked at that waits for somebody, again and again."""
_TRIES, _BETWEEN_S = 5, 0.05
"""How many times the waits are read until no thread is between two of them, and the pause."""
_STACKS_S = 3.0
"""So long the stacks of a process may take."""


class Task(Record):
    """What a watcher is to do."""

    silence_s: float
    """After so long without output a program that is only suspected counts as hung."""
    act: str
    roots: Sequence[str]
    """Folders of the user's own code."""
    stacks: str = ""
    """File for the stacks of all processes; empty: none."""
    clean: Callable[[bytes], bytes] = bytes
    """Takes secrets out of it: it has the commands of processes."""


class Watcher:
    """One program, on one socket."""

    def __init__(
        self, task: Task, last_output: Callable[[], float], debugger: Debugger | None = None
    ) -> None:
        """`last_output` says when the program last wrote something, on the monotonic clock."""
        self._task = task
        self._last_output = last_output
        self._debugger = debugger
        self._parent = os.getpid()
        self._program = 0
        self._helpers: set[int] = set()
        self._socket = -1
        self._began = 0.0
        self._ticks: tuple[list[int], int] = ([], 0)
        self._still: dict[Key, threads.Thread] | None = None
        self._proved_at = self._not_before = 0.0
        self._anew_s = _FIRST_ANEW_S
        self._known = Known()
        self._window: Window | None = None
        self._patience = 1
        self._was_stopped = False
        self._told: set[str] = set()

    def run(self, socket: int) -> None:
        """Watch until the other end closes."""
        self._socket = socket
        said = os.read(socket, 4096).split()
        if not said:
            return
        self._program = int(said[0])
        self._helpers = {os.getpid(), *map(int, said[1:])}
        self._began = time.monotonic()
        wait_s = _LOOK_S
        while not self._is_over(wait_s):
            began = time.process_time()
            try:
                finding = self._look()
            except (OSError, ValueError, LookupError):  # who was looked at went away meanwhile
                finding = None
            if finding is not None and self._act(finding):
                if self._task.act == KEEP and finding.grade == CERTAIN:
                    self._wait_until_it_works()
                os.read(socket, 1)  # until its end
                return
            wait_s = min(max(_LOOK_S, (time.process_time() - began) * _SHARE), _LONGEST_S)

    def _wait_until_it_works(self) -> None:
        """Say when one that was kept runs again without any output.

        That a thread was woken says nothing: whoever takes its stacks wakes it too.
        """
        before = threads.work(self._members())
        while not self._is_over(_LONGEST_S):
            now = threads.work(self._members())
            if threads.is_at_work(before, now):
                self._say({"went_on": True})
                self._say({"say": "the program runs again"})
                return
            before = now

    # --- looking

    def _look(self) -> Finding | None:
        """Look once; return what is to be told."""
        members = self._members()
        if not members:
            return None
        is_stopped = _state(self._program) in (b"T", b"t")
        if self._was_stopped and not is_stopped:
            self._began, self._window = time.monotonic(), None  # it could not have said anything
        self._was_stopped = is_stopped
        found = self._look_for_certain(members)
        return found or self._look_at_silence(members, self._silent_s())

    def _look_for_certain(self, members: list[int]) -> Finding | None:
        ticks = threads.ticks(members)
        before, self._ticks = self._ticks, (members, ticks)
        if members != before[0] or ticks - before[1] > _SLIGHT:
            self._forget()
            return None
        moment = threads.look(members)
        if self._still is None or not self._is_still(self._still, moment):
            self._forget(moment)
            return None
        now = time.monotonic()
        if now < self._not_before:
            return None
        if self._proved_at and now - self._proved_at < _CONFIRM_S:
            return None
        spent = time.process_time()
        found = self._prove(members, moment)
        if not found:
            dear_s = (time.process_time() - spent) * _ANEW_SHARE
            self._not_before = now + max(self._anew_s, min(dear_s, 4 * self._anew_s))
            self._anew_s = min(2 * self._anew_s, _ANEW_S)
        if found and self._proved_at:
            return found
        self._proved_at = now if found else 0.0
        return None

    def _forget(self, moment: dict[Key, threads.Thread] | None = None) -> None:
        """Begin anew: somebody moved."""
        self._still = moment
        self._proved_at = self._not_before = 0.0
        self._anew_s = _FIRST_ANEW_S

    def _is_still(
        self, before: dict[Key, threads.Thread], after: dict[Key, threads.Thread]
    ) -> bool:
        """Tell whether nobody moved but such as only look whether something has come."""
        moved = threads.moved(before, after)
        return moved is not None and self._known.are_known(moved, after)

    def _prove(self, members: list[int], moment: dict[Key, threads.Thread]) -> Finding | None:
        """Read what each thread waits for, and make sure that nobody moved meanwhile."""
        self._known.make_sure(moment)
        waits, awaiting = self._read_waits(members, moment)
        if not self._is_still(moment, threads.look(self._members())):
            return None
        timed = [moment[key] for key, wait in waits.items() if wait.is_timed]
        if timed and not any(wait.outside for wait in waits.values()):
            self._known.learn(timed)
            waits, awaiting = self._read_waits(members, moment)
            if not self._is_still(moment, threads.look(self._members())):
                return None
        seen = [Seen(pid=pid, tid=tid, wait=wait) for (pid, tid), wait in waits.items()]
        return certain(seen, awaiting)

    def _read_waits(
        self, members: list[int], moment: dict[Key, threads.Thread]
    ) -> tuple[dict[Key, Wait], dict[int, str]]:
        meaning = Meaning(members, {pid: children(pid) for pid in members})
        waits = {
            key: self._known.meant(meaning, one, meaning.of(one))
            for key, one in moment.items()
            if one.state not in "ZX"
        }
        first = self._first_processes(members)
        awaiting = {}
        for pid in members:
            main = moment.get((pid, pid))
            is_ours = main is not None and self._known.is_supervisor(main)
            signal = awaited(pid, is_first=pid in first and not is_ours)
            awaiting[pid] = signal or ("a timer" if has_timers(pid) else under_way(pid))
        return waits, awaiting

    def _first_processes(self, members: list[int]) -> set[int]:
        """Return the program, and below a shell or a wrapper what that runs."""
        found, todo = set(), [self._program]
        while todo:
            pid = todo.pop()
            found.add(pid)
            if not is_python(pid):
                todo += [child for child in children(pid) if child in members]
        return found

    def _look_at_silence(self, members: list[int], silent_s: float) -> Finding | None:
        limit_s = self._task.silence_s
        if silent_s < limit_s / 2:
            self._window, self._patience = None, 1
            return None
        if self._window is None:
            self._window = Window(members, length_s=limit_s / 2 * self._patience)
        window = self._window
        window.sample(members)
        if silent_s < limit_s or not window.is_full or self._proved_at:  # soon it is certain
            return None
        self._window = None
        found = self._judge(members, window)
        is_waiting = found is not None and found.grade == WAITING
        self._patience = min(self._patience * 2, _MOST_PATIENCE) if is_waiting else 1
        return found

    def _judge(self, members: list[int], window: Window) -> Finding | None:
        if window.works:
            return None
        for _ in range(_TRIES):
            waits, awaiting = self._read_waits(members, threads.look(members))
            seen = window.seen(members, waits)
            if window.is_busy_elsewhere(members, seen):
                return None
            if not are_on_their_way(seen):
                return after_silence(seen, awaiting, pythons=window.read_whole())
            if self._is_over(_BETWEEN_S):
                return None
        return None  # the next window may tell

    def _members(self) -> list[int]:
        """List the processes of the tree as they are now."""
        others = [pid for pid in children(self._parent) if pid not in self._helpers]
        roots = dict.fromkeys([self._program, *others])
        everyone = dict.fromkeys([*roots, *(pid for root in roots for pid in below(root))])
        return [pid for pid in everyone if _state(pid) not in (b"", b"Z", b"X")]

    def _silent_s(self) -> float:
        return time.monotonic() - max(self._began, self._last_output())

    # --- acting

    def _act(self, finding: Finding) -> bool:
        """Tell it, and do what was asked for; False: it is watched on."""
        if finding.grade == WAITING:
            self._tell_waiting(finding)
            return False
        silent_s = self._silent_s()
        members = self._members()
        waits, awaiting = self._read_waits(members, threads.look(members))
        processes = self._stacks(members)
        finding = self._with_stacks(finding, processes, waits, awaiting)
        head = words.headline(finding, self._task.roots)
        found = words.reached(
            finding,
            head,
            self._task.roots,
            act=self._task.act,
            silent_s=silent_s,
            waits=waits,
            commands={one.pid: one.command for one in processes},
        )
        self._write(words.page(head, processes, waits))
        self._say({"reached": found})
        if self._task.act == KILL:  # which is told when it has ended
            end(self._members)
        elif self._task.act == PDB and self._debugger is not None:
            self._debug(head, finding)
        else:
            self._say({"say": f"{head}; left as it is. {_how_to_look(finding, self._program)}"})
        return True

    def _tell_waiting(self, finding: Finding) -> None:
        said = words.waiting_line(finding, self._task.roots, self._silent_s())
        key = " ".join(words.key(finding.stuck, self._task.roots))
        if key not in self._told:
            self._told.add(key)
            self._say({"waited": said})
            if not finding.is_quiet:
                self._say({"say": said})

    def _debug(self, head: str, finding: Finding) -> None:
        assert self._debugger is not None
        who = finding.stuck[0] if finding.stuck else None
        pid, tid = (who.pid, who.tid) if who else (self._program, self._program)
        self._say({"say": f"{head}; opening the debugger there"})
        if not self._debugger.open(pid, tid):
            look = _how_to_look(finding, self._program)
            self._say(
                {"say": f"no debugger: process {pid} is in C code and does not come to it. {look}"}
            )

    def _stacks(self, members: list[int]) -> list[ProcessStacks]:
        """Take the stacks of all, without stopping anybody."""
        asked = Asked(pause=False, limit_s=_STACKS_S, without=left_out())
        found = look(members, asked)
        return [one.but(threads=tuple(map(_own_part, one.threads))) for one in found]

    def _with_stacks(
        self,
        finding: Finding,
        processes: Sequence[ProcessStacks],
        waits: dict[Key, Wait],
        awaiting: dict[int, str],
    ) -> Finding:
        """Say it again with the stacks, which name places."""
        if finding.grade != CERTAIN:
            return finding
        known = {(one.pid, thread.id): thread for one in processes for thread in one.threads}
        seen = [_seen(key, wait, known.get(key)) for key, wait in waits.items()]
        return certain(seen, awaiting) or finding

    def _is_over(self, wait_s: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def _write(self, text: str) -> None:
        if not self._task.stacks:
            return
        try:
            fd = os.open(self._task.stacks, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.write(fd, self._task.clean(text.encode("utf-8", "replace")))
            os.close(fd)
        except OSError:
            pass

    def _say(self, value: dict[str, Any]) -> None:
        data = dumps(value).encode() + b"\n"
        while data:
            data = data[os.write(self._socket, data) :]


def _seen(key: Key, wait: Wait, thread: Thread | None) -> Seen:
    if thread is None:
        return Seen(pid=key[0], tid=key[1], wait=wait)
    return Seen(pid=key[0], tid=key[1], wait=wait, name=thread.name, frames=thread.frames)


def _own_part(thread: Thread) -> Thread:
    return thread.but(frames=own_part(thread.frames))


def _how_to_look(finding: Finding, program: int) -> str:
    pid = finding.stuck[0].pid if finding.stuck else program
    return f"Look: rl stacks {pid}; end it: Ctrl-C"


def _state(pid: int) -> bytes:
    return read(f"/proc/{pid}/stat").rpartition(b")")[2].lstrip()[:1]
