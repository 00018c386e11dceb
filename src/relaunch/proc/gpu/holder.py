"""The process that holds GPU memory until its socket ends; started anew, and forks never.

Says one JSON object a line: how far it is, what it holds, why it cannot, and at its end how little
was free at the least.
"""

from __future__ import annotations

import os
import select

from relaunch.bytewords import in_words
from relaunch.jsontext import loads
from relaunch.proc.gpu.driver import Driver, DriverError, NoGpu
from relaunch.proc.settle import Held, near_enough
from relaunch.proc.telling import tell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from relaunch.proc.gpu.driver import Gpu

_LOOK_MS = 100
_TELL_EVERY = 1 << 30


class Refused(Exception):
    """What was asked for cannot be; `why` is a word for the program, the text for the person."""

    def __init__(self, why: str, text: str) -> None:
        """Keep both."""
        super().__init__(text)
        self.why = why


def main(words: Sequence[str]) -> None:
    """Hold what the second word asks for; the first is our socket's file."""
    socket = int(words[0])
    try:
        opened = _hold(socket, loads(words[1]))
        tell(socket, {"event": "holding"})
        tell(socket, {"event": "lowest", "free": _watch(socket, opened)})
    except Refused as error:
        tell(socket, {"event": "refused", "why": error.why, "text": str(error)})
    except NoGpu as error:
        tell(socket, {"event": "refused", "why": "none", "text": _why_none(error)})
    except DriverError as error:
        tell(socket, {"event": "refused", "why": "driver", "text": str(error)})


def _hold(socket: int, wishes: list[dict[str, Any]]) -> list[Gpu]:
    driver = Driver()
    asked = _by_number(wishes, driver.count)
    gpus = [driver.gpu(number) for number in sorted(asked)]
    for gpu in gpus:
        about = {"gpu": gpu.number, "name": gpu.name, "total": gpu.total}
        tell(socket, {"event": "found", **about})
        if asked[gpu.number].get("leave", 0) >= gpu.total:
            asked_bytes = in_words(asked[gpu.number]["leave"])
            has = f"GPU {gpu.number} has {in_words(gpu.total)} in all"
            raise Refused("room", f"{has}: {asked_bytes} cannot be left free")
    gpus = [gpu for gpu in gpus if not asked[gpu.number].get("look")]
    for gpu in gpus:
        if why := gpu.objection():
            raise Refused("objection", f"GPU {gpu.number} cannot be held: {why}")
    for gpu in gpus:
        _hold_one(socket, gpu, asked[gpu.number])
    return gpus


def _by_number(wishes: list[dict[str, Any]], count: int) -> dict[int, dict[str, Any]]:
    """Return what is asked of each GPU; what names it goes before what is said of all."""
    found: dict[int, dict[str, Any]] = {}
    for wish in wishes:
        if wish["gpu"] is None:
            found |= dict.fromkeys(range(count), wish)
    for wish in wishes:
        if wish["gpu"] is not None:
            if wish["gpu"] >= count:
                there = "only GPU 0" if count == 1 else f"only GPU 0 to {count - 1}"
                raise Refused("number", f"there is no GPU {wish['gpu']} here, {there}")
            found[wish["gpu"]] = wish
    return found


def _hold_one(socket: int, gpu: Gpu, wish: dict[str, Any]) -> None:
    gpu.open()
    held = Held(gpu)
    before = told = gpu.free()
    head = f"GPU {gpu.number}"

    def progress(free: int) -> None:
        nonlocal told
        if abs(told - free) >= _TELL_EVERY:
            told = free
            tell(socket, {"event": "taking", "gpu": gpu.number, "held": held.bytes, "free": free})

    if "hold" in wish:
        if not held.hold(wish["hold"], progress):
            asked = in_words(wish["hold"])
            raise Refused(
                "room", f"{head} has only {in_words(before)} free: {asked} cannot be held"
            )
        free = gpu.free()
    else:
        leave = wish["leave"]
        if before < leave and not near_enough(before, leave):
            asked = in_words(leave)
            raise Refused("room", f"{head} has only {in_words(before)} free, less than {asked}")
        free = held.leave(leave, progress)
        if not near_enough(free, leave):
            raise Refused(
                "unsettled",
                f"{head} has {in_words(free)} free instead of {in_words(leave)}: "
                "another program takes and frees memory there",
            )
    what = {"gpu": gpu.number, "held": held.bytes, "free": free, "before": before}
    tell(socket, {"event": "held", **what})


def _watch(socket: int, gpus: list[Gpu]) -> dict[str, int]:
    """Look what is free until our socket ends; return the least of each GPU."""
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    lowest: dict[str, int] = {}
    while not (poll.poll(_LOOK_MS) and not os.read(socket, 4096)):
        for gpu in gpus:
            gpu.choose()
            free = gpu.free()
            name = str(gpu.number)
            lowest[name] = min(lowest.get(name, free), free)
    return lowest


def _why_none(error: NoGpu) -> str:
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    hidden = f"; CUDA_VISIBLE_DEVICES is `{shown}`" if shown is not None else ""
    return f"no GPU here: {error}{hidden}"
