"""Small reads of /proc, for processes that may be gone or belong to somebody else."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ALL = 1 << 22


def read(path: str) -> bytes:
    """Read a file of /proc; nothing when its process is gone, or not ours to read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        blocks = []
        while block := os.read(fd, _ALL):
            blocks.append(block)
        return b"".join(blocks)
    except OSError:
        return b""
    finally:
        os.close(fd)


def link(path: str) -> str:
    """Return where a link leads; nothing when it cannot be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


def memory(pid: int, address: int, count: int) -> bytes:
    """Read memory of a process; nothing when that is not allowed, or there is none."""
    try:
        fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, count, address)
    except (OSError, OverflowError):
        return b""
    finally:
        os.close(fd)


def pids() -> Iterator[int]:
    """List all processes that can be seen."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def name_of(pid: int) -> str:
    """Return how a process is called: its script where it is Python, else its program."""
    words = [os.fsdecode(word) for word in read(f"/proc/{pid}/cmdline").split(b"\0")]
    program = os.path.basename(words[0]) or read(f"/proc/{pid}/comm").decode().strip()
    if program.startswith("python"):
        script = next((word for word in words[1:] if word.endswith(".py")), "")
        return os.path.basename(script) or program
    return program
