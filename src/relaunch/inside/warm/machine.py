"""What the machine says of files, memory and processes."""

from __future__ import annotations

import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_CGROUPS = "/sys/fs/cgroup"


def identity(path: str) -> tuple[int, int]:
    """Return which file or folder is at a path now; (0, 0) if none."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def memory() -> tuple[int, int]:
    """Return how many bytes of memory we may have at all, and how many we could get now."""
    found = {"MemTotal": 0, "MemAvailable": 0}
    for line in _lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0]) * 1024
    total, available = found["MemTotal"], found["MemAvailable"]
    for limit, left in _cgroup_limits():
        total, available = min(total, limit), min(available, left)
    return total, available


def _cgroup_limits() -> Iterable[tuple[int, int]]:
    """Give for each control group around us its limit, and what of that is left."""
    ours = [line[3:].strip() for line in _lines("/proc/self/cgroup") if line.startswith("0::")]
    path = ours[0] if ours else "/"
    while True:
        folder = _CGROUPS + path.rstrip("/")
        limit, used = _lines(f"{folder}/memory.max"), _lines(f"{folder}/memory.current")
        if limit and used and limit[0].strip().isdigit():
            cache = [one for one in _lines(f"{folder}/memory.stat") if one.startswith("inactive_")]
            spare = sum(int(one.split()[1]) for one in cache if one.startswith("inactive_file "))
            yield int(limit[0]), int(limit[0]) - int(used[0]) + spare
        if path in ("/", ""):
            return
        path = os.path.dirname(path)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def memory_of(pid: int) -> tuple[int, int]:
    """Return the memory of a process in bytes: its share of it, and what it would have alone.

    Files are not counted in what it would have alone: others mostly have them mapped too.
    """
    found = {b"Pss": 0, b"Anonymous": 0}
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                name, _, rest = line.partition(b":")
                if name in found:
                    found[name] = int(rest.split()[0]) * 1024
    except OSError:
        pass
    return found[b"Pss"], found[b"Anonymous"]


def send(pidfd: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    try:
        signal.pidfd_send_signal(pidfd, number)
    except OSError:
        pass


def parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def below(pid: int, without: set[int]) -> list[int]:
    """List the processes below one, but not those in `without` nor any below them."""
    found: list[int] = []
    todo = [pid]
    while todo:
        try:
            parent = todo.pop()
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children", "rb") as file:
                    todo += (
                        children := [int(w) for w in file.read().split() if int(w) not in without]
                    )
                    found += children
        except OSError:
            pass
    return found


def process_name(pid: int) -> str:
    """Return what a process calls itself, with its number."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return f"{file.read().strip()} ({pid})"
    except OSError:
        return str(pid)
