"""What a program that starts now could import: what is installed, and modules of the project."""

from __future__ import annotations

import os
import sys

from .machine import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")
MODULES = (".py", ".so")


class Importable:
    """What a program can import that starts now: what is installed, and what its folders have."""

    def __init__(self) -> None:
        """Look into all folders of the project from which Python imports."""
        self.packages = installed()
        self.tops = frozenset(_own_folders())
        self.names = {folder: names_in(folder) for folder in self.tops}

    def know(self, files: Iterable[str]) -> None:
        """Look into the folders of modules that were found since."""
        for folder in {os.path.dirname(file) for file in files}:
            if folder not in self.names:
                self.names[folder] = names_in(folder)


def names_in(folder: str) -> frozenset[str]:
    """Return the names in a folder that could be modules or packages."""
    try:
        found = os.listdir(folder)
    except OSError:
        return frozenset()
    return frozenset(
        name
        for name in found
        if name.endswith(MODULES) or (name.isidentifier() and name != "__pycache__")
    )


def elsewhere() -> set[str]:
    """Return the names of modules that come with Python or are installed."""
    found = {*sys.stdlib_module_names}
    for folder in _package_folders():
        found.update(name.partition(".")[0] for name in names_in(folder))
    return found


def is_module(path: str) -> bool:
    if not os.path.isdir(path):
        return path.endswith(MODULES)
    return any(name.endswith(MODULES) for name in names_in(path))


def _package_folders() -> list[str]:
    return [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]


def _own_folders() -> list[str]:
    """List the folders of the import path that belong neither to Python nor to its packages."""
    library = os.path.dirname(os.__file__)
    theirs = {library, os.path.join(library, "lib-dynload"), *_package_folders()}
    return [
        os.path.abspath(one) for one in sys.path if one not in theirs and os.path.isdir(one or ".")
    ]


def installed() -> str:
    """Return a name for the Python and the packages that a program started now would get."""
    from _blake2 import blake2b

    parts = [repr(identity(sys.executable))]
    for folder in _package_folders():
        try:
            with os.scandir(folder) as entries:
                parts += sorted(
                    f"{one.name} {one.stat().st_mtime_ns}"
                    for one in entries
                    if one.name.endswith(_OF_PACKAGES)
                )
        except OSError:
            parts.append(f"no {folder}")
    text = "\n".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=16).hexdigest()
