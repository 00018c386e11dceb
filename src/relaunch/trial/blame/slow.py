"""What a program waits on: calls that took long, with the path or peer and the Python line."""

from __future__ import annotations

import os
import time

from relaunch.inside.protocol import BLAME
from relaunch.jsontext import dumps, loads
from relaunch.look.files import command_of
from relaunch.look.stacks import Frame
from relaunch.proc.ptrace.policy import GO, TELL, Policy
from relaunch.proc.ptrace.traced import Traced
from relaunch.proc.ptrace.tracer import HANDLER_DONE
from relaunch.record import Record
from relaunch.trial.blame.calls import subject_of
from relaunch.trial.blame.hits import name_of
from relaunch.trial.blame.ladder import FILE
from relaunch.trial.blame.tracing import Stacks, stack_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from relaunch.proc.ptrace.policy import Call

_MOST = 5_000


class Wait(Record):
    """Calls of one kind, on one thing, from one line, that took long."""

    call: str
    subject: str
    """A path, an address, or what the open file is."""
    total_s: float
    longest_s: float
    count: int = 1
    pid: int = 0
    tid: int = 0
    command: str = ""
    error: str = ""
    """How the last one failed, if it did."""
    open_end: bool = False
    """It was still waited for when the trace ended."""
    frames: tuple[Frame, ...] = ()
    whose: str = ""
    """As a hit has it."""


class Slow(Policy):
    """Notes each wanted call that takes long."""

    def __init__(self, names: Iterable[str], slow_s: float, file: int) -> None:
        """Want these calls."""
        self.calls = (*names, HANDLER_DONE)
        self._slow_s = slow_s
        self._stacks = Stacks(self, file)
        self._waits: list[Wait] = []
        self._under_way: dict[int, Call] = {}

    def entered(self, call: Call) -> int:
        """Let it be made, and hear of its end."""
        if call.name == HANDLER_DONE:
            return GO
        self._under_way[call.tid] = call
        return TELL

    def left(self, call: Call, result: int) -> None:
        """Note one that took long."""
        self._under_way.pop(call.tid, None)
        took = time.monotonic() - call.began
        if took >= self._slow_s and len(self._waits) < _MOST:
            self._note(call, took, name_of(-result) if -512 < result < 0 else "")

    def _note(self, call: Call, took: float, error: str, *, open_end: bool = False) -> None:
        subject = subject_of(call)
        frames, whose = self._stacks.of(call.pid, call.tid, sure=True)
        self._waits.append(
            Wait(call=call.name, subject=subject, total_s=took, longest_s=took, pid=call.pid,
                 tid=call.tid, command=command_of(call.pid), error=error, open_end=open_end,
                 frames=frames, whose=whose)
        )  # fmt: skip

    def ending(self) -> None:
        """Note what is still waited for, while the threads are there to be looked at."""
        for call in self._under_way.values():
            took = time.monotonic() - call.began
            if took >= self._slow_s:
                self._note(call, took, "", open_end=True)
        self._under_way.clear()

    def said(self) -> bytes:
        """Say all of it, as JSON."""
        waits = [wait_json(one) for one in joined(self._waits)]
        return dumps({"waits": waits}).encode("utf-8", "surrogateescape")


def joined(waits: Sequence[Wait]) -> list[Wait]:
    """Make one of the calls that differ in their time alone; those that took most come first."""
    groups: dict[tuple[object, ...], Wait] = {}
    for one in waits:
        lines = tuple((frame.file, frame.line) for frame in one.frames[:1])
        key = (one.call, one.subject, one.pid, lines, one.open_end)
        if before := groups.get(key):
            one = one.but(
                total_s=one.total_s + before.total_s,
                longest_s=max(one.longest_s, before.longest_s),
                count=one.count + before.count,
            )
        groups[key] = one
    return sorted(groups.values(), key=lambda one: -one.total_s)


def wait_json(wait: Wait) -> dict[str, Any]:
    """Return it as the trial keeps it."""
    fields = {name: getattr(wait, name) for name in Wait._fields if name != "frames"}
    return {**fields, "frames": [[one.file, one.line, one.function] for one in wait.frames]}


def wait_of(kept: Mapping[str, Any]) -> Wait:
    """Read it back."""
    frames = tuple(Frame(file=f, line=int(n), function=c) for f, n, c in kept["frames"])
    return Wait(**{**kept, "frames": frames})


class Waiting(Traced):
    """Watches for slow calls beside the program, and leaves what it saw in the trial."""

    def __init__(
        self,
        folder: str,
        names: Iterable[str],
        slow_s: float,
        *,
        say: Callable[[str], object],
        let_live: bool = False,
    ) -> None:
        """Prepare nothing yet."""
        self._folder = folder
        self._names = tuple(names)
        self._slow_s = slow_s
        self._say = say
        self._stack_file = stack_file()
        policy = Slow(self._names, slow_s, self._stack_file)
        super().__init__(policy, let_live=let_live, silent_file=self._stack_file)

    def prepare(self) -> Mapping[str, str]:
        """Begin, and say so."""
        super().prepare()
        some = ", ".join(self._names[:4]) + (", ..." if len(self._names) > 4 else "")
        self._say(f"calls that take over {self._slow_s * 1000:g} ms, by tracer: {some}")
        return {BLAME: f"#{self._stack_file}"}

    def ended(self) -> None:
        """Keep what was seen."""
        super().ended()
        if not self._folder or not self.said:
            return
        told = loads(self.said.decode("utf-8", "surrogateescape"))
        path = os.path.join(self._folder, FILE)
        try:
            with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(dumps({"by": "tracer", "slow_s": self._slow_s, "seen": True, **told}))
        except OSError:
            self._say("what took long could not be kept: the journal cannot be written")
