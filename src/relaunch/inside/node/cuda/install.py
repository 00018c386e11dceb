"""Makes torch of this process have GPUs; once, before the ranks are forked."""

from __future__ import annotations

from relaunch.inside.node.cuda import driver, mode, patches, streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def install(torch: Any) -> Any:
    """Supply what a build without CUDA lacks; returns the mode that each rank has to enter."""
    driver.supply(torch)
    streams.supply(torch)
    found, noted = mode.make(torch)
    patches.supply(torch, found, noted)
    return found
