"""How much memory could be had now: of the machine, and of each control group around us."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = "/sys/fs/cgroup"
_UNLIMITED = 1 << 60
"""The first version writes a number that no machine has where there is no limit."""


class Memory(Record):
    """Bytes: all that we may have, and what of that nobody uses."""

    total: int
    available: int
    swap: int = 0
    by: str = "the machine"
    """What is the narrowest: the machine, or a control group."""


class Group(Record):
    """One control group with a limit."""

    path: str
    limit: int
    left: int


def memory(proc: str = "/proc", root: str = _ROOT) -> Memory:
    """Read it; zeros where the kernel does not say."""
    found = {"MemTotal": 0, "MemAvailable": 0, "SwapTotal": 0}
    for line in _lines(f"{proc}/meminfo"):
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0]) << 10
    total, available, by = found["MemTotal"], found["MemAvailable"], Memory._fields["by"]
    for group in groups(proc, root):
        total = min(total, group.limit)
        if group.left < available:
            available, by = max(0, group.left), f"the control group {group.path}"
    return Memory(total=total, available=available, swap=found["SwapTotal"], by=by)


def groups(proc: str = "/proc", root: str = _ROOT) -> Iterator[Group]:
    """Give each control group around us that limits memory, of both versions."""
    for line in _lines(f"{proc}/self/cgroup"):
        number, controllers, path = line.rstrip("\n").split(":", 2)
        if number == "0" and not controllers:
            yield from _climb(root, path, "memory.max", "memory.current", "inactive_file ")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ")
            yield from _climb(f"{root}/memory", path, *names)


def _climb(root: str, path: str, limit: str, used: str, spare: str) -> Iterator[Group]:
    while True:
        folder = root + path.rstrip("/")
        most, now = _number(f"{folder}/{limit}"), _number(f"{folder}/{used}")
        if most is not None and now is not None and most < _UNLIMITED:
            cached = [line for line in _lines(f"{folder}/memory.stat") if line.startswith(spare)]
            yield Group(path=path, limit=most, left=most - now + sum(map(_second, cached)))
        if path in ("/", ""):
            return
        path = os.path.dirname(path)


def _second(line: str) -> int:
    return int(line.split()[1])


def _number(path: str) -> int | None:
    lines = _lines(path)
    word = lines[0].strip() if lines else ""
    return int(word) if word.isdigit() else None


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []
