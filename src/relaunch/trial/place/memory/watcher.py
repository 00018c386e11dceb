"""The process of ours that watches the memory of a program, and acts when the limit is reached.

It is a process of its own, so that neither a terminal that takes no output nor a busy relay holds
it up. It hears which process is the program, and tells what happened, one JSON value on a line.
"""

from __future__ import annotations

import os
import select
import time

from relaunch.jsontext import dumps
from relaunch.look.stacks import LookError, dump, dump_all, py_spy
from relaunch.proc.eager import run_soon
from relaunch.proc.helper import write_all
from relaunch.proc.left_out import left_out
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.memory import halt, moment
from relaunch.trial.place.memory.meter import Growers, Taken, bytes_of
from relaunch.trial.place.memory.nearing import Nearing
from relaunch.trial.place.memory.pace import Pace
from relaunch.trial.place.memory.told_inside import OURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any, Protocol

    from relaunch.look.stacks import Thread
    from relaunch.trial.place.memory.moment import Growth, Seen
    from relaunch.trial.place.memory.told_inside import Inside

    class Meter(Protocol):
        """What says how much memory a program has, and may hold it."""

        limit: int
        wakes: Sequence[int]
        wake_on: int

        def begin(self, program: int, helpers: Collection[int]) -> None: ...
        def members(self) -> list[int]: ...
        def known(self) -> list[int]: ...
        def used(self, rate: float) -> int: ...
        def is_reached(self, wake: int) -> bool: ...
        def near(self) -> None: ...
        def loosen(self, *, goes_on: bool) -> None: ...
        def lift(self) -> None: ...
else:
    import _signal

KILL, PAUSE, LIFT, INTERRUPT = "kill", "pause", "lift", "interrupt"
SPARE = "spare"
"""Of a shell: end what it runs, and let it go on below its limit."""
_ENDINGS = {
    KILL: "Stopped by relaunch, not by the kernel",
    SPARE: "Stopped by relaunch, not by the kernel",
    INTERRUPT: "Interrupted by relaunch",
}
_YAMA = "/proc/sys/kernel/yama/ptrace_scope"
_CONTINUED_MS = 20
_HALT_S, _STOPPED_S = 0.02, 1.0
"""So long is waited until all have come to their stop: for reading them, and for a person."""
_LONGEST_S = 2.0
"""After so long no further stack is read: the program is stopped, and a person waits."""
_THAW_S = 0.001
"""So long after one page of room who was frozen gets another."""
_NAMED_AT = 0.5
"""With so much of the limit used, it is noted who takes pages."""
_CATCH_LOOK_S = 0.00005
_CATCH_S, _CATCH_BYTES, _MORE = 0.08, 64 << 10, 200
"""Until so long after the limit it is looked for who takes memory, each time so much; and no longer
than until this part of the limit was taken besides."""
_CATCH_EACH_S, _FEW = 0.02, 5
"""So long at least for each process that is more than a few."""
_CATCHES, _CATCH_ONE_S = 4, 0.02
"""So many looks at least, as long as somebody takes memory: on a busy machine each takes long."""
_ASK_AT = 0.85
"""With so much of the limit used, the program is asked which lines allocated it."""


class Task(Record):
    """What a watcher is to do."""

    act: str
    roots: Sequence[str]
    """Folders of the user's own code."""
    stacks: str = ""
    """File for the stacks of all processes; empty: none."""
    clean: Callable[[bytes], bytes] = bytes
    """Takes secrets out of it: it has the commands of processes."""


class Watcher:
    """One program, one limit, on one socket."""

    def __init__(
        self,
        task: Task,
        meter: Meter,
        flag: Callable[[bool], object],
        inside: Inside | None = None,
    ) -> None:
        """`flag` says whether the program is stopped by us; `inside` hears what it tells itself."""
        self._task = task
        self._meter = meter
        self._flag = flag
        self._inside = inside
        self._spies = False
        self._pace = Pace(meter.limit)
        self._program = 0
        self._socket = -1
        self._peak = 0
        self._wait_s = 0.0
        self._growers = Growers()
        self._noted = 0
        self._asleep: set[int] = set()
        """Who was stopped before us, and is to stay so."""
        self._has_jobs = False
        """A shell goes on; one that sees its program stopped takes it for Ctrl-Z."""
        self._nearing: Nearing | None = None

    def run(self, socket: int) -> None:
        """Watch until the other end closes."""
        self._socket = socket
        words = os.read(socket, 4096).split()
        if not words:
            return
        self._program = int(words[0])
        run_soon()
        halt.be_ready()
        self._spies = can_spy()
        self._meter.begin(self._program, [os.getpid(), *map(int, words[1:])])
        if self._inside is not None:
            self._nearing = Nearing(self._inside, self._meter.members)
        poll = select.poll()
        poll.register(socket, select.POLLIN)
        for wake in self._meter.wakes:
            poll.register(wake, self._meter.wake_on)
        while True:
            ready = [fd for fd, _ in poll.poll(self._wait_s * 1000)]
            if socket in ready:
                break
            if self._look(ready):
                self._act()
                if self._task.act != SPARE or not self._meter.members():
                    os.read(socket, 1)  # until its end: who collects us looks for others, too
                    break

    def _look(self, ready: Sequence[int]) -> bool:
        """Tell whether the limit is reached."""
        for wake in ready:
            if self._meter.is_reached(wake):
                self._peak = max(self._peak, self._meter.limit)
                return True
        used = self._meter.used(self._pace.rate)
        self._peak = max(self._peak, used)
        now = time.monotonic()
        self._wait_s = self._pace.wait_s(used, now)
        if self._nearing is not None:
            self._wait_s = min(self._wait_s, self._nearing.look(now))
        if self._inside is not None and used > _ASK_AT * self._meter.limit:
            self._inside.ask_growth()
        if used >= self._meter.limit:
            return True
        if used > _NAMED_AT * self._meter.limit and used != self._noted:
            self._noted = used  # of one that does nothing there is nothing new to note
            self._growers.note(self._meter.members)
        if self._spies:  # who is frozen cannot tell where it is
            self._flag(True)
            self._meter.near()
            self._flag(False)
        return False

    def _act(self) -> None:
        began = time.monotonic()
        self._flag(True)
        if self._task.act != KILL:
            known = self._meter.known()
            self._asleep = halt.asleep(known)
            self._has_jobs = self._task.act == SPARE or halt.has_jobs(known)
        busy = self._ask(self._all()) if not self._spies else {}
        stopped = self._stop(self._meter.known())
        used = max(self._meter.used(0), self._peak)
        self._come_to_a_stop(stopped)
        self._meter.loosen(goes_on=True)  # nobody runs: only who reads their stacks needs pages
        if self._spies:
            busy = {pid: halt.stopped_busy(pid) for pid in stopped}
        grown = self._growers.among(stopped)
        seen = moment.look_at(stopped, busy, self._stacks_of, grown)
        if self._spies and self._inside is not None and not any(one.threads for one in seen):
            self._spies = False
            self._resume(stopped)
            self._ask(self._all())
            stopped = self._stop()
            seen = moment.look_at(stopped, busy, self._stacks_of, grown)
        is_python = any(one.threads for one in seen)
        if is_python and len(stopped) > 1 and not self._meter.wakes and not self._has_jobs:
            more_s = _CATCH_EACH_S * (len(stopped) - _FEW)  # to read them all took long
            until = max(began + _CATCH_S, time.monotonic() + more_s)
            seen = self._catch(seen, stopped, until)
            used = max(self._meter.used(0), used)
        stack_s = time.monotonic() - began
        found = moment.reached(
            self._meter.limit,
            used,
            seen,
            self._task.roots,
            ending=_ENDINGS.get(self._task.act, ""),
        )
        found["act"], found["stack_s"] = self._task.act, round(stack_s, 4)
        growth = self._inside.growth(stopped) if self._inside is not None else {}
        if growth:
            found["growth"] = _first(seen, growth)
        self._write(moment.page(found["text"], used, seen, growth))
        self._say({"reached": found})
        getattr(self, f"_{self._task.act}")(found["text"], stopped)

    def _stop(self, known: Iterable[int] = ()) -> list[int]:
        if self._has_jobs:
            halt.stop_first(self._program)
        return halt.stop(self._meter.members, known)

    def _resume(self, stopped: Iterable[int]) -> None:
        """Let go on who ran; a shell last, so that it finds its program running as it was."""
        awake = [pid for pid in stopped if pid not in self._asleep]
        halt.resume(sorted(awake, key=lambda pid: pid == self._program))

    def _come_to_a_stop(self, stopped: list[int]) -> None:
        """Wait for it, not long: who is frozen needs some room for it, and gets the least."""
        deadline = time.monotonic() + _HALT_S
        while time.monotonic() < deadline:
            self._meter.loosen(goes_on=self._task.act != KILL)
            if halt.wait_stopped(stopped, _THAW_S):
                break

    def _catch(self, seen: list[Seen], stopped: list[int], until: float) -> list[Seen]:
        """Where nobody takes memory any more, let all go on until somebody does, a few times.

        They went on between two looks: a worker may be between two rows by now.
        """
        taken = Taken(stopped)
        looks = 0
        while not moment.is_caught(seen, self._task.roots):
            looks += 1
            least = time.monotonic() + _CATCH_ONE_S if looks <= _CATCHES else 0.0
            one = self._next_grower(stopped, max(until, least))
            if one is not None:
                seen = [one if old.pid == one.pid else old for old in seen]
            is_late = time.monotonic() >= until and (one is None or looks >= _CATCHES)
            if is_late or taken.since_in_all() > self._meter.limit // _MORE:
                break
        return seen

    def _next_grower(self, stopped: list[int], until: float) -> Seen | None:
        """Let all go on for a moment; return who took memory in it, stopped there again."""
        taken = Taken(stopped)
        self._resume(stopped)
        pid = 0
        while not pid and time.monotonic() < until:
            time.sleep(_CATCH_LOOK_S)  # they need the processor that we would take
            pid = next((pid for pid in stopped if taken.since(pid) > _CATCH_BYTES), 0)
        busy = self._ask([pid]) if pid and not self._spies else {}
        stopped[:] = halt.stop(self._meter.members, stopped)
        if pid not in stopped:
            return None
        halt.wait_stopped([pid], _HALT_S)
        if self._spies:
            busy = {pid: halt.stopped_busy(pid)}
        return moment.look_at([pid], busy, self._stacks_of, [pid])[0]

    def _all(self) -> Iterator[int]:
        """Return the processes; those first that are known without a look."""
        known = self._meter.known()
        yield from known
        yield from (pid for pid in self._meter.members() if pid not in known)

    def _ask(self, pids: Iterable[int]) -> dict[int, set[int]]:
        """Have them write their stacks while they run, each as soon as can be; return who runs."""
        busy: dict[int, set[int]] = {}
        asked: dict[int, int] = {}
        for pid in pids:
            busy[pid] = halt.busy_threads(pid)
            if self._inside is not None:
                had = self._inside.told_bytes(pid)
                if self._inside.ask(pid):
                    asked[pid] = had
        if self._inside is not None:
            self._inside.await_stacks(asked, self._told)
        return busy

    def _told(self, pid: int) -> None:
        """Stop who wrote its stack, before it takes more; below a shell, that is stopped first."""
        if not self._has_jobs:
            halt.send(pid, _signal.SIGSTOP)

    def _stacks_of(self, pids: list[int]) -> dict[int, list[Thread] | LookError]:
        if self._spies or self._inside is None:
            found = dump_all(pids, limit_s=_LONGEST_S)
        else:
            found = {pid: _told_by(self._inside, pid) for pid in pids}
        return {
            pid: one if isinstance(one, LookError) else _theirs(one) for pid, one in found.items()
        }

    def _kill(self, _text: str, _stopped: list[int]) -> None:
        halt.kill(self._meter.members)

    def _spare(self, text: str, stopped: list[int]) -> None:
        """End all but the shell; if that has too much itself, it goes too."""
        halt.kill(lambda: [pid for pid in self._meter.members() if pid != self._program])
        if self._meter.used(0) >= self._meter.limit:
            self._kill(text, stopped)
            return
        self._flag(False)
        halt.resume([self._program])
        self._say({"say": f"{text}. {_ENDINGS[SPARE]}; the shell goes on"})

    def _lift(self, text: str, stopped: list[int]) -> None:
        self._go_on(stopped)
        self._say({"say": f"{_small(text)}; it goes on without the limit"})

    def _interrupt(self, text: str, stopped: list[int]) -> None:
        largest = max(stopped, key=bytes_of, default=self._program)
        for pid in {largest, self._program}:
            halt.send(pid, _signal.SIGINT)  # it finds it when it goes on, at the same line
        self._go_on(stopped)
        self._say({"say": f"{_small(text)}; interrupted there, it goes on without the limit"})

    def _pause(self, text: str, stopped: list[int]) -> None:
        """Leave them stopped until somebody continues one of them, or wants them to end."""
        self._meter.lift()  # who is frozen by the kernel is stopped as soon as it is not
        halt.wait_stopped(stopped, _STOPPED_S)  # a long call may go on
        pid = self._program
        look = f"Look: rl stacks {pid}; go on: kill -CONT {pid}; end: Ctrl-C"
        self._say({"say": f"{_small(text)}; paused there. {look}"})
        while not self._ended(_CONTINUED_MS):
            is_to_end = any(map(halt.wants_to_end, stopped))
            if is_to_end or not all(map(halt.is_stopped, stopped)):
                self._go_on(stopped)
                if not is_to_end:
                    self._say({"say": "it goes on, without the limit"})
                return

    def _go_on(self, stopped: list[int]) -> None:
        self._meter.lift()
        self._flag(False)
        self._resume(stopped)

    def _ended(self, wait_ms: int) -> bool:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(wait_ms))

    def _write(self, text: str) -> None:
        if not self._task.stacks:
            return
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC  # a shell's may come again
            fd = os.open(self._task.stacks, flags, 0o600)
            try:
                write_all(fd, self._task.clean(text.encode("utf-8", "replace")))
            finally:
                os.close(fd)
        except OSError:
            pass

    def _say(self, value: dict[str, Any]) -> None:
        write_all(self._socket, dumps(value).encode() + b"\n")


def _told_by(inside: Inside, pid: int) -> list[Thread] | LookError:
    try:
        return inside.stacks(pid)
    except LookError as error:
        return error


def _theirs(threads: list[Thread]) -> list[Thread]:
    return [one for one in threads if not (one.frames and one.frames[-1].file == OURS)]


def can_spy() -> bool:
    """Tell whether py-spy may read processes that are not below it: our parent is one.

    It is tried only where the kernel may forbid it: meanwhile nobody watches.
    """
    if is_free_to_spy():
        return True
    try:
        return "py-spy" not in left_out() and bool(dump(os.getppid()))
    except LookError:
        return False


def is_free_to_spy() -> bool:
    """Tell whether py-spy is there, and the kernel forbids nobody to look."""
    if "py-spy" in left_out():
        return False
    try:
        py_spy()
    except LookError:
        return False
    return os.geteuid() == 0 or read_if_there(_YAMA).strip() in ("", "0")


def _small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _first(seen: Sequence[Seen], growth: dict[int, Growth]) -> list[dict[str, Any]]:
    """Return the growth of the largest process that told any."""
    told = next((growth[one.pid] for one in seen if one.pid in growth), None)
    lines = told.lines if told is not None else ()
    return [{"at": f"{one.file}:{one.line}", "bytes": one.bytes} for one in lines]
