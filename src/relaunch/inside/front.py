"""Has tests import the checkout they lie in, never another copy of it, and notes what that changed.

Another copy is one that was installed, or another clone that an editable install or PYTHONPATH
leads to. Parts that only a build makes, compiled modules and generated files, are borrowed from it.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

from relaunch.inside.guard import SourceGuard
from relaunch.inside.layout import BUILD_FILES, build_text, import_root, packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_ALIKE = 0.5
"""A flat package and another of its name are copies of one if they share so many of their files."""
_GENERATED = (b"generated", b"do not edit", b"automatically")
_SAYS_SO_WITHIN = 2000


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
    flat = [name for name, path in found.items() if import_root(name, path) == checkout]
    text = build_text(checkout) if flat else ""
    doubtful = [name for name in flat if f'"{name}"' not in text and f"'{name}'" not in text]
    return Front(found, doubtful=doubtful)


def _checkout(folder: str) -> str:
    """Return the nearest folder that can be installed, no further out than the repository."""
    while True:
        if any(os.path.exists(os.path.join(folder, name)) for name in BUILD_FILES):
            return folder
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return ""
        folder = parent


class Front(SourceGuard):
    """The first finder of imports; answers for the packages of one checkout."""

    def __init__(self, packages: Mapping[str, str], *, doubtful: Iterable[str] = ()) -> None:
        """Take package to its folder or file; `doubtful` ones win over copies of them only."""
        super().__init__({name: os.path.dirname(path) for name, path in packages.items()})
        self._doubtful = frozenset(doubtful)
        self._namespaces: dict[str, str] = {}
        """Package without an `__init__` to the folder that has it."""
        for name, folder in self.places.items():
            for depth in range(name.count(".")):
                outer = name.rsplit(".", depth + 1)[0]
                folder = os.path.dirname(folder)
                self._namespaces[outer] = folder
        self._twins: dict[str, str] = {}
        """Package to the folder of the copy that would have been imported."""
        self._asking = False
        self.prevented: dict[str, dict[str, str]] = {}
        """Package to which file `instead` of ours, and `why` it would have been found."""
        self.borrowed: dict[str, str] = {}
        """Module to the file, in another copy, that only a build makes."""
        self.early: dict[str, str] = {}
        """Package to the file from which it had been imported before we came."""

    def install(self) -> None:
        """Stand in front, and note what came too early to be led."""
        for name, folder in self.places.items():
            file = getattr(sys.modules.get(name), "__file__", None)
            if isinstance(file, str) and not _is_below(file, folder):
                self.early[name] = file
        self.to_front()

    def find_spec(self, name: str, path: Any = None, target: object = None) -> Any:
        """Answer for our packages and what is in them."""
        if self._asking:
            return None
        self.to_front()
        folder = self.places.get(name)
        if folder is not None:
            return self._package(name, folder, path)
        if name in self._namespaces:
            return self._namespace(name, path)
        if any(name.startswith(f"{twin}.") for twin in self._twins):
            return self._part(name, path)
        return None

    def _namespace(self, name: str, path: Any) -> Any:
        """Answer for a package without an `__init__` that nobody else has a part of."""
        if self._other(name, path) is not None:
            return None  # what is in it, and ours, is found all the same
        return PathFinder.find_spec(name, [self._namespaces[name]])

    def _package(self, name: str, folder: str, path: Any) -> Any:
        ours = PathFinder.find_spec(name, [folder])
        if ours is None or name in self.prevented:
            return ours
        theirs = self._other(name, path)
        if theirs is None or _is_same(ours, theirs):
            return ours
        if name in self._doubtful and not _is_copy(ours, theirs):
            del self.places[name]  # another package that happens to have this name
            return None
        twin = _file(theirs)
        self.prevented[name] = {"file": _file(ours), "instead": twin, "why": _why(name, twin)}
        self._twins[name] = os.path.dirname(twin) if theirs.submodule_search_locations else ""
        return ours

    def _part(self, name: str, path: Any) -> Any:
        """Find a module in a package of ours, whatever an import hook makes of its name."""
        ours = PathFinder.find_spec(name, path)
        if ours is not None:
            return ours
        top = next((one for one in self._twins if name.startswith(one + ".")), "")
        folder = self._twins.get(top)
        if not folder:
            return None
        inner = name[len(top) + 1 :].split(".")[:-1]
        theirs = PathFinder.find_spec(name, [os.path.join(folder, *inner)])
        if theirs is None or not _is_built(theirs.origin or ""):
            return None
        self.borrowed[name] = theirs.origin or ""
        return theirs

    def _other(self, name: str, path: Any) -> Any:
        """Return what would be found without us."""
        self._asking = True
        try:
            for finder in sys.meta_path:
                if finder is self or type(finder).__name__ == "AssertionRewritingHook":
                    continue
                try:
                    spec = finder.find_spec(name, path)
                except Exception:
                    continue
                if spec is not None:
                    return spec
        finally:
            self._asking = False
        return None


def _file(spec: Any) -> str:
    folders = [*(spec.submodule_search_locations or ())]
    return str(spec.origin or (folders[0] if folders else ""))


def _is_same(one: Any, other: Any) -> bool:
    return os.path.realpath(_file(one)) == os.path.realpath(_file(other))


def _is_below(file: str, folder: str) -> bool:
    return os.path.realpath(file).startswith(os.path.realpath(folder) + os.sep)


def _is_copy(ours: Any, theirs: Any) -> bool:
    """Tell whether two packages of one name are the same project, by the files they have."""
    if not theirs.submodule_search_locations or not ours.submodule_search_locations:
        return False
    here, there = (_files(spec.submodule_search_locations) for spec in (ours, theirs))
    return len(here & there) >= max(1, _ALIKE * min(len(here), len(there)))


def _files(folders: Iterable[str]) -> set[str]:
    found: set[str] = set()
    for folder in folders:
        try:
            found.update(name for name in os.listdir(folder) if not name.startswith("__"))
        except OSError:
            continue
    return found


def _is_built(file: str) -> bool:
    """Tell a compiled module, and a file that says it was generated."""
    if file.endswith(tuple(EXTENSION_SUFFIXES)):
        return True
    try:
        with open(file, "rb") as source:
            begins = source.read(_SAYS_SO_WITHIN).lower()
    except OSError:
        return False
    return any(word in begins for word in _GENERATED)


def _why(name: str, file: str) -> str:
    from relaunch.inside.probe.origin import origin_of

    try:
        return origin_of(name, file)
    except Exception:
        return ""
