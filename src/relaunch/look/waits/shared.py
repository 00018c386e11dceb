"""Memory that processes share: whose threads can wake one that waits on a word of it."""

from __future__ import annotations

import os

from relaunch.look.waits.proc import pids, read
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

_OF_A_PROGRAM = ("sem.mp-", "torch_", "psm_", "sem.loky-")
"""Names that a library makes up for the processes of one program alone."""
_SYSTEM_V, _SHM = "/SYSV", "/dev/shm"
_NAMELESS = ("/dev/zero", "/memfd:", _SYSTEM_V + "00000000")
"""Memory of this kind never had a name: only who inherited it, or was handed it, has it."""


class Mapping(Record):
    """A stretch of memory that is shared, and what file it is of."""

    key: str
    """Device and inode."""
    path: str
    """As /proc says it: without a name it ends with ` (deleted)`."""

    @property
    def inode(self) -> int:
        """The number of the file."""
        return int(self.key.split()[1])


def has_name(found: Mapping) -> bool:
    """Tell whether others, whom we do not know yet, could find it.

    A semaphore is made under a name that is taken away, and then has another.
    """
    if found.path.startswith(_NAMELESS):
        return False
    if not found.path.endswith(" (deleted)") or os.path.dirname(found.path) != _SHM:
        return not os.path.basename(found.path).startswith(_OF_A_PROGRAM)
    try:
        with os.scandir(_SHM) as entries:
            names = [one.name for one in entries if one.inode() == found.inode]
    except OSError:
        return True
    return any(not name.startswith(_OF_A_PROGRAM) for name in names)


def mapping_at(maps: bytes, address: int) -> Mapping | None:
    """Return the shared mapping with this address; None where memory there is not shared."""
    for line in maps.split(b"\n"):
        span, _, rest = line.partition(b" ")
        first, _, last = span.partition(b"-")
        if last and int(first, 16) <= address < int(last, 16):
            return _mapping(rest)
    return None


def _mapping(rest: bytes) -> Mapping | None:
    words = rest.split(None, 4)
    if len(words) < 4 or words[0][3:4] != b"s":
        return None
    path = os.fsdecode(words[4]) if len(words) > 4 else ""
    return Mapping(key=f"{words[2].decode()} {words[3].decode()}", path=path)


def sharers(key: str, among: Collection[int]) -> frozenset[int]:
    """Return which of these processes have it in their memory."""
    return frozenset(pid for pid in among if _has(pid, key))


def others(key: str, tree: Collection[int]) -> frozenset[int]:
    """Return who else has it, as far as we may see."""
    return frozenset(pid for pid in pids() if pid not in tree and _has(pid, key))


def _has(pid: int, key: str) -> bool:
    wanted = f" {key} ".encode()
    return wanted in read(f"/proc/{pid}/maps")
