"""Lets a replay run the source as it was when the call failed, from the capture."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any


class _Loader(SourceFileLoader):
    """Loads a file as it was; no bytecode is read or written."""

    def __init__(self, name: str, path: str, data: bytes) -> None:
        super().__init__(name, path)
        self._data = data

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._data, self.path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        exec(self.get_code(module.__name__), vars(module))


class _Finder:
    """Finds modules as always, and loads those of the capture from it."""

    def __init__(self, sources: dict[str, bytes]) -> None:
        self._sources = sources

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin not in self._sources:
            return None
        spec.loader = _Loader(name, spec.origin, self._sources[spec.origin])
        return spec


def use(sources: dict[str, bytes]) -> None:
    """Load modules as they were from now on."""
    sys.meta_path.insert(0, _Finder(sources))  # type: ignore[arg-type]  # as finders are
