"""The state of the random generators that everybody shares, at the moment of the failure."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def now() -> dict[str, Any]:
    """Return the states of those that the program has loaded."""
    found: dict[str, Any] = {}
    for name, module, ask in (
        ("random", "random", "getstate"),
        ("numpy", "numpy.random", "get_state"),
        ("torch", "torch.random", "get_rng_state"),
    ):
        state = getattr(sys.modules.get(module), ask, None)
        try:
            if state is not None:
                found[name] = state()
        except Exception:
            continue
    return found


def put_back(states: dict[str, Any]) -> None:
    """Set the generators as they were, in the replay; a library that is not loaded needs none."""
    for name, module, tell in (
        ("random", "random", "setstate"),
        ("numpy", "numpy.random", "set_state"),
        ("torch", "torch.random", "set_rng_state"),
    ):
        take = getattr(sys.modules.get(module), tell, None)
        try:
            if take is not None and name in states:
                take(states[name])
        except Exception:
            continue
