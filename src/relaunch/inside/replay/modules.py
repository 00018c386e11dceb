"""Loads the user's modules as a replay needs them: as they were then, or as pytest rewrote them."""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder, SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any


class _Loader(SourceFileLoader):
    """Runs code that is given; no bytecode is read or written."""

    def __init__(self, name: str, path: str, code: Callable[[], CodeType]) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code()

    def exec_module(self, module: ModuleType) -> None:
        exec(self._code(), vars(module))


class _Finder:
    """Finds modules as always, and loads some of them from code that is given."""

    def __init__(self, code_of: Callable[[str], Callable[[], CodeType] | None]) -> None:
        self._code_of = code_of

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target)
        code = self._code_of(spec.origin) if spec is not None and spec.origin else None
        if spec is None or code is None:
            return None
        spec.loader = _Loader(name, str(spec.origin), code)
        return spec


def load_from(code_of: Callable[[str], Callable[[], CodeType] | None]) -> None:
    """Load a module from now on with the code that `code_of` has for its file, if it has any."""
    sys.meta_path.insert(0, _Finder(code_of))
