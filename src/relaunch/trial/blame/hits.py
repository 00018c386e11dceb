"""A failed call, as any of the eyes on them tells it, and the stacks that faulthandler wrote."""

from __future__ import annotations

import errno
import os

from relaunch.look.stacks import Frame
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

SIGBUS = "SIGBUS"
MAIN, PARENT = "main", "parent"
SPACE = frozenset(("ENOSPC", "EDQUOT"))
RUN_OUT = SPACE | {"EMFILE", "ENFILE", "ENOMEM", "EFBIG", "EIO", SIGBUS}
"""Each of these is worth a line; of the others the last ones are."""
MISSING = frozenset(("ENOENT", "ENOTDIR"))
WANTED = RUN_OUT | MISSING | {
    "ESTALE", "EACCES", "EPERM", "EROFS", "ETXTBSY", "ECONNREFUSED", "EADDRINUSE", "EADDRNOTAVAIL",
    "ENETUNREACH", "EHOSTUNREACH", "ETIMEDOUT",
}  # fmt: skip
NUMBERS = frozenset(getattr(errno, name) for name in WANTED if name != SIGBUS)


class Hit(Record):
    """One failed call, or several that are alike."""

    error: str
    """`ENOSPC`, or `SIGBUS`."""
    call: str
    path: str = ""
    """Of the file, also of one that has no name any more; of a connection, the address."""
    fd: int = -1
    asked: int = 0
    """Bytes that were asked for."""
    free_bytes: int = -1
    """What its file system had left at that moment; -1: not asked, or not known."""
    total_bytes: int = -1
    free_inodes: int = -1
    pid: int = 0
    tid: int = 0
    command: str = ""
    when: float = 0.0
    """On the monotonic clock."""
    count: int = 1
    frames: tuple[Frame, ...] = ()
    """Innermost first; empty when no Python was there."""
    whose: str = ""
    """Of whom the frames are where the thread had no Python: `main` thread, or `parent` process."""
    note: str = ""
    """What else explains it: how many files are open, who has the port."""
    hidden: str = ""
    """Why it is not shown unasked: `import`, `looked for`, `found later`, ..."""


def name_of(number: int) -> str:
    """Name an errno."""
    return errno.errorcode.get(number, str(number))


def read_stack(text: str) -> tuple[tuple[Frame, ...], str]:
    """Read what faulthandler wrote: the frames, and whose they are, as a hit has it.

    Of several threads the main one is taken, which faulthandler writes last.
    """
    threads: list[list[Frame]] = []
    several = False
    for line in text.splitlines():
        if line.startswith("  File "):
            if threads and (frame := _frame(line)) is not None:
                threads[-1].append(frame)
        elif line.endswith("(most recent call first):"):
            several = several or line.startswith(("Thread ", "Current thread "))
            threads.append([])
    return (tuple(threads[-1]) if threads else ()), MAIN if several else ""


def _frame(line: str) -> Frame | None:
    """Read `  File "train.py", line 12 in main`."""
    head, comma, rest = line.rpartition(", line ")
    number, _, function = rest.partition(" in ")
    if not comma or not number.isdecimal():
        return None
    return Frame(
        file=head[len('  File "') :].removesuffix('"'), line=int(number), function=function
    )


def to_json(hit: Hit) -> dict[str, Any]:
    """Return a hit as the trial keeps it, without what says nothing."""
    kept = {name: getattr(hit, name) for name, default in Hit._fields.items()
            if name != "frames" and getattr(hit, name) != default}  # fmt: skip
    frames = [[one.file, one.line, one.function] for one in hit.frames]
    return {**kept, **({"frames": frames} if frames else {})}


def from_json(kept: Mapping[str, Any]) -> Hit:
    """Read a hit back."""
    fields = {name: kept[name] for name in Hit._fields if name in kept and name != "frames"}
    frames = (Frame(file=f, line=int(n), function=c) for f, n, c in kept.get("frames", ()))
    return Hit(**fields, frames=tuple(frames))


def free_space(path: str, pid: int = 0) -> tuple[int, int, int]:
    """Return bytes free, bytes in all and inodes free where a path is, or would be; -1: unknown.

    Process `pid` names it: a small disk is mounted for the program, and not for us.
    """
    path = path.removesuffix(" (deleted)")
    root = f"/proc/{pid}/root" if pid and os.access(f"/proc/{pid}/root/", os.X_OK) else ""
    while path.startswith("/"):
        try:
            found = os.statvfs(root + path)
        except OSError:
            if path == "/":
                break
            path = os.path.dirname(path)
            continue
        inodes = found.f_favail if found.f_files else -1
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize, inodes
    return -1, -1, -1


def from_shim(fields: Sequence[bytes]) -> Hit:
    """Read a record of the shim, taken apart at its zeros, after the word `hit`."""
    pid, _, tid, number, call, fd, asked, path, free, total, inodes, count, when, command, stack = (
        fields
    )
    error = SIGBUS if int(number) < 0 else name_of(int(number))
    frames, whose = read_stack(os.fsdecode(stack))
    return Hit(
        error=error,
        call=os.fsdecode(call),
        path=os.fsdecode(path),
        fd=int(fd),
        asked=int(asked),
        free_bytes=int(free),
        total_bytes=int(total),
        free_inodes=int(inodes),
        pid=int(pid),
        tid=int(tid),
        command=os.fsdecode(command),
        when=float(when),
        count=int(count),
        frames=frames,
        whose=whose,
    )
