"""GPU memory that looks smaller: held by a process of ours, or a share that torch keeps to."""

from __future__ import annotations

import os

from relaunch.bytewords import in_words
from relaunch.inside.protocol import GPU
from relaunch.proc.companion import Companion
from relaunch.proc.gpu.held import GpuHolder, NotHeld, Wish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from relaunch.recipe import GpuFree

_OTHER_WAY = frozenset(("objection", "driver"))
"""Reasons not to hold memory that do not keep torch from limiting itself."""


class SmallGpu(Companion):
    """Leaves so much GPU memory free, from before the program's start until it is gone."""

    def __init__(
        self,
        asked: Sequence[GpuFree],
        *,
        by: str,
        env: Mapping[str, str],
        folder: str,
        say: Callable[[str], object],
    ) -> None:
        """`env` is the program's; without a `folder`, nobody learns whether torch was limited."""
        self._asked = asked
        self._by = by
        self._env = env
        self._folder = folder
        self._say = say
        self._holder: GpuHolder | None = None
        self._left: dict[int, int] = {}
        """What was free when the program began, by the number of the GPU."""
        self._is_share = False

    def prepare(self) -> Mapping[str, str]:
        """Hold memory; where that cannot be, ask torch to be modest."""
        if self._by != "share":
            try:
                self._hold()
                return {}
            except NotHeld as error:
                if self._by == "hold" or error.why not in _OTHER_WAY:
                    raise
                self._say(f"{error.message}; torch is asked to be modest instead")
        return self._share()

    def helpers(self) -> Collection[int]:
        """Name the holder."""
        return (self._holder.pid,) if self._holder is not None else ()

    def ended(self) -> None:
        """Let go, and say how much the program took."""
        if self._holder is not None:
            lowest = self._holder.stop()
            self._holder = None
            for gpu, free in sorted(lowest.items()):
                left = self._left[gpu]
                if free < left:
                    words = f"{in_words(left - free)} of the {in_words(left)} left free"
                    self._say(f"GPU {gpu}: {words} were seen in use")
        if self._is_share and self._folder:
            self._tell_limited()

    def _hold(self) -> None:
        wishes = [Wish(gpu=one.device, leave=one.bytes) for one in self._asked]
        holder = GpuHolder(wishes, self._env)
        held = holder.wait()
        self._holder = holder
        self._left = {one.gpu: one.free for one in held}
        for one in held:
            self._say(
                f"Holding {in_words(one.held)} of GPU {one.gpu}, {in_words(one.free)} left free "
                "(minus your program's own context)"
            )

    def _share(self) -> Mapping[str, str]:
        """See that the GPUs are there, and say to the hook what torch may take of them."""
        looks = [Wish(gpu=one.device, leave=one.bytes, look=True) for one in self._asked]
        looking = GpuHolder(looks, self._env)
        looking.wait()
        looking.stop()
        self._is_share = True
        words = ", ".join(
            f"{in_words(one.bytes)} of {'each GPU' if one.device is None else f'GPU {one.device}'}"
            for one in self._asked
        )
        self._say(
            f"torch may take {words} in each process. Weaker than held memory: "
            "only torch's own allocator keeps to it"
        )
        names = [("*" if one.device is None else one.device, one.bytes) for one in self._asked]
        return {GPU: ",".join(f"{name}={size}" for name, size in names) + f":{self._folder}"}

    def _tell_limited(self) -> None:
        """Say in how many processes torch was limited: none is what a person must know."""
        notes = [name for name in os.listdir(self._folder) if name.startswith("gpu.")]
        for name in notes:
            os.unlink(os.path.join(self._folder, name))
        if not notes:
            self._say("No GPU memory was limited: no process of it began with torch.cuda")
