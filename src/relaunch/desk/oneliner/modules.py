"""Looks for modules in folders, as an import would, without importing anything."""

from __future__ import annotations

import os
import sys

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NATIVE = (".so", ".pyd")
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__))


class Module(Record):
    """A module that an import would find."""

    folders: tuple[str, ...] = ()
    """Where its submodules are; none if it is no package."""
    has_code: bool = True
    """It is more than a folder."""

    def inner(self, name: str) -> Module | None:
        """Return a module in this package."""
        return in_folders(name, self.folders)


class Finder:
    """Finds top-level modules along an import path; the standard library is our own Python's."""

    def __init__(
        self, before: Sequence[str], after: Sequence[str], mapped: Mapping[str, str]
    ) -> None:
        """Look in `before`, the standard library and `after`; `mapped` packages lie elsewhere."""
        self.before, self.after, self.mapped = before, after, mapped

    def __call__(self, name: str) -> Module | None:
        """Return the module of that name."""
        if name in sys.builtin_module_names:
            return Module()
        found = in_folders(name, self.before)
        if found is not None and found.has_code:
            return found
        if name in sys.stdlib_module_names:
            return in_folders(name, (_LIBRARY,)) or Module()
        later = in_folders(name, self.after)
        if later is not None and later.has_code:
            return later
        path = self.mapped.get(name)
        if path:
            return Module(folders=() if path.endswith(".py") else (path,))
        return found or later


def in_folders(name: str, folders: Sequence[str]) -> Module | None:
    """Return the first module of that name in these folders; a mere folder if there is none."""
    mere = []
    for folder in folders:
        path = os.path.join(folder, name)
        if os.path.isdir(path):
            if os.path.exists(os.path.join(path, "__init__.py")) or _native(path, "__init__"):
                return Module(folders=(path,))
            mere.append(path)
        if os.path.exists(f"{path}.py") or _native(folder, name):
            return Module()
    return Module(folders=tuple(mere), has_code=False) if mere else None


def _native(folder: str, name: str) -> bool:
    """Tell whether a folder has a module in machine code, or one whose source is not there."""
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return False
    start = f"{name}."
    return any(
        one.startswith(start) and (one.endswith(_NATIVE) or one == f"{name}.pyc") for one in names
    )
