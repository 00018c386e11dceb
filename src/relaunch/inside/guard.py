"""Makes the packages of chosen clones win over every other copy, editable installs included.

Runs inside the user's process under Python 3.6+. `install` takes entries `package=path`, as
RELAUNCH_SRC_ROOTS holds them; the hook calls it. It answers only for those packages.
"""
# Python 3.6 must be able to read this file: no annotations that it would have to evaluate.

import os
import sys


class SourceGuard:
    """The first finder of imports; hands each guarded package to the ordinary machinery."""

    def __init__(self, places: dict) -> None:  # type: ignore[type-arg]  # `dict[...]` is 3.9
        """Take package (dotted when it sits in a namespace) to the folder that holds it."""
        self.places = places

    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        """Answer for a guarded package, and go back to the front if another finder pushed in."""
        self.to_front()
        folder = self.places.get(name)
        if folder is None:
            return None
        from importlib.machinery import PathFinder  # loaded by the interpreter already

        return PathFinder.find_spec(name, [folder])

    def to_front(self) -> None:
        """Stand before every finder but pytest's, which must see modules to rewrite asserts."""
        finders = sys.meta_path  # type: list  # type: ignore[type-arg]  # `list[...]` is 3.9
        at = 0
        while at < len(finders) and type(finders[at]).__name__ == "AssertionRewritingHook":
            at += 1
        if at < len(finders) and finders[at] is self:
            return
        if self in finders:
            finders.remove(self)
        finders.insert(at, self)

    def invalidate_caches(self) -> None:
        """Be a finder like any other to `importlib.invalidate_caches()`."""


def install(roots: list) -> None:  # type: ignore[type-arg]  # `list[...]` is 3.9
    """Guard the packages named in `roots`, entries `package=path`; does nothing without any."""
    places = {}
    for root in roots:
        package, equals, path = root.partition("=")
        if package and equals and path:
            places[package] = os.path.dirname(path)
    if not places:
        return
    SourceGuard(places).to_front()
    # A .pth file may have imported another copy before us; forget it, as nothing holds it yet.
    for name in [n for n in sys.modules if n in places and not _is_from(n, places[n])]:
        for loaded in [n for n in sys.modules if n == name or n.startswith(name + ".")]:
            del sys.modules[loaded]


def _is_from(name: str, folder: str) -> bool:
    file = getattr(sys.modules[name], "__file__", None) or ""
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)
