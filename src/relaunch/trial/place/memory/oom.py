"""Did the kernel end it for lack of memory? Asked only after a SIGKILL that was not ours.

The kernel's log is certain, where it may be read. Without it, the count of such kills in our own
memory group is all there is, and that makes it likely, not certain.
"""

from __future__ import annotations

import os
import re

from relaunch.bytewords import in_words
from relaunch.proc.left_out import left_out
from relaunch.record import Record
from relaunch.trial.place.memory import groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from relaunch.trial.place.memory.since import Since

_UNLIMITED = 1 << 60
_KILLED = re.compile(
    r"(?P<group>Memory cgroup o|O)ut of memory.*?: Killed process (?P<pid>\d+) \((?P<name>.*)\)"
    r".*?anon-rss:(?P<anon>\d+)kB(?:.*?shmem-rss:(?P<shmem>\d+)kB)?"
)

_SAYS_KILLED = re.compile(r"\bkilled\b|SIGKILL|\bsignal:? 9\b|(?<!\w)-9\b|\b137\b", re.IGNORECASE)
"""Words of shells, multiprocessing, DataLoader and torchrun."""
LOG = "kmsg"
"""The kernel's log as a rung, to pretend that it cannot be read."""


class Kill(Record):
    """One process that the kernel ended for lack of memory."""

    pid: int
    name: str
    bytes: int
    in_group: bool
    """A limit of a group was reached, not the end of the machine's memory."""


def read_log(records: Iterable[str]) -> list[Kill]:
    """Read the records of /dev/kmsg: `level,number,microseconds,...;text`."""
    found = []
    for record in records:
        match = _KILLED.search(record.partition(";")[2])
        if match:
            kib = int(match["anon"]) + int(match["shmem"] or 0)
            kill = Kill(
                pid=int(match["pid"]),
                name=match["name"],
                bytes=kib << 10,
                in_group=match["group"].startswith("Memory"),
            )
            found.append(kill)
    return found


def killed_by_kernel(since: Since, pid: int, text: str) -> dict[str, Any]:
    """Return what `Outcome.reached` says of a kill `since` it began; nothing if there was none.

    `pid` was the program, 0 when that was not killed itself; `text` is the end of its output, which
    names other processes of its tree that were.
    """
    limit = container_limit()
    records = () if LOG in left_out() else since.records()
    kills = [one for one in read_log(records) if one.pid == pid or is_told_killed(text, one.pid)]
    if kills:
        last = kills[-1]
        where = f"the limit of the container, {in_words(limit)}" if limit else "a group's limit"
        what = where if last.in_group else "the end of the machine's memory"
        said = f"Killed by the kernel at {what}: {last.name} (pid {last.pid})"
        said += f" had {in_words(last.bytes)}"
        return _reached(said, limit, last.bytes, pid=last.pid, titled=bool(pid))
    count = since.kills_in_group()
    if pid and count > 0:
        at = f", whose limit is {in_words(limit)}" if limit else ""
        times = "once" if count == 1 else f"{count} times"
        said = f"Killed probably by the kernel for lack of memory: it did so {times} in this group"
        return _reached(said + at, limit, 0, pid=pid, titled=True)
    return {}


def is_told_killed(text: str, pid: int) -> bool:
    """Tell whether a line says of a process that it was killed; its number alone says nothing."""
    lines = re.findall(rf"^.*\b{pid}\b.*$", text, re.MULTILINE)
    return any(_SAYS_KILLED.search(line) for line in lines)


def container_limit() -> int:
    """Return the least limit of the groups around us; 0 where there is none."""
    return min((limit for _, limit in limits_around()), default=0)


def room() -> int:
    """Return how much more the groups around us allow; 0 where they have no limit."""
    return min((max(1, room_of(folder, limit)) for folder, limit in limits_around()), default=0)


def room_of(folder: str, limit: int, enough: int = 0) -> int:
    """Return how much more one group allows: pages of files are given back.

    They are not counted where there is `enough` without them.
    """
    used = max(groups.number(folder, name) for name in _USED)
    if enough and limit - used >= enough:
        return limit - used
    prefix = "total_" if used_by_v1(folder) else ""
    files = (
        groups.number(folder, "memory.stat", prefix + name)
        for name in ("inactive_file", "active_file")
    )
    return limit - used + sum(max(0, count) for count in files)


_USED = ("memory.usage_in_bytes", "memory.current")
_LIMIT = ("memory.limit_in_bytes", "memory.max")


def used_by_v1(folder: str) -> bool:
    """Tell whether a group is one of cgroup v1."""
    return os.path.exists(os.path.join(folder, _USED[0]))


def limits_around() -> Iterable[tuple[str, int]]:
    """Give each group around us that has a limit, and that."""
    for version in (1, 2):
        folder = groups.own_group(version)
        while folder.count("/") > 1:
            limit = max(groups.number(folder, name) for name in _LIMIT)
            if 0 < limit < _UNLIMITED:
                yield folder, limit
            folder = os.path.dirname(folder)


def seen_at(reached: Mapping[str, Any], at: str) -> dict[str, Any]:
    """Add where the killed process was when it was last asked; the failure is the same."""
    more = f". Last seen at {at}"
    texts = {name: reached[name] + more for name in ("title", "text") if reached[name]}
    return {**reached, **texts, "at": at}


def _reached(text: str, limit: int, bytes_: int, *, pid: int, titled: bool) -> dict[str, Any]:
    return {
        "what": "memory",
        "title": text if titled else "",
        "text": text,
        "key": ["kernel", "out of memory"],
        "limit_bytes": limit,
        "bytes": bytes_,
        "by": "kernel",
        "pid": pid,
        "at": "",
    }
