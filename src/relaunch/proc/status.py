"""What the kernel says of a thread: its process, what it does, which signals it handles."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


def process_of(tid: int) -> int:
    """Return the process that a thread belongs to."""
    return int(_fields(tid, ("Tgid",))["Tgid"])


def handles(tid: int, signal: int, *, at_once: bool = True) -> bool:
    """Tell whether a thread has a handler for a signal, and lets it come now."""
    try:
        found = _fields(tid, ("SigBlk", "SigCgt"))
    except OSError:
        return False
    bit = 1 << (signal - 1)
    blocked = at_once and int(found["SigBlk"], 16) & bit
    return bool(int(found["SigCgt"], 16) & bit) and not blocked


def state_of(tid: int) -> str:
    """Return what a thread does, in the kernel's letter; X when it is gone."""
    try:
        return _fields(tid, ("State",))["State"][:1]
    except (OSError, KeyError):
        return "X"


def under_way(tid: int) -> list[int]:
    """Return the number and arguments of the call that a thread waits in; empty when in none."""
    try:
        with open(f"/proc/{tid}/syscall", encoding="ascii") as file:
            words = file.read().split()
    except OSError:
        return []
    return [int(word, 0) for word in words] if len(words) > 7 else []


def tracer_of(pid: int) -> int:
    """Return the process that traces this one; 0 when none does."""
    try:
        return int(_fields(pid, ("TracerPid",))["TracerPid"])
    except (OSError, KeyError):
        return 0


def inner_id(tid: int) -> int:
    """Return the number of a thread in its own pid namespace: what it calls itself."""
    try:
        return int(_fields(tid, ("NSpid",))["NSpid"].split()[-1])
    except (OSError, KeyError, IndexError):
        return tid


def _fields(tid: int, names: Collection[str]) -> dict[str, str]:
    with open(f"/proc/{tid}/status", encoding="utf-8", errors="replace") as file:
        rows = (line.partition(":") for line in file)
        return {name: value.strip() for name, _, value in rows if name in names}
