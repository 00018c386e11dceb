"""Waits until the program imports `logging`, then holds the loggers that `--log-level` names."""

from __future__ import annotations

from relaunch.inside.awaited import when_loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


def begin() -> None:
    """Hold them now, or as soon as there is something to hold."""
    when_loaded("logging", _pin)


def _pin(module: ModuleType) -> None:
    from relaunch.inside.logs.levels import pin_all

    if hasattr(module, "getLogger"):  # a file of the user may have that name
        pin_all(module)
