"""Reads the stacks of many processes at once, each in the best way that works for it.

py-spy, which stops a process for a moment; py-spy without stopping it, which also reads one that is
stopped or hangs in the kernel; pystack, where it is installed; the program's own faulthandler; and
at last what the kernel says. Every way has a time limit, and what did not work is told.
"""

from __future__ import annotations

import os
import time

from relaunch.look.stacks import pyspy, pystack
from relaunch.look.stacks.frames import MAIN, LookError, ProcessStacks, Thread
from relaunch.look.stacks.kernel import is_blocked, outer_ids, seen
from relaunch.look.stacks.permission import facts, refusal
from relaunch.look.stacks.signalled import Question
from relaunch.look.usage import owner, stat_of
from relaunch.proc.several import TIMED_OUT, Command, drive
from relaunch.proc.status import tracer_of
from relaunch.proc.tree import send
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Generator, Iterable, Sequence

    from relaunch.proc.capture import Captured

    Climb = Generator[Command | float, Captured | None, ProcessStacks]
else:
    import _signal

PY_SPY, FLOWING, PYSTACK = "py-spy", "py-spy --nonblocking", "pystack"
FAULTHANDLER, KERNEL = "faulthandler", "/proc"
_REFUSED = "permission denied"
_NO_PYSTACK = "pystack is not installed"
_NATIVE_S = 30.0
"""To read the symbols of large libraries takes its time."""
_TRIES = 3
"""A process that runs on while it is read may be read in the middle of a change."""
_ANSWER_S, _LOOK_S = 0.5, 0.01


class Asked(Record):
    """What is wanted of each process."""

    values: bool = False
    """The variables of its frames too."""
    native: bool = False
    """The frames of C and C++ too."""
    pause: bool = True
    """Stop it for the moment it is read; else it is read while it runs."""
    signal: int = 0
    """The user's own signal that makes it tell its stacks."""
    limit_s: float = 5.0
    without: frozenset[str] = frozenset()
    """Ways that are not to be taken."""


class Way(Record):
    """One way to read a process: what to run, and how to read what that says."""

    name: str
    command: Callable[..., list[str]]
    read: Callable[[str], list[Thread]]
    reason: Callable[[bytes], str]
    pause: bool = False
    native: bool = False


def look(pids: Iterable[int], asked: Asked, *, at_once: int = 0) -> list[ProcessStacks]:
    """Read processes, several at once; who ended meanwhile is not in what is returned."""
    found = []
    for pid in pids:  # all of them before the first is stopped
        try:
            found.append(seen(pid))
        except LookupError:
            continue
    at_once = at_once or max(8, 2 * (os.cpu_count() or 1))
    return drive([climb(one, asked) for one in found], at_once=at_once)


def ways(asked: Asked, *, can_stop: bool) -> list[Way]:
    """List what is to be tried, best first; only a process that is stopped tells of its C code."""
    spy = Way(name=PY_SPY, command=pyspy.command, read=pyspy.read_threads, reason=pyspy.reason)
    stack = Way(name=PYSTACK, command=pystack.command, read=pystack.read_threads,
                reason=pystack.reason)  # fmt: skip
    pause = can_stop and asked.pause
    found = []
    if asked.native:
        found += [spy.but(native=True, pause=True)] if pause else []
        found.append(stack.but(native=True, pause=pause))
    found += [spy.but(pause=True)] if pause else []
    found += [spy.but(name=FLOWING), stack.but(pause=pause)]
    return [way for way in found if asked.without.isdisjoint((way.name, way.name.split()[0]))]


def climb(one: ProcessStacks, asked: Asked) -> Climb:
    """Try one way after the other on a process, and return what the first that works says."""
    if one.has_ended:
        ended = f"it has ended; process {one.parent} has not collected it"
        return one.but(problem=ended, read_by="")
    if not one.is_python:
        return one.but(read_by=KERNEL)
    if owner(one.pid) != os.geteuid() and facts(one.pid).is_anothers:
        return _by_kernel(one, [], is_refused=True)
    why: list[str] = []
    is_refused = False
    can_stop = not one.is_stopped and not is_blocked(one.pid) and not tracer_of(one.pid)
    for way in ways(asked, can_stop=can_stop):
        threads, said = yield from _try(one, way, asked)
        if threads:
            lost = "no native frames: " + "; ".join(why) if asked.native and not way.native else ""
            return _read(one, way.name, threads).but(problem=lost)
        if stat_of(one.pid) is None:
            return one.but(threads=(), problem="it ended meanwhile")
        why += [said] if said not in why else []
        if said == _REFUSED:
            is_refused = True
            break
    if FAULTHANDLER not in asked.without and not one.is_stopped:
        threads, said = yield from _ask_itself(one.pid, asked.signal)
        if threads:
            return _read(one, FAULTHANDLER, threads)
        why += [said] if said and asked.signal else []
    return _by_kernel(one, why, is_refused=is_refused)


def _try(
    one: ProcessStacks, way: Way, asked: Asked
) -> Generator[Command | float, Captured | None, tuple[list[Thread], str]]:
    """Return the threads, or why there are none."""
    try:
        argv = way.command(one.pid, pause=way.pause, values=asked.values, native=way.native)
    except LookError as error:
        return [], error.message
    limit_s = max(asked.limit_s, _NATIVE_S) if way.native else asked.limit_s
    said = ""
    for _ in range(1 if way.pause else _TRIES):
        is_done = False
        try:
            done = yield Command(argv=argv, limit_s=limit_s)
            is_done = True
        finally:
            if way.pause and not (is_done and done is not None and done.code < TIMED_OUT):
                _let_go(one)
        assert done is not None  # a command was run
        if done.code == TIMED_OUT:
            return [], f"{way.name} took over {limit_s:g} s"
        try:
            threads = way.read(done.text) if done.code == 0 else []
        except (ValueError, KeyError, TypeError):
            threads = []
        if threads:
            return threads, ""
        said = way.reason(done.err)
        if said == _REFUSED:
            break
    return [], said if said == _REFUSED else f"{way.name}: {said}"


def _let_go(one: ProcessStacks) -> None:
    """Let a process go on that was stopped by who was ended meanwhile.

    Also where it does not look stopped: the signal may still be on its way, and this one ends that.
    """
    if not one.is_stopped:
        send(one.pid, _signal.SIGCONT)


def _ask_itself(
    pid: int, signal: int
) -> Generator[Command | float, Captured | None, tuple[list[Thread], str]]:
    try:
        question = Question(pid, signal)
    except LookError as error:
        return [], error.message
    question.ask()
    until = time.monotonic() + _ANSWER_S
    while time.monotonic() < until:
        yield _LOOK_S
        threads = question.answer()
        if threads:
            return threads, ""
    return [], f"asked by signal {signal}, it told nothing in a file" if signal else ""


def _read(one: ProcessStacks, by: str, threads: Sequence[Thread]) -> ProcessStacks:
    """Join what a way has read with what the kernel said before: by the numbers of threads."""
    before = {thread.id: thread for thread in one.threads}
    outer = outer_ids(one.pid) if any(t.id and t.id not in before for t in threads) else {}
    found = []
    for thread in threads:
        tid = outer.get(thread.id, thread.id)
        known = before.get(tid)
        name = thread.name or (MAIN if tid == one.pid else known.name if known else "")
        doing = known.doing if known else ""
        found.append(thread.but(id=tid, name=name, doing=doing))
    return one.but(threads=tuple(found), read_by=by)


def _by_kernel(one: ProcessStacks, why: list[str], *, is_refused: bool) -> ProcessStacks:
    """Return what the kernel says, with why that is all, and what would give more."""
    fix = ""
    why = [said for said in why if said != _NO_PYSTACK] or why  # it is a luxury
    if is_refused:
        reason, fix = refusal(facts(one.pid))
        why = [reason, *(said for said in why if said != _REFUSED)]
    elif missing := [said.partition(" is not installed")[0] for said in why if "installed" in said]:
        fix = f"pip install {missing[0]}"
    return one.but(read_by=KERNEL, problem="; ".join(why) or "no way to read it worked", fix=fix)
