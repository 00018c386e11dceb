"""Locks on files: who waits for one, and who has it, as /proc/locks lists them."""

from __future__ import annotations

import os

from relaunch.look.waits.proc import read

CALLS = frozenset(("flock", "fcntl"))


def holders_of(text: bytes, waiter: int) -> frozenset[int] | None:
    """Return who has the lock that a process waits for; None where it waits for none.

    A waiter stands below the lock that it waits for: `1: -> FLOCK ADVISORY WRITE 812 08:01:99 ...`.
    """
    holders: dict[bytes, set[int]] = {}
    numbers = set()
    for line in text.split(b"\n"):
        words = line.split()
        if len(words) < 6:
            continue
        number = words.pop(0)
        if words[0] == b"->":
            if int(words[4]) == waiter:
                numbers.add(number)
        else:
            holders.setdefault(number, set()).add(int(words[3]))
    if not numbers:
        return None
    return frozenset(pid for number in numbers for pid in holders.get(number, ()))


def read_holders(waiter: int) -> frozenset[int] | None:
    """Ask the kernel likewise."""
    return holders_of(read("/proc/locks"), waiter)


def openers(pid: int, fd: int, among: list[int]) -> frozenset[int]:
    """Return which of these processes have the same file open: a lock may be shared by a fork."""
    try:
        wanted = os.stat(f"/proc/{pid}/fd/{fd}")
    except OSError:
        return frozenset()
    found = set()
    for other in among:
        try:
            for name in os.listdir(f"/proc/{other}/fd"):
                has = os.stat(f"/proc/{other}/fd/{name}")
                if (has.st_dev, has.st_ino) == (wanted.st_dev, wanted.st_ino):
                    found.add(other)
                    break
        except OSError:
            continue
    return frozenset(found)
