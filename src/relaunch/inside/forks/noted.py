"""Notes at exit which modules this process has, and which of them are no code of the user.

Each is of one kind: `library`, which the next start may have before the program; `known`, which
comes along with those; `own`, which nothing but the program may load.
"""

from __future__ import annotations

import marshal
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LIBRARY, KNOWN, OWN = "library", "known", "own"
VERSION = 2
"""Of marshal's format: every Python reads it."""
_open, _write, _close, _rename = os.open, os.write, os.close, os.rename
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_REWRITER = "AssertionRewritingHook"
"""Loads modules whose assertions pytest rewrites: loaded in another way they are others."""


def write(folder: str, roots: list[str]) -> None:
    """Leave the note in a folder; below `roots` lies the user's own code."""
    tops = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
    facts = {
        "parent": os.getppid(),
        "argv": list(sys.orig_argv),
        "path": [str(one) for one in sys.path],
        "modules": modules(tops),
    }
    path = os.path.join(folder, f"{os.getpid()}.modules")
    fd = _open(f"{path}.tmp", _NEW, 0o600)
    data = marshal.dumps(facts, VERSION)
    while data:
        data = data[_write(fd, data) :]
    _close(fd)
    _rename(f"{path}.tmp", path)


def modules(tops: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """List name, kind and file of all modules, in the order in which they were begun."""
    started = getattr(getattr(sys.modules.get("__main__"), "__spec__", None), "name", "")
    places = Places(tops)
    found = []
    for name, module in list(sys.modules.items()):
        if name != "__main__" and isinstance(name, str):
            kind, file = _kind(name, module, places)
            # What is run as `__main__` must not be there before.
            found.append((name, KNOWN if kind == LIBRARY and name == started else kind, file))
    return found


def _kind(name: str, module: Any, places: Places) -> tuple[str, str]:
    try:
        spec, file = module.__spec__, getattr(module, "__file__", None)
        if isinstance(file, str) and not os.path.isabs(file) and not os.path.exists(file):
            return KNOWN, ""  # made by code, with a name instead of a file: torch.ops
        files = [file] if isinstance(file, str) else [*map(str, getattr(module, "__path__", ()))]
        if any(places.is_own(os.path.dirname(one) if file else one) for one in files):
            return OWN, str(file or "")
        if spec is None or spec.name != name or not isinstance(file, str):
            return KNOWN, ""
        if type(spec.loader).__name__ == _REWRITER:
            return OWN, file
        return LIBRARY, file
    except Exception:
        return KNOWN, ""


class Places:
    """Tells the user's own folders from those of Python and of what is installed."""

    def __init__(self, tops: tuple[str, ...]) -> None:
        """Take the roots of the user's code; of the first one all is the user's."""
        home = os.path.dirname(os.__file__)
        shared = [one for one in sys.path if one.endswith("lib-dynload")]
        self._bases = tuple(os.path.join(os.path.realpath(one), "") for one in (home, *shared))
        self._tops = tops
        self._known: dict[str, bool] = {}

    def is_own(self, folder: str) -> bool:
        """Tell whether a folder has code of the user: neither Python's own nor installed."""
        if folder not in self._known:
            self._known[folder] = self._is_own(os.path.join(os.path.realpath(folder), ""))
        return self._known[folder]

    def _is_own(self, real: str) -> bool:
        if "/site-packages/" in real or "/dist-packages/" in real:
            # A virtual environment may lie in the user's tree, but no checkout has one.
            return real.startswith(self._tops[:1])
        return real.startswith(self._tops) or not real.startswith(self._bases)
