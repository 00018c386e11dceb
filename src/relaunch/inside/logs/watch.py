"""Waits until the program imports `logging`, then holds the loggers that `--log-level` names."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

_NAME = "logging"


def begin() -> None:
    """Hold them now, or as soon as there is something to hold."""
    loaded = sys.modules.get(_NAME)
    if loaded is not None:
        _pin(loaded)
    else:
        sys.meta_path.insert(0, _Waiting())


def _pin(module: ModuleType) -> None:
    try:
        from relaunch.inside.logs.levels import pin_all

        if hasattr(module, "getLogger"):  # a file of the user may have that name
            pin_all(module)
    except Exception:
        pass


class _Waiting:
    """A finder that finds nothing itself, and goes when it has seen what it waits for."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Let the others find it; then we are called when it is loaded."""
        if name != _NAME:
            return None
        sys.meta_path.remove(self)
        importer: Any = sys.modules["_frozen_importlib"]
        spec = importer._find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader)
        return spec


class _Then:
    """A loader that does what another does, and then holds the loggers."""

    def __init__(self, theirs: Any) -> None:
        """Stand for `theirs` until the module is loaded."""
        self._theirs = theirs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def create_module(self, spec: Any) -> Any:
        """Let the other make it."""
        return self._theirs.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Let the other load it, step aside, and hold the loggers."""
        for one, name in ((module.__spec__, "loader"), (module, "__loader__")):
            setattr(one, name, self._theirs)
        self._theirs.exec_module(module)
        _pin(module)
