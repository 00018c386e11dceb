"""Which checkout the tests lie in, and which packages it offers for import."""

from __future__ import annotations

import os
import sys

from relaunch.inside.front import Front
from relaunch.trial.place.layout import build_text, import_root, packages

_BUILT_BY = ("pyproject.toml", "setup.py", "setup.cfg")


def front_of(root: str) -> Front | None:
    """Return the guard for the checkout around `root`; None where there is nothing to import."""
    checkout = _checkout(root)
    if not checkout:
        return None
    found = {
        name: path
        for name, path in packages(checkout).items()
        if name.partition(".")[0] not in sys.stdlib_module_names
    }
    if not found:
        return None
    text = build_text(checkout)
    sure = [
        name
        for name, path in found.items()
        if import_root(name, path) != checkout or f'"{name}"' in text or f"'{name}'" in text
    ]
    return Front(found, sure=sure)


def _checkout(folder: str) -> str:
    """Return the nearest folder that can be installed, no further out than the repository."""
    top = ""
    while True:
        if any(os.path.exists(os.path.join(folder, name)) for name in _BUILT_BY):
            return folder
        top = top or folder
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent
