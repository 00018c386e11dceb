"""Where bytes lie besides plain offsets: addresses in a core, and the memory of a live process."""

from __future__ import annotations

import os
import struct

from relaunch.errors import TinyError
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LOAD = 1


class Segment(Record):
    """Bytes of a file, and the address that they had."""

    offset: int
    size: int
    address: int


def core_segments(path: str) -> list[Segment]:
    """Return where the parts of a core lay in memory; nothing for any other file."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01" or head[16:18] != b"\x04\0":
            return []
        (at,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(at)
        table = file.read(size * count)
    found = []
    for n in range(len(table) // size if size else 0):
        kind, _, offset, address, _, held = struct.unpack_from("<IIQQQQ", table, n * size)
        if kind == _LOAD and held:
            found.append(Segment(offset=offset, size=held, address=address))
    return found


def address_of(segments: Sequence[Segment], offset: int) -> int | None:
    """Return the address of an offset in a core."""
    for one in segments:
        if one.offset <= offset < one.offset + one.size:
            return one.address + offset - one.offset
    return None


class Region(Record):
    """A part of the memory of a process."""

    begin: int
    end: int
    name: str


class Memory:
    """The memory of a live process, only read."""

    def __init__(self, pid: int) -> None:
        """Open it; says what stands against it."""
        self.pid = pid
        if not os.path.isdir("/proc/self"):
            raise TinyError("live processes can be looked into on Linux alone", hint="gcore PID")
        if not os.path.isdir(f"/proc/{pid}"):
            raise TinyError(f"there is no process {pid}", hint="ps aux")
        try:
            self._fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
            with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
                self.regions = read_maps(file.read())
        except OSError as error:
            raise _forbidden(pid, error) from None
        if not self.regions:
            os.close(self._fd)
            raise TinyError(f"process {pid} has no memory of its own: it is one of the kernel, "
                            "or has ended", hint=f"ps -p {pid}")  # fmt: skip

    def read(self, at: int, size: int) -> bytes:
        """Read memory; nothing where it is gone by now."""
        try:
            return os.pread(self._fd, size, at)
        except OSError:
            return b""

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)


def read_maps(text: str) -> list[Region]:
    """Read the regions that may be read from `/proc/PID/maps`."""
    found = []
    for line in text.splitlines():
        span, rights, _, _, _, *name = line.split(None, 5)
        begin, _, end = span.partition("-")
        label = name[0].strip() if name else "[anonymous]"
        if rights.startswith("r") and label not in ("[vvar]", "[vsyscall]", "[vvar_vclock]"):
            found.append(Region(begin=int(begin, 16), end=int(end, 16), name=label))
    return found


def _forbidden(pid: int, error: OSError) -> TinyError:
    scope = ""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            scope = file.read().strip()
    except OSError:
        pass
    why = f" (ptrace_scope is {scope})" if scope not in ("", "0") else ""
    said = f"the memory of process {pid} may not be read: {error.strerror}{why}"
    return TinyError(said, hint=f"sudo rl tiny find ... --pid {pid}, or gcore {pid}")
