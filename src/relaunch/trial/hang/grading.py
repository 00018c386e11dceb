"""Whether a program hangs, from what its threads wait for. Pure.

A wait is certain to last forever when everybody who could end it waits forever too. So processes
are taken away until nothing changes: one with a thread that runs, has a time limit, or can be set
going from outside, and then one that waits for a process that was taken away. Whoever is left can
never go on: each of its threads waits only for others that are left. If that is the whole program,
the hang is certain. Any thread of a process counts as able to release all its locks, so that a lock
is never taken for lost while one thread of its process could still come to it.
"""

from __future__ import annotations

import os

from relaunch.look.waits import meaning
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from relaunch.look.stacks import Frame
    from relaunch.look.waits.meaning import Wait

CERTAIN, SUSPECT, WAITING = "certain", "suspect", "waiting"
BUSY, WORKS = 0.5, 0.02
"""Of a core: so much is spinning or computing, and so much is more than looking now and then."""
_CROWDED = 0.05
"""What one that spins gets at least, where many want to run."""


class Seen(Record):
    """One thread, over the time that it was looked at."""

    pid: int
    tid: int
    wait: Wait
    name: str = ""
    frames: tuple[Frame, ...] = ()
    """Of Python, innermost first; none: it runs no Python, or could not be read."""
    moved: bool = False
    """It ran meanwhile, if only for a moment."""
    is_ready: bool = False
    """It has a core, or waits for one."""
    cpu: float = 0.0
    """Share of a core."""
    same: bool = True
    """Whenever it was looked at, it was at the same lines, with the same values."""

    @property
    def is_main(self) -> bool:
        """The first thread of its process."""
        return self.pid == self.tid


class Finding(Record):
    """What is to be told of a program."""

    grade: str
    why: str
    """In words, without where it is."""
    stuck: tuple[Seen, ...] = ()
    """Whose stacks tell most, the most telling first."""
    on: str = ""
    """Of one that waits: for whom."""
    is_quiet: bool = False
    """Nothing needs to be said: a person is asked, and knows."""


def closed(waits: Mapping[tuple[int, int], Wait], awaiting: Mapping[int, str]) -> frozenset[int]:
    """Return the processes that can never go on.

    `waits` are those of all threads; `awaiting` names for a process a signal that could set it
    going.
    """
    left = {pid for pid, _ in waits}
    left -= {pid for (pid, _), wait in waits.items() if not wait.is_inside}
    left -= {pid for pid, signal in awaiting.items() if signal}
    while True:
        freed = {pid for (pid, _), wait in waits.items() if pid in left and not wait.by <= left}
        if not freed:
            return frozenset(left)
        left -= freed


def certain(seen: Sequence[Seen], awaiting: Mapping[int, str]) -> Finding | None:
    """Return what is to be told where the whole program can never go on."""
    waits = {(one.pid, one.tid): one.wait for one in seen}
    if not waits or closed(waits, awaiting) != {pid for pid, _ in waits}:
        return None
    limit = next((one.wait.limit for one in seen if one.frames and one.wait.limit), "")
    why = deadlock_words(seen) + (f", until a time limit {limit}" if limit else "")
    return Finding(grade=CERTAIN, why=why, stuck=telling(seen))


def after_silence(
    seen: Sequence[Seen], awaiting: Mapping[int, str], *, pythons: frozenset[int]
) -> Finding | None:
    """Say what a program does that was silent for long; None: it works.

    `pythons` are the processes whose stacks could be read.
    """
    if any(_works(one, pythons) for one in seen) or _changes(seen):
        return None
    spinning = [one for one in seen if _is_busy(one) and one.frames] or _spinning_below(seen)
    if spinning:
        why = "uses CPU and stays on the same line: it computes in C, spins, or waits for a GPU"
        return Finding(grade=SUSPECT, why=why, stuck=telling(spinning))
    dead = closed({(one.pid, one.tid): one.wait for one in seen}, awaiting)
    if dead == {one.pid for one in seen}:
        return None  # certain, as soon as that is proved
    if dead:
        part = [one for one in seen if one.pid in dead]
        count = f"process {min(dead)}" if len(dead) == 1 else f"{len(dead)} processes"
        why = f"{count} can never go on ({deadlock_words(part)}); the rest of the program can"
        return Finding(grade=SUSPECT, why=why, stuck=telling(part))
    locked = [one for one in seen if _is_locked_out(one) and not awaiting.get(one.pid)]
    if locked:
        why = "the main thread waits for a lock that was not released all the time"
        return Finding(grade=SUSPECT, why=why, stuck=telling(locked))
    return _outside(seen, awaiting) or _asleep(seen) or _stuck(seen, awaiting)


def _works(one: Seen, pythons: frozenset[int]) -> bool:
    """Tell whether a process that is no Python uses CPU: nobody knows what for."""
    return one.pid not in pythons and one.cpu >= WORKS


def _is_locked_out(one: Seen) -> bool:
    """Tell whether the main thread stands at a lock that only its own program can release."""
    return one.is_main and at_bare_lock(one) and not one.moved and not one.wait.outside


def _is_busy(one: Seen) -> bool:
    """Tell whether a thread runs all the time, as far as others let it."""
    return one.cpu >= BUSY or (one.cpu >= _CROWDED and one.wait.what == meaning.RUNS)


def are_on_their_way(seen: Sequence[Seen]) -> bool:
    """Tell whether a thread was met between two waits: for whom it waits is not known then.

    Where many want to run, one that only polls is met so for a good part of the time, and has no
    turn at all for some of it.
    """
    return any(
        one.wait.what == meaning.RUNS and (one.moved or one.is_ready) and not _is_busy(one)
        for one in seen
    )


def _changes(seen: Sequence[Seen]) -> bool:
    """Tell whether a thread of Python was at other lines, or had other values."""
    return any(one.frames and not one.same and one.moved for one in seen)


def _spinning_below(seen: Sequence[Seen]) -> list[Seen]:
    """Return the main threads of processes whose other threads, without Python, use CPU."""
    busy = {one.pid for one in seen if _is_busy(one)}
    return [one for one in seen if one.pid in busy and one.is_main]


_OUTSIDE = (meaning.TERMINAL, meaning.CONNECTIONS, meaning.SIGNAL, meaning.SOCKET, meaning.PIPE,
            meaning.FILE_LOCK, meaning.CHANGES, meaning.LOCK, meaning.EVENT, meaning.CHILD,
            meaning.STOPPED, meaning.DEVICE)  # fmt: skip
"""What somebody outside may be waited for by, what says most first."""


def _outside(seen: Sequence[Seen], awaiting: Mapping[int, str]) -> Finding | None:
    found = [one for one in seen if one.wait.outside and one.wait.what in _OUTSIDE]
    if found:
        found.sort(key=lambda one: (_OUTSIDE.index(one.wait.what), not one.is_main))
        first = found[0].wait
        quiet = first.what == meaning.TERMINAL
        return Finding(
            grade=WAITING, why="it waits", on=first.outside, stuck=telling(found), is_quiet=quiet
        )
    signal = next((name for name in awaiting.values() if name), "")
    if signal and not any(one.wait.is_timed or one.wait.outside for one in seen):
        return Finding(grade=WAITING, why="it waits", on=signal, stuck=telling(seen))
    return None


def _asleep(seen: Sequence[Seen]) -> Finding | None:
    """Return who sleeps, or waits with a time limit, and did so all the time."""
    found = [one for one in seen if one.wait.is_timed and not one.moved]
    if not found:
        return None
    first = next((one.wait for one in found if one.wait.what == meaning.SLEEP), found[0].wait)
    on = "the end of a sleep" if first.what == meaning.SLEEP else "a time limit"
    on = f"{on} {first.limit}".rstrip()
    return Finding(grade=WAITING, why="it waits", on=on, stuck=telling(found))


def _stuck(seen: Sequence[Seen], awaiting: Mapping[int, str]) -> Finding:
    """Say what is suspicious about the rest."""
    files = [one for one in seen if one.wait.what == meaning.FILE]
    if files:
        why = f"waits for {files[0].wait.outside}"
        return Finding(grade=SUSPECT, why=why, stuck=telling(files))
    if any(one.wait.what == meaning.GPU for one in seen):
        why = "does nothing, or waits for the GPU"
        return Finding(grade=SUSPECT, why=why, stuck=telling(seen))
    if any(one.moved for one in seen):
        why = "looks again and again, and nothing changes"
        return Finding(grade=SUSPECT, why=why, stuck=telling([o for o in seen if o.moved]))
    unknown = [one.wait.outside for one in seen if one.wait.outside]
    why = f"does nothing ({unknown[0]})" if unknown else "does nothing"
    return Finding(grade=SUSPECT, why=why, stuck=telling(seen))


# --- words


_LOCKING = frozenset(("threading.py", "queue.py", "queues.py", "synchronize.py", "connection.py",
                      "selectors.py", "_base.py", "thread.py", "subprocess.py", "popen_fork.py",
                      "base_events.py", "socket.py", "ssl.py", "process.py"))  # fmt: skip


def at_bare_lock(one: Seen) -> bool:
    """Tell whether a thread is at `with lock:` itself, and not at what is made of locks.

    A lock is held for moments; an event, a queue or the end of a thread is waited for.
    """
    if one.wait.what != meaning.LOCK or one.wait.is_timed or not one.frames:
        return False
    return not _is_library(one.frames[0].file)


def deadlock_words(seen: Sequence[Seen]) -> str:
    """Say who waits for what."""
    pids = {one.pid for one in seen}
    python = [one for one in seen if one.frames]
    locked = [one for one in python if at_bare_lock(one)]
    if len(pids) > 1:
        return f"{len(pids)} processes wait for each other{_ways(seen)}"
    if len(locked) > 1 and len(locked) >= len(python) - 1:
        return f"{len(locked)} threads wait for each other's locks"
    if len(python) > 1 or (not python and len(seen) > 1):
        return f"{len(python) or len(seen)} threads wait for each other{_ways(seen)}"
    if python and _is_event_loop(python[0]):
        return "the event loop waits, and nothing is left that could wake it"
    return f"its only thread waits {way(python[0] if python else seen[0])}, and nobody else is left"


def _ways(seen: Sequence[Seen]) -> str:
    """Name in what they wait, those of Python first: ` (Process.join, Queue.get)`."""
    python = [one for one in telling(seen) if one.frames]
    found = list(dict.fromkeys(way(one) for one in python or seen))[:3]
    return f" ({', '.join(one.removeprefix('in ').removeprefix('for ') for one in found)})"


def way(one: Seen) -> str:
    """Say how a thread waits: in which call of a library, or for what."""
    at = next((n for n, frame in enumerate(one.frames) if not _is_library(frame.file)), 0)
    called = [frame.function for frame in one.frames[:at] if not frame.function.endswith("wrapper")]
    if called and not called[-1].startswith("<"):
        return f"in {called[-1]}"
    return f"for {_thing(one.wait)}"


def _is_event_loop(one: Seen) -> bool:
    return any("/asyncio/" in frame.file for frame in one.frames) and (
        one.frames[0].file.endswith("/selectors.py")
    )


def _thing(wait: Wait) -> str:
    names = {
        meaning.LOCK: "a lock", meaning.PIPE: "a pipe", meaning.EVENT: "an event",
        meaning.SOCKET: "a socket", meaning.CHILD: "a child", meaning.FILE_LOCK: wait.over,
    }  # fmt: skip
    return names.get(wait.what, wait.what)


def own_part(frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
    """Leave out of a forked worker's stack where its parent was when it was forked."""
    for at, frame in enumerate(frames):
        if frame.function.endswith("_bootstrap") and "/multiprocessing/" in frame.file:
            return frames[: at + 1]
    return frames


def telling(seen: Sequence[Seen]) -> tuple[Seen, ...]:
    """Order threads by what their stacks tell: those of Python that use CPU, stand at bare locks.

    Who waits only for other processes, as for its children, comes last.
    """

    def rank(one: Seen) -> tuple[bool, bool, bool, bool, bool, int, int]:
        own = any(not _is_library(frame.file) for frame in one.frames)
        others = one.pid not in one.wait.by
        return (
            not one.frames, one.cpu < BUSY, not own, not at_bare_lock(one), others, one.pid, one.tid
        )  # fmt: skip

    return tuple(sorted(seen, key=rank))


def _is_library(file: str) -> bool:
    return (
        "/lib/python3" in file
        or "-packages/" in file
        or os.path.basename(file) in _LOCKING
        or file.startswith("<frozen")
    )
