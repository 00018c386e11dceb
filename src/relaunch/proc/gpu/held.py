"""Our side of held GPU memory: starts the holder, hears what it holds, ends it."""

from __future__ import annotations

import os
import sys

from relaunch.errors import PlaceError
from relaunch.jsontext import dumps
from relaunch.proc.telling import Telling
from relaunch.proc.tree import MARKER
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_ANSWER_S = 120.0
"""A driver that was not loaded yet takes long to begin with."""
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
_HOLD = """\
import sys
sys.path.insert(0, sys.argv[1])
from relaunch.proc.gpu.holder import main
main(sys.argv[2:])
"""


class Wish(Record):
    """What is asked of one GPU, or of each: to `leave` so much free, or to `hold` so much."""

    gpu: int | None = None
    leave: int | None = None
    hold: int | None = None
    look: bool = False
    """Touch nothing: see that it is there, and has so much at all."""


class OneHeld(Record):
    """What is held of one GPU, as read back from it."""

    gpu: int
    held: int
    free: int
    before: int
    """What was free when the holder began."""


class NotHeld(PlaceError):
    """No memory is held; `why`: none, number, room, objection, driver, unsettled."""

    def __init__(self, message: str, *, why: str, hint: str = "") -> None:
        """Keep the reason in one word: some leave another way."""
        super().__init__(message, hint=hint)
        self.why = why


_HINTS = {"none": "rl doctor", "number": "nvidia-smi -L", "driver": "nvidia-smi"}


class GpuHolder:
    """A process that holds memory of GPUs; it never outlives us."""

    def __init__(self, wishes: Sequence[Wish], env: Mapping[str, str]) -> None:
        """Start it in the environment of the program, which decides the numbers of GPUs."""
        asked = [
            {n: v for n in Wish._fields if (v := getattr(one, n)) is not None or n == "gpu"}
            for one in wishes
        ]
        clean = {name: value for name, value in env.items() if name != MARKER}

        def become(socket: int) -> None:
            os.set_inheritable(socket, True)
            words = [_SOURCE, str(socket), dumps(asked)]
            argv = [sys.executable, "-I", "-S", "-c", _HOLD, *words]
            os.execve(sys.executable, argv, clean)

        self._helper = Telling(become)
        self.pid = self._helper.pid
        self.names: dict[int, str] = {}
        """The GPUs that were asked for, once it has found them."""

    def fileno(self) -> int:
        """Our file, for a poll: at its end the holder is gone."""
        return self._helper.fileno()

    def wait(self, progress: Callable[[int, int], object] = lambda _g, _h: None) -> list[OneHeld]:
        """Return what it holds once it holds all; NotHeld says why not.

        `progress(gpu, bytes)` hears how far it is.
        """
        held: list[OneHeld] = []
        while True:
            said = self._helper.next(_ANSWER_S)
            event = said.get("event")
            if event == "found":
                self.names[said["gpu"]] = said["name"]
            elif event == "taking":
                progress(said["gpu"], said["held"])
            elif event == "held":
                held.append(OneHeld(**{name: said[name] for name in OneHeld._fields}))
                progress(said["gpu"], said["held"])
            elif event == "holding":
                return held
            else:
                self.stop()
                raise _refusal(said)

    def stop(self) -> dict[int, int]:
        """End it; returns how little of each GPU was seen to be free meanwhile."""
        for said in self._helper.stop_and_read():
            if said["event"] == "lowest":
                return {int(gpu): free for gpu, free in said["free"].items()}
        return {}


def _refusal(said: Mapping[str, Any]) -> NotHeld:
    why = said.get("why", "driver")
    text = said.get("text", "the process that holds GPU memory ended before it held any")
    return NotHeld(text, why=why, hint=_HINTS.get(why, "nvidia-smi"))
