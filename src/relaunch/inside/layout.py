"""Finds the packages a checkout offers for import: `src/`, flat, or a folder its build names."""

from __future__ import annotations

import os
from itertools import islice

BUILD_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_BUILT_BY = ("pyproject.toml", "setup.py")
_DECLARED_FOLDERS = ("lib", "python", "source", "packages")
_NEVER_THE_PACKAGE = frozenset(
    (
        "tests", "test", "testing", "docs", "doc", "examples", "example", "scripts", "script",
        "tools", "benchmarks", "benchmark", "build", "dist", "env", "venv", "node_modules",
        "setup", "conftest", "noxfile", "tasks", "fabfile", "dodo",
    )
)  # fmt: skip
_NAMESPACE_DEPTH = 3
_MANY = 1000


def packages(checkout: str) -> dict[str, str]:
    """Return package to its directory, or module to its file; dotted names inside namespaces."""
    found: dict[str, str] = {}
    for folder in _roots(checkout):
        for name, path in _packages_in(folder, depth=_NAMESPACE_DEPTH).items():
            found.setdefault(name, path)
    return found or _flat(checkout)


def import_root(package: str, path: str) -> str:
    """Return the folder that must be on sys.path for `package` to come from `path`."""
    for _ in package.split("."):
        path = os.path.dirname(path)
    return path


def built_root(checkout: str) -> str:
    """Return what comes first on PYTHONPATH to load the packages of a checkout that is built."""
    if not any(os.path.exists(os.path.join(checkout, name)) for name in _BUILT_BY):
        return ""
    return source_root(checkout)


def source_root(checkout: str) -> str:
    """Return `src` of a checkout, or itself where there is none."""
    inner = os.path.join(checkout, "src")
    return inner if os.path.isdir(inner) else checkout


def _roots(checkout: str) -> list[str]:
    roots = []
    src = os.path.join(checkout, "src")
    if os.path.isdir(src) and not os.path.exists(os.path.join(src, "__init__.py")):
        roots.append(src)
    folders = [name for name in _DECLARED_FOLDERS if os.path.isdir(os.path.join(checkout, name))]
    if folders:
        text = build_text(checkout)
        for name in folders:
            if f'"{name}"' in text or f"'{name}'" in text or f"= {name}\n" in text:
                roots.append(os.path.join(checkout, name))
    return roots


def build_text(checkout: str) -> str:
    """Return the text of the files that say how the checkout is built."""
    texts = []
    for name in BUILD_FILES:
        try:
            with open(os.path.join(checkout, name), encoding="utf-8", errors="replace") as file:
                texts.append(file.read(1 << 18))
        except OSError:
            continue
    return "\n".join(texts)


def _packages_in(folder: str, *, depth: int) -> dict[str, str]:
    """Return what can be imported from `folder`; a folder without `__init__.py` is a namespace."""
    found: dict[str, str] = {}
    for entry in _entries(folder):
        name, ending = os.path.splitext(entry.name)
        if entry.name.isidentifier() and entry.is_dir():
            if entry.name == "__pycache__":
                continue
            if os.path.exists(os.path.join(entry.path, "__init__.py")):
                found[entry.name] = entry.path
            elif depth > 1:
                inner = _packages_in(entry.path, depth=depth - 1)
                found.update({f"{entry.name}.{key}": path for key, path in inner.items()})
        elif ending == ".py" and name.isidentifier() and name != "__init__":
            found[name] = entry.path
    return found


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a folder, sorted; of a giant one only the beginning, for it holds data."""
    try:
        with os.scandir(folder) as entries:
            return sorted(islice(entries, _MANY), key=lambda entry: entry.name)
    except OSError:
        return []


def _flat(checkout: str) -> dict[str, str]:
    """Return the packages beside the build files; single modules only where there is no package."""
    folders: dict[str, str] = {}
    modules: dict[str, str] = {}
    for entry in _entries(checkout):
        name, ending = os.path.splitext(entry.name)
        if not name.isidentifier() or name in _NEVER_THE_PACKAGE:
            continue
        if not ending and os.path.exists(os.path.join(entry.path, "__init__.py")):
            folders[name] = entry.path
        elif ending == ".py":
            modules[name] = entry.path
    return folders or modules
