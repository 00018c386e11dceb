"""Tells the user's own code from libraries and from ours, by where its file lies."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_INSTALLED = ("/site-packages/", "/dist-packages/")
_HERE = __file__.rpartition("/")[0].rpartition("/")[0] + "/"


class Own:
    """Knows the roots of the user's code, and where Python's own library lies."""

    def __init__(self, roots: Iterable[str]) -> None:
        """Take the folders that are the user's, as absolute paths."""
        self._roots = [root.rstrip("/") + "/" for root in roots if root]
        folders = {sys.prefix, sys.base_prefix, getattr(sys, "_stdlib_dir", "") or sys.prefix}
        lib = f"/lib/python{sys.version_info[0]}.{sys.version_info[1]}/"
        self._library = tuple(f"{folder}{lib}" for folder in folders)

    def has(self, file: object) -> bool:
        """Tell whether a file is the user's."""
        if not isinstance(file, str) or file[:1] in ("", "<") or file.startswith(_HERE):
            return False
        for root in self._roots:
            if file.startswith(root):
                inner = file[len(root) - 1 :]
                return not any(name in inner for name in _INSTALLED)
        return not file.startswith(self._library) and not any(n in file for n in _INSTALLED)

    def has_module(self, module: object) -> bool:
        """Tell whether a module is the user's."""
        return self.has(module_file(module))


def module_file(module: object) -> str:
    """Return the file of a module; Python forgets that of a script when it has run."""
    loader = getattr(module, "__loader__", None)
    found = getattr(module, "__file__", None) or getattr(loader, "path", None)
    return found if isinstance(found, str) else ""


def modules(own: Own) -> tuple[list[str], dict[str, str]]:
    """Name the modules that are libraries, in their order; and the user's, with their files."""
    found: list[str] = []
    mine: dict[str, str] = {}
    for name, module in list(sys.modules.items()):
        if own.has_module(module):
            mine[name] = module_file(module)
            continue
        spec = getattr(module, "__spec__", None)
        if spec is not None and getattr(spec, "origin", None) not in (None, "built-in", "frozen"):
            found.append(name)
    return found, mine
