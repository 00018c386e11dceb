"""Foretells the `sys.path` of a command and which of its entries would provide a package."""

from __future__ import annotations

import os

from relaunch.inside.layout import build_text
from relaunch.inside.protocol import PYTEST
from relaunch.record import Record
from relaunch.trial.place.interpreter import find_start

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.trial.place.interpreter import Start

_CONFTEST = "conftest.py"
_PYTEST = ("pytest", "py.test")


class Entry(Record):
    """One place imports are looked for, and why it is one."""

    path: str
    why: str


def import_path(start: Start, *, cwd: str, project: str) -> list[Entry]:
    """Return the places a command would import from, in order; the standard library left out."""
    env = start.env
    entries: list[Entry] = []
    isolated = "I" in start.flags
    if is_pytest(start):
        entries += _pytest_entries(start, cwd=cwd, project=project)
    first = first_entry(start, cwd)
    entries += [first] if first is not None else []
    if not (isolated or "E" in start.flags):
        for name in env.get("PYTHONPATH", "").split(os.pathsep):
            if name:
                path = os.path.normpath(os.path.join(cwd, name))
                entries.append(Entry(path=path, why="PYTHONPATH"))
    if "S" not in start.flags:
        for site in start.python.site_packages:
            entries.append(Entry(path=site, why="an installed copy"))
            entries += _linked_in(site)
    return entries


def linked_folders(sites: Sequence[str]) -> list[str]:
    """Return the folders that installs in place put on the import path, in order."""
    found = []
    for site in sites:
        for entry in _linked_in(site):
            folder = os.path.dirname(entry.path) if "=" in entry.why else entry.path
            found.append(os.path.normpath(folder))
    return list(dict.fromkeys(found))


def provider(package: str, path: list[Entry]) -> Entry | None:
    """Return where `package` would be found first, with the path of the package itself."""
    inner = package.replace(".", "/")
    for entry in path:
        if "=" in entry.why:  # an editable finder: answers for one package, after all folders
            continue
        folder = os.path.join(entry.path, inner)
        if os.path.exists(os.path.join(folder, "__init__.py")):
            return Entry(path=folder, why=entry.why)
        if os.path.exists(folder + ".py"):
            return Entry(path=folder + ".py", why=entry.why)
    for entry in path:
        name, equals, _ = entry.why.partition("=")
        if equals and name == package:
            return Entry(path=entry.path, why="an editable install")
    return None


def first_entry(start: Start, cwd: str) -> Entry | None:
    """Return what Python itself puts first for a command, if it puts anything there."""
    is_asked = bool(start.env.get("PYTHONSAFEPATH")) and "E" not in start.flags
    if is_asked or "I" in start.flags or "P" in start.flags:
        return None
    if start.kind not in ("script", "console"):
        return Entry(path=cwd, why="the current directory")
    target = os.path.realpath(start.target)
    if os.path.isdir(target) or _is_archive(target):
        return Entry(path=target, why="the script")
    return Entry(path=os.path.dirname(target), why="beside the script")


def _is_archive(path: str) -> bool:
    """Tell whether a file can be a place of imports: a zip file, with a first line or without."""
    try:
        with open(path, "rb") as file:
            start = file.read(4096)
    except OSError:
        return False
    return start.startswith(b"PK\3\4") or (start.startswith(b"#!") and b"\nPK\3\4" in start)


# --- pytest puts folders in front of everything


def asking_pytest(env: dict[str, str], argv: Sequence[str], cwd: str) -> dict[str, str]:
    """Return the environment of a command; if it is pytest itself, our plugin is active in it.

    What starts pytest in turn, as `make` or `tox`, is not asked.
    """
    if not any("pytest" in word or "py.test" in word for word in argv):
        return env
    start = find_start(argv, env, cwd)
    return {**env, PYTEST: "1"} if start is not None and is_pytest(start) else env


def is_pytest(start: Start) -> bool:
    """Tell whether a command runs pytest."""
    if start.kind == "module":
        return start.target == "pytest"
    return start.kind == "console" and os.path.basename(start.target) in _PYTEST


def _pytest_entries(start: Start, *, cwd: str, project: str) -> list[Entry]:
    """Return the folders pytest inserts: its ini's `pythonpath`, roots of conftest and tests."""
    entries = [
        Entry(path=os.path.join(project, name), why="pytest's pythonpath")
        for name in _ini_pythonpath(project)
    ]
    modes = [word for word in start.words if word.startswith("--import-mode")]
    if any("importlib" in word or "append" in word for word in modes):
        return entries
    named = [os.path.join(cwd, word.partition("::")[0]) for word in start.words if word[0:1] != "-"]
    places = [path for path in named if os.path.exists(path)] or [cwd]
    for place in (*places, os.path.join(project, "tests"), project):
        folder = place if os.path.isdir(place) else os.path.dirname(place)
        holds_tests = place != project or os.path.exists(os.path.join(folder, _CONFTEST))
        if place == cwd and not os.path.exists(os.path.join(folder, _CONFTEST)):
            holds_tests = False
        if holds_tests and os.path.isdir(folder):
            root = _above_packages(folder)
            entries.append(Entry(path=root, why="pytest's rootdir"))
    return entries


def _above_packages(folder: str) -> str:
    while os.path.exists(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    return folder


def _ini_pythonpath(project: str) -> list[str]:
    """Read `pythonpath` from the ini files pytest reads, whatever their quoting."""
    text = build_text(project)
    for name in ("pytest.ini", "tox.ini"):
        try:
            with open(os.path.join(project, name), encoding="utf-8", errors="replace") as file:
                text += "\n" + file.read(1 << 18)
        except OSError:
            continue
    if "pythonpath" not in text:
        return []
    found: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        key, equals, value = line.partition("=")
        if key.strip() != "pythonpath" or not equals:
            continue
        while "[" in value and "]" not in value:
            value += " " + next(lines, "]")
        found += [word.strip("\"', ") for word in value.strip(" []").replace(",", " ").split()]
    return [word for word in found if word]


# --- what site-packages links in


def _linked_in(site: str) -> list[Entry]:
    """Return what `.pth` files add: folders, and the packages of setuptools' editable finders."""
    try:
        names = sorted(os.listdir(site))
    except OSError:
        return []
    entries: list[Entry] = []
    for name in names:
        if name.endswith(".pth"):
            entries += [
                Entry(path=os.path.join(site, line), why="an editable install")
                for line in _lines(os.path.join(site, name))
                if line and line[0] != "#" and not line.startswith(("import ", "import\t"))
            ]
        elif name.startswith("__editable___") and name.endswith("_finder.py"):
            entries += [
                Entry(path=path, why=f"{package}=editable finder")
                for package, path in _finder_mapping(os.path.join(site, name)).items()
            ]
    return entries


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return [line.strip() for line in file.read(1 << 16).splitlines()]
    except OSError:
        return []


def _finder_mapping(path: str) -> dict[str, str]:
    """Read `MAPPING = {'package': '/path'}` from setuptools' generated finder."""
    for line in _lines(path):
        if line.startswith("MAPPING"):
            from ast import literal_eval

            try:
                mapping = literal_eval(line.partition("=")[2].strip())
            except (ValueError, SyntaxError):
                return {}
            return {str(key): str(value) for key, value in mapping.items()}
    return {}
