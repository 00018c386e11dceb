"""Loads our own modules into a program that may replace what everybody uses."""

from __future__ import annotations

import builtins
from importlib.machinery import SourceFileLoader
from importlib.util import spec_from_file_location

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_PACKAGE = "_relaunch_warm."


def finder_of(here: str) -> Any:
    """Return what finds our modules, and gives them builtins that no program can replace."""
    ours = dict(vars(builtins))

    class Loader(SourceFileLoader):
        def exec_module(self, module: ModuleType) -> None:
            vars(module)["__builtins__"] = ours
            super().exec_module(module)

    class Finder:
        @staticmethod
        def find_spec(name: str, *_: object) -> ModuleSpec | None:
            if not name.startswith(_PACKAGE):
                return None
            path = f"{here}/{name.rpartition('.')[2]}.py"
            return spec_from_file_location(name, path, loader=Loader(name, path))

    return Finder
