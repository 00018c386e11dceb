"""The moment a limit is reached: who had how much, and where each of them was."""

from __future__ import annotations

import os

from relaunch.bytewords import in_words
from relaunch.look.stacks import LookError, chain, functions, is_own, since_fork
from relaunch.record import Record
from relaunch.trial.place.memory.meter import bytes_of, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import Any

    from relaunch.look.stacks import Thread

_FRAMES = 60


class Seen(Record):
    """One process at the limit."""

    pid: int
    command: str
    bytes: int
    threads: Sequence[Thread] = ()
    busy: frozenset[int] = frozenset()
    """Its threads that were running right before."""
    grew: bool = True
    """It took pages right before, as far as that is known."""
    unseen: str = ""
    """Why there are no stacks of it."""


class Line(Record):
    """A line, and what is left of all it allocated."""

    file: str
    line: int
    bytes: int
    count: int


class Growth(Record):
    """What a process allocated since its start."""

    bytes: int
    """All of it, at the moment it was told: that is some time before the limit."""
    lines: tuple[Line, ...]


def look_at(
    pids: Iterable[int],
    busy: Mapping[int, set[int]],
    ask: Callable[[list[int]], Mapping[int, list[Thread] | LookError]],
    grown: Collection[int],
) -> list[Seen]:
    """Return the processes, those with the most memory first, and where they are."""
    sizes = {pid: bytes_of(pid) for pid in pids}
    ordered = sorted(sizes, key=lambda pid: (sizes[pid], pid), reverse=True)
    stacks = ask(ordered)
    found = []
    for pid in ordered:
        told = stacks[pid]
        one = Seen(
            pid=pid,
            command=command(pid),
            bytes=sizes[pid],
            threads=() if isinstance(told, LookError) else told,
            busy=frozenset(busy.get(pid, ())),
            grew=pid in grown,
            unseen=told.message if isinstance(told, LookError) else "",
        )
        found.append(one)
    return found


def command(pid: int) -> str:
    """Return the command line of a process."""
    words = read(f"/proc/{pid}/cmdline").rstrip(b"\0").split(b"\0")
    return os.fsdecode(b" ".join(words))


# --- what is told of it


def culprit(seen: Sequence[Seen], roots: Sequence[str]) -> tuple[Seen, Thread] | None:
    """Choose the thread that took the memory: it ran, and its process grew, in code of the user.

    A forked worker that only runs a library, as a loader between two rows, has nothing of the user
    but the line that forked it. Threads of libraries alone are named only where none runs code of
    the user.
    """

    def likely(one: Seen, thread: Thread) -> tuple[int, ...]:
        ran, own = _ran(one, thread), is_own(thread.frames, roots)
        return (
            _is_caught(one, thread, roots), one.grew and _is_here(thread, roots), ran and own,
            own and one.grew, own, ran, one.bytes, thread.has_gil, -thread.id,
        )  # fmt: skip

    found = [(one, thread) for one in seen for thread in one.threads if thread.frames]
    return max(found, key=lambda pair: likely(*pair), default=None)


def is_caught(seen: Sequence[Seen], roots: Sequence[str]) -> bool:
    """Tell whether somebody was met while it took memory, in code of the user if there is any."""
    found = [(one, thread) for one in seen for thread in one.threads]
    if any(is_own(thread.frames, roots) for _, thread in found):
        return any(_is_caught(one, thread, roots) for one, thread in found)
    return any(one.grew and _ran(one, thread) for one, thread in found)


def _is_caught(one: Seen, thread: Thread, roots: Sequence[str]) -> bool:
    return one.grew and _ran(one, thread) and _is_here(thread, roots)


def _ran(one: Seen, thread: Thread) -> bool:
    """Tell whether a thread ran; one that wrote its own stack without its number is the first."""
    return (thread.id or (one.pid if thread.has_gil else 0)) in one.busy


def _is_here(thread: Thread, roots: Sequence[str]) -> bool:
    return is_own(since_fork(thread.frames), roots)


def reached(
    limit: int, used: int, seen: Sequence[Seen], roots: Sequence[str], *, ending: str
) -> dict[str, Any]:
    """Return what `Outcome.reached` says; without an `ending` it is no failure: no title."""
    found = culprit(seen, roots)
    where = ""
    key: tuple[str, ...] = ("memory",)
    if found:
        one, thread = found
        where = chain(thread.frames, roots)
        key = functions(thread.frames, roots)[:3]
        if len(seen) > 1:
            where += f" (process {one.pid} of {len(seen)})"
    head = f"Reached {in_words(limit)}" + (f" at {where}" if where else "")
    if not found and any(one.threads for one in seen):
        head += " while no Python function ran"  # it began or ended
    is_there = found is not None and is_own(found[1].frames, roots)
    if limit < _INTERPRETER and not is_there and any(map(_is_python, seen)):
        where = ""
        head = f"Reached {in_words(limit)} before a line of yours ran: Python alone needs more"
    elif limit <= _BARE and is_there:  # a watcher may look a moment later than that
        head += ": Python alone needs more"
    return {
        "what": "memory",
        "title": f"{head}. {ending}" if ending else "",
        "text": head,
        "key": list(key),
        "limit_bytes": limit,
        "bytes": used,
        "by": "relaunch",
        "at": where,
        "processes": [{"pid": p.pid, "command": p.command, "bytes": p.bytes} for p in seen],
    }


_INTERPRETER, _BARE = 24 << 20, 2 << 20
"""What Python may have before a program's first line, and what it has at the very least."""


def _is_python(one: Seen) -> bool:
    return "python" in one.command.split(" ", 1)[0]


def page(text: str, used: int, seen: Sequence[Seen], growth: Mapping[int, Growth]) -> str:
    """Write it all down, for a person."""
    lines = [text, f"{len(seen)} processes had {in_words(used)} together" if len(seen) > 1 else ""]
    for one in seen:
        lines += ["", f"process {one.pid}   {in_words(one.bytes)}   {one.command}"]
        lines += [f"  no stack: {one.unseen}"] if one.unseen else []
        for thread in sorted(one.threads, key=lambda t: (t.id not in one.busy, t.id)):
            is_busy = ", running" if thread.id in one.busy else ""
            gil = ", has the GIL" if thread.has_gil else ""
            lines.append(f"  thread {thread.name or thread.id}{is_busy}{gil}")
            lines += [f"    {f.file}:{f.line} {f.function}" for f in thread.frames[:_FRAMES]]
        if one.pid in growth:
            found = growth[one.pid]
            seen_at = in_words(found.bytes)
            lines.append(f"  most memory allocated since the start by line, seen at {seen_at}")
            lines += [
                f"    {in_words(g.bytes):>8}   {g.file}:{g.line}   ({g.count:,} blocks)"
                for g in found.lines
            ]
    return "\n".join(line for n, line in enumerate(lines) if line or n != 1) + "\n"
