"""Memory of the machine that is held until we let go, or the kernel needs it more."""

from __future__ import annotations

import mmap
import os

from relaunch.errors import PlaceError
from relaunch.proc.settle import GRANULE, Held
from relaunch.proc.telling import Telling, tell
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BLOCK = 256 << 20
"""Between two of these it is seen whether that much may still be taken."""
_POPULATE_WRITE = 23
"""MADV_POPULATE_WRITE, Linux 5.14; `mmap` has no name for it."""
_HUGE = getattr(mmap, "MADV_HUGEPAGE", None)
_PAGE = mmap.PAGESIZE
_SILENCE_S = 60.0


class HeldMemory(Record):
    """What is held, as read back."""

    held: int
    free: int
    locked: bool = False
    """It cannot be moved to swap."""
    whole: bool = True
    """False when more would have left less than must stay free."""


class Ram:
    """The memory of the machine, in blocks that are really there."""

    def __init__(self, available: Callable[[], int], *, margin: int, lock: bool = False) -> None:
        """Never take so much that less than `margin` is available."""
        self._available = available
        self._margin = margin
        self._blocks: dict[int, mmap.mmap] = {}
        self._next = 1
        self.locked = lock

    def free(self) -> int:
        """Bytes that could be had now."""
        return self._available()

    def take(self, size: int) -> int:
        """Take a block and return its number; 0 when there is none of that size, or must not be."""
        if self._available() - size < self._margin:
            return 0
        try:
            block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except (OSError, ValueError):  # a limit of address space
            return 0
        try:
            populate(block)
        except OSError:
            block.close()
            return 0
        self.locked = self.locked and _lock(block)
        number, self._next = self._next, self._next + 1
        self._blocks[number] = block
        return number

    def give_back(self, where: int) -> None:
        """Free a block."""
        self._blocks.pop(where).close()


def populate(block: mmap.mmap) -> None:
    """Have every page of a block really there, as quickly as this kernel can."""
    if _HUGE is not None:
        try:
            block.madvise(_HUGE)
        except OSError:  # a kernel without them
            pass
    try:
        block.madvise(_POPULATE_WRITE)
    except OSError:
        with memoryview(block) as bytes_:
            bytes_[::_PAGE] = b"\1" * len(range(0, len(block), _PAGE))


def _lock(block: mmap.mmap) -> bool:
    import ctypes

    first = ctypes.c_char.from_buffer(block)
    try:
        library = ctypes.CDLL(None)
        return bool(library.mlock(ctypes.byref(first), ctypes.c_size_t(len(block))) == 0)
    finally:
        del first  # a mapping that is looked at cannot be closed


class Ballast:
    """A process that holds memory; it never outlives us, and is the kernel's first choice."""

    def __init__(
        self,
        available: Callable[[], int],
        *,
        hold: int | None = None,
        leave: int | None = None,
        margin: int = 0,
        lock: bool = False,
    ) -> None:
        """Begin to hold so much, or until only so much is left."""

        def work(socket: int) -> None:
            first_to_go()
            held = Held(Ram(available, margin=margin, lock=lock), block=BLOCK)
            _fill(socket, held, hold, leave)
            while os.read(socket, 4096):
                pass

        self._helper = Telling(work)
        self.pid = self._helper.pid

    def fileno(self) -> int:
        """Our file, for a poll: at its end the ballast is gone."""
        return self._helper.fileno()

    def wait(self, progress: Callable[[int], object] = lambda _: None) -> HeldMemory:
        """Return what is held once it is; `progress(bytes)` hears how far it is."""
        while True:
            said = self._helper.next(_SILENCE_S)
            event = said.pop("event", "")
            if event == "taking":
                progress(said["held"])
            elif event == "held":
                return HeldMemory(**said)
            else:
                self.stop()
                raise PlaceError(
                    "the ballast was ended before it was whole: memory ran out",
                    hint="rl squeeze hold --leave 2G",
                )

    def stop(self) -> None:
        """Let go."""
        self._helper.stop()


def _fill(socket: int, held: Held, hold: int | None, leave: int | None) -> None:
    ram: Any = held.memory

    def progress(free: int) -> None:
        tell(socket, {"event": "taking", "held": held.bytes, "free": free})

    whole = True
    if hold is not None:
        whole = held.hold(hold, progress)
    if leave is not None:
        free = held.leave(leave, progress)
        whole = free - leave <= max(leave // 100, 2 * GRANULE)
    state = {"held": held.bytes, "free": ram.free(), "locked": ram.locked, "whole": whole}
    tell(socket, {"event": "held", **state})


def first_to_go() -> None:
    """Have the kernel end this process before any other when memory runs out."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
    except OSError:
        pass
