"""Why Python loaded this file: by which finder, from which entry of the path, and who put it."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def origin_of(name: str, path: str) -> str:
    """Say in a few words where the file of a module came from."""
    if name in sys.builtin_module_names or not path:
        return "it is built into Python"
    finder = _finder_of(name, path)
    return finder or entry_of(name, path) or f"{_root(name, path)}, which is not on sys.path"


def entry_of(name: str, path: str) -> str:
    """Name the path entry or the package through which a file was found; empty if none."""
    folder = _root(name, path)
    for index, entry in enumerate(sys.path):
        if os.path.realpath(entry or os.getcwd()) == os.path.realpath(folder):
            return f"sys.path[{index}] {entry or os.getcwd()}{_put_by(entry, index)}"
    for package, found in _package_paths(name):
        if os.path.realpath(found) == os.path.realpath(os.path.dirname(path)):
            return f"{found}, a part of the package {package}"
    return ""


def _finder_of(name: str, path: str) -> str:
    """Name an import hook that gave the file, where one did and not the path."""
    within: Any = None
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is not None:
        within = getattr(parent, "__path__", None)
    for finder in sys.meta_path:
        kind = finder if isinstance(finder, type) else type(finder)
        if kind.__name__ in ("PathFinder", "AssertionRewritingHook"):
            continue
        try:
            spec = finder.find_spec(name, within)
        except Exception:
            continue
        found = getattr(spec, "origin", None)
        if isinstance(found, str) and os.path.realpath(found) == os.path.realpath(path):
            module = kind.__module__
            if module.startswith("__editable__"):
                return f"the editable install {_editable_file(module)}"
            if kind.__name__ == "FrozenImporter":
                return "it is frozen into Python"
            return f"the import hook {module}.{kind.__name__}"
    top = sys.modules.get(name.partition(".")[0])
    if "." in name and top is not None and getattr(top, "__file__", None):
        return _finder_of(name.partition(".")[0], str(top.__file__))
    return ""


def _editable_file(module: str) -> str:
    """Return the file that an editable install put among the packages."""
    for folder in sys.path:
        if os.path.isfile(os.path.join(folder, f"{module}.py")):
            return os.path.join(folder, f"{module}.py")
    return module


def _root(name: str, path: str) -> str:
    """Return the folder, or zip file, from which a module of this name has this path."""
    folder = os.path.dirname(path)
    if os.path.basename(path).startswith("__init__."):
        folder = os.path.dirname(folder)
    for _ in range(name.count(".")):
        folder = os.path.dirname(folder)
    return folder


def _put_by(entry: str, index: int) -> str:
    """Say who put an entry on the path."""
    real = os.path.realpath(entry or os.getcwd())
    flags = sys.flags
    given = [] if flags.ignore_environment else os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if real in [os.path.realpath(one) for one in given if one]:
        return ", from PYTHONPATH"
    for folder, file in _pth_files():
        if real in [os.path.realpath(os.path.join(folder, line)) for line in _lines(folder, file)]:
            return f", put there by {os.path.join(folder, file)}"
    if real.endswith(("site-packages", "dist-packages")):
        return ", where packages are installed"
    if index == 0 and not getattr(flags, "safe_path", False):
        script = sys.argv[0] if sys.argv else ""
        if (
            script.endswith(".py")
            and os.path.realpath(os.path.dirname(os.path.abspath(script))) == real
        ):
            return ", the folder of the script"
        if real == os.path.realpath(os.getcwd()):
            return ", the current folder"
    if real == os.path.realpath(os.path.dirname(os.__file__)):
        return ", the standard library"
    return ", put there while it ran"


def _pth_files() -> Iterator[tuple[str, str]]:
    for folder in sys.path:
        if folder.endswith(("site-packages", "dist-packages")) and os.path.isdir(folder):
            for file in sorted(os.listdir(folder)):
                if file.endswith(".pth"):
                    yield folder, file


def _lines(folder: str, file: str) -> list[str]:
    try:
        with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as text:
            found = [line.strip() for line in text]
    except OSError:
        return []
    return [line for line in found if line and not line.startswith(("#", "import ", "import\t"))]


def _package_paths(name: str) -> Iterator[tuple[str, str]]:
    package = name.rpartition(".")[0]
    for one in getattr(sys.modules.get(package), "__path__", ()):
        yield package, one
