"""What the kernel says of a process: its state, and what each of its threads does right now.

Read before anybody stops the process: being stopped changes what it says.
"""

from __future__ import annotations

import os
import socket

from relaunch.look.stacks.frames import ProcessStacks, Thread
from relaunch.look.stacks.who import environment, is_python, rank_of, world_of
from relaunch.look.usage import PROC, command, stat_of
from relaunch.proc.ptrace.numbers import numbers
from relaunch.proc.status import inner_id, under_way
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

STATES = {
    "R": "running",
    "S": "sleeping",
    "D": "blocked in the kernel",
    "T": "stopped",
    "t": "stopped by a debugger",
    "Z": "ended",
    "X": "ended",
    "I": "idle",
}
_OF_A_FILE = frozenset((
    "read", "write", "pread64", "pwrite64", "readv", "writev", "recvfrom", "recvmsg", "sendto",
    "sendmsg", "accept", "accept4", "connect", "fsync", "fdatasync", "flock", "fcntl", "ioctl",
))  # fmt: skip
"""Calls whose first argument is an open file."""
_names = {number: name for name, number in numbers().items()}


def seen(pid: int) -> ProcessStacks:
    """Return a process without stacks: who it is, and what its threads do; LookupError if gone."""
    stat = stat_of(pid)
    if stat is None:
        raise LookupError(pid)
    env = environment(pid)
    rank, rank_from, size = rank_of(env)
    return ProcessStacks(
        pid=pid,
        node=socket.gethostname(),
        command=" ".join(command(pid)) or stat.name,
        parent=stat.parent,
        state=stat.state,
        rank=rank,
        rank_from=rank_from,
        world=world_of(env),
        world_size=size,
        is_python=is_python(pid) if stat.state not in "ZX" else stat.name.startswith("python"),
        threads=tuple(threads(pid)) if stat.state not in "ZX" else (),
    )


def threads(pid: int) -> list[Thread]:
    """Return the threads of a process by what they do, the first one first; none when it is gone.

    A thread's name is what the kernel calls it, where it has one of its own.
    """
    try:
        ids = sorted(map(int, os.listdir(f"{PROC}/{pid}/task")), key=lambda tid: (tid != pid, tid))
    except OSError:
        return []
    process = _comm(pid, pid)
    found = []
    for tid in ids:
        name = _comm(pid, tid)
        name = "" if name == process else name
        found.append(Thread(id=tid, name=name, frames=(), doing=doing(pid, tid)))
    return found


def doing(pid: int, tid: int) -> str:
    """Say what a thread does: `running`, `futex`, `read 0 pipe`; its state where it is secret."""
    call = under_way(tid)
    if call:
        return call_words(call, lambda fd: _file(pid, fd))
    stat = stat_of(tid)
    if stat is None:
        return ""
    state = STATES.get(stat.state, stat.state)
    place = read_if_there(f"{PROC}/{pid}/task/{tid}/wchan").strip()
    return f"{state}: {place}" if place not in ("", "0") else state


def call_words(call: Sequence[int], file_of: Callable[[int], str]) -> str:
    """Say in words what /proc/TID/syscall says in numbers."""
    name = _names.get(call[0], f"call {call[0]}")
    if name == "restart_syscall":  # it was stopped meanwhile: which call it was is gone
        return "waiting"
    if name not in _OF_A_FILE:
        return name
    return f"{name} {call[1]} {file_of(call[1])}".rstrip()


def _file(pid: int, fd: int) -> str:
    """Say what an open file is: `pipe`, `socket`, or its path."""
    try:
        path = os.readlink(f"{PROC}/{pid}/fd/{fd}")
    except OSError:
        return ""
    kind, colon, _ = path.partition(":[")
    return kind if colon else path.removeprefix("anon_inode:").strip("[]")


def _comm(pid: int, tid: int) -> str:
    return read_if_there(f"{PROC}/{pid}/task/{tid}/comm").rstrip("\n")


def is_blocked(pid: int) -> bool:
    """Tell whether a thread hangs in the kernel: who stops the process would wait for it."""
    try:
        ids = os.listdir(f"{PROC}/{pid}/task")
    except OSError:
        return False
    stats = [stat_of(int(tid)) for tid in ids]
    return any(stat is not None and stat.state == "D" for stat in stats)


def outer_ids(pid: int) -> Mapping[int, int]:
    """Map the threads of a process in another pid namespace from their numbers there to ours."""
    try:
        ids = [*map(int, os.listdir(f"{PROC}/{pid}/task"))]
    except OSError:
        return {}
    return {inner: tid for tid in ids if (inner := inner_id(tid)) != tid}
