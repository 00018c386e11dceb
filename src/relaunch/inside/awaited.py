"""Does something with a module as soon as the program has imported it."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType
    from typing import Any


def when_loaded(name: str, act: Callable[[ModuleType], object]) -> None:
    """Call `act(module)` now, or when it is loaded; what goes wrong there is nobody's concern."""

    def quietly(module: ModuleType) -> None:
        try:
            act(module)
        except Exception:
            pass

    loaded = sys.modules.get(name)
    if loaded is not None:
        quietly(loaded)
    else:
        sys.meta_path.insert(0, Waiting(name, quietly))


class Waiting:
    """A finder that finds nothing itself, and goes when it has seen what it waits for."""

    def __init__(self, name: str, act: Callable[[ModuleType], object]) -> None:
        """Wait for the module of this name."""
        self._name = name
        self._act = act

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> Any:
        """Let the others find it; then we are called when it is loaded."""
        if name != self._name:
            return None
        sys.meta_path.remove(self)
        importer: Any = sys.modules["_frozen_importlib"]
        spec = importer._find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Then(spec.loader, self._act)
        return spec


class _Then:
    """A loader that does what another does, and then acts."""

    def __init__(self, theirs: Any, act: Callable[[ModuleType], object]) -> None:
        """Stand for `theirs` until the module is loaded."""
        self._theirs = theirs
        self._act = act

    def __getattr__(self, name: str) -> Any:
        return getattr(self._theirs, name)

    def create_module(self, spec: Any) -> Any:
        """Let the other make it."""
        return self._theirs.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Let the other load it, step aside, and act."""
        for one, name in ((module.__spec__, "loader"), (module, "__loader__")):
            setattr(one, name, self._theirs)
        self._theirs.exec_module(module)
        self._act(module)
