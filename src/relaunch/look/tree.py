"""Who is below a process, and the memory they have; quick enough to be asked every millisecond."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

PAGE = os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """Return the children of all threads of a process; none when it is gone."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass
    return found


def below(root: int, without: Collection[int] = ()) -> list[int]:
    """Return all processes below `root`, not looking at nor below those in `without`."""
    found, todo = [], [root]
    while todo:
        for pid in children(todo.pop()):
            if pid not in without:
                found.append(pid)
                todo.append(pid)
    return found


def python_above(pid: int) -> int:
    """Return the nearest process above that runs Python; 0 when there is none, or it is ours."""
    return nearest_python(_parent(pid))


def nearest_python(pid: int) -> int:
    """Return this process, or the nearest above that runs Python; 0 when there is none."""
    while pid > 1:
        try:
            program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        except OSError:
            return 0
        if pid == os.getppid():
            return 0
        if program.startswith("python"):
            return pid
        pid = _parent(pid)
    return 0


def _parent(pid: int) -> int:
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b")")[2].split()[1])
    except (OSError, IndexError):
        return 0


def resident_bytes(pid: int) -> int:
    """Return what of a process is in memory, shared pages whole; 0 when it is gone."""
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def proportional_bytes(pids: Iterable[int]) -> int:
    """Return what processes have together, a page that several share counted once among them.

    Dear: the kernel walks every page. Where it may not be read, what is resident counts.
    """
    return sum(map(_proportional, pids))


def _proportional(pid: int) -> int:
    try:
        for line in _read(f"/proc/{pid}/smaps_rollup").split(b"\n"):
            if line.startswith(b"Pss:"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return resident_bytes(pid)


def _read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        blocks = []
        while block := os.read(fd, 1 << 14):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(fd)
