"""Tensors on a GPU: fetched by the program itself, for a copy of its process has no GPU."""

from __future__ import annotations

import sys
import time

from relaunch.inside.capture.paths import walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_WAIT_S = 0.5
_clock, _sleep = time.monotonic, time.sleep


def is_used() -> bool:
    """Tell whether the program has a GPU in use."""
    cuda = getattr(sys.modules.get("torch"), "cuda", None)
    return cuda is not None and bool(cuda.is_initialized())


def fetched(variables: Sequence[Mapping[str, Any]], budget: int) -> dict[int, tuple[Any, Any]]:
    """Return copies of the tensors that frames hold on GPUs, by the ids of these; first come first.

    One that is busy is not waited for: whoever shares work with it may be gone.
    """
    torch = sys.modules["torch"]
    if not _is_idle(torch.cuda):
        return {}
    found: dict[int, tuple[Any, Any]] = {}
    for one in variables:
        for _, thing in walk(one):
            if not isinstance(thing, torch.Tensor) or not thing.is_cuda or id(thing) in found:
                continue
            size = thing.numel() * thing.element_size()
            if size > budget:
                continue
            try:
                found[id(thing)] = thing, thing.detach().cpu()
            except Exception:  # after an assert on the device nothing can be had from it
                return found
            budget -= size
    return found


def _is_idle(cuda: Any) -> bool:
    until = _clock() + _WAIT_S
    try:
        while not cuda.current_stream().query():
            if _clock() > until:
                return False
            _sleep(0.005)
    except Exception:
        return False
    return True
