"""Memory held on purpose until a person lets go: `rl squeeze hold`."""

from __future__ import annotations

import select
import time

from relaunch.bytewords import in_words
from relaunch.errors import PlaceError
from relaunch.look.available import memory
from relaunch.proc.ballast import Ballast
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.proc.gpu.held import GpuHolder, Wish

MIB, GIB = 1 << 20, 1 << 30
INTERRUPTED, TIME, LOST = "interrupted", "time is over", "lost"


class Held(Record):
    """One thing that is held: of the machine's memory, or of a GPU's."""

    what: str
    """`memory`, or `GPU 0`."""
    held: int
    free: int
    note: str = ""


def margin_of(total: int) -> int:
    """Return what must stay available so that the machine goes on: 2 % of it, 256 MB to 1 GB."""
    return min(max(256 * MIB, total // 50), GIB)


class Holding:
    """Everything that is held at once; `release` is for whatever happens."""

    def __init__(
        self,
        *,
        hold: int | None = None,
        leave: int | None = None,
        gpus: Sequence[Wish] = (),
        force: bool = False,
    ) -> None:
        """Hold nothing yet; raises PlaceError for more memory than there is."""
        self._hold, self._leave, self._gpus = hold, leave, gpus
        self._ballast: Ballast | None = None
        self._holder: GpuHolder | None = None
        self._margin = 0
        self.goal = 0
        """Bytes of memory that will be held, as far as can be known before."""
        if hold is not None or leave is not None:
            self._check(hold, leave, force=force)

    def _check(self, hold: int | None, leave: int | None, *, force: bool) -> None:
        now = memory()
        if not now.total:
            raise PlaceError("the memory of this machine is not known: there is no /proc/meminfo")
        self._margin = 0 if force else margin_of(now.total)
        here = f"{in_words(now.available)} are available in {now.by}"
        self.goal = hold if hold is not None else now.available - (leave or 0)
        if leave is not None and leave > now.available:
            raise PlaceError(f"--leave {in_words(leave)}: only {here}", hint="free -h")
        if self.goal >= now.available:
            raise PlaceError(
                f"--memory {in_words(self.goal)}: only {here}", hint="rl squeeze hold --leave 2G"
            )
        if now.available - self.goal < self._margin:
            raise PlaceError(
                f"that would leave {in_words(now.available - self.goal)}, and the machine needs "
                f"{in_words(self._margin)}",
                hint="--force, or rl squeeze hold --leave 2G",
            )

    def begin(self, progress: Callable[[str, int], object]) -> list[Held]:
        """Hold all of it; `progress(what, bytes)` hears how far it is."""
        found = []
        if self._hold is not None or self._leave is not None:
            found.append(self._begin_memory(progress))
        if self._gpus:
            from os import environ

            from relaunch.proc.gpu.held import GpuHolder

            self._holder = GpuHolder(self._gpus, environ)
            for one in self._holder.wait(lambda gpu, held: progress(f"GPU {gpu}", held)):
                found.append(Held(what=f"GPU {one.gpu}", held=one.held, free=one.free))
        return found

    def _begin_memory(self, progress: Callable[[str, int], object]) -> Held:
        self._ballast = Ballast(
            lambda: memory().available,
            hold=self._hold,
            leave=self._leave,
            margin=self._margin,
            lock=memory().swap > 0,
        )
        held = self._ballast.wait(lambda size: progress("memory", size))
        note = "" if held.locked or not memory().swap else "the kernel may move it to swap"
        if not held.whole:
            note = "no more can be had without taking what the machine needs"
        return Held(what="memory", held=held.held, free=held.free, note=note)

    def wait(self, for_s: float | None) -> str:
        """Wait until it is time, or what holds it is gone; says which."""
        poll = select.poll()
        for one in (self._ballast, self._holder):
            if one is not None:
                poll.register(one.fileno(), select.POLLIN)
        deadline = time.monotonic() + for_s if for_s is not None else None
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return TIME
            if poll.poll(None if left is None else left * 1000 + 1):
                return LOST

    def release(self) -> None:
        """Let go of all."""
        for one in (self._holder, self._ballast):
            if one is not None:
                one.stop()
        self._holder = self._ballast = None
