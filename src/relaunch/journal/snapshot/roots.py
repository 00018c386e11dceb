"""Finds code that runs but lies outside the project: editable installs and PYTHONPATH entries."""

from __future__ import annotations

import os

from relaunch.errors import JournalError
from relaunch.inside.protocol import SITE as HOOK_SITE
from relaunch.journal.home import Home, find_home
from relaunch.journal.snapshot.code import EDITABLE, PYTHONPATH
from relaunch.journal.store import read_json, write_exactly
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def find_extra_roots(
    env: Mapping[str, str], site_packages: Sequence[str], home: Home
) -> list[tuple[str, str]]:
    """List (kind, work tree) of the code outside the project; never site-packages itself."""
    found = [(EDITABLE, path) for path in _editables(site_packages, home)]
    for part in env.get("PYTHONPATH", "").split(os.pathsep):
        if part and part != HOOK_SITE:  # of an rl around this one
            found.append((PYTHONPATH, os.path.abspath(part)))
    roots: dict[str, str] = {}
    sites = [os.path.realpath(site) for site in site_packages]
    for kind, path in found:
        root = _root_of(os.path.realpath(path), home)
        if root and not any(f"{root}/".startswith(f"{site}/") for site in sites):
            roots.setdefault(root, kind)
    return [(kind, path) for path, kind in roots.items()]


def _root_of(path: str, home: Home) -> str:
    """Return the work tree around a path, or the folder itself; empty if it is the project's."""
    if not os.path.isdir(path):
        return ""
    around = find_home(path)
    root = around.project if around.git_dir else path
    project = os.path.realpath(home.project)
    if root == project or (not around.git_dir and f"{root}/".startswith(f"{project}/")):
        return ""
    return "" if around.too_wide or f"{project}/".startswith(f"{root}/") else root


def _editables(site_packages: Iterable[str], home: Home) -> list[str]:
    """Read the folders of installed packages, again only when one of them changed."""
    file = os.path.join(home.journal, "editable.json")
    try:
        known = read_json(file) or {}
    except JournalError:
        known = {}
    now: dict[str, list[object]] = {}
    found: list[str] = []
    for site in site_packages:
        try:
            when = os.stat(site).st_mtime_ns
        except OSError:
            continue
        was = known.get(site)
        now[site] = was if was and was[0] == when else [when, editables_in(site)]
        found += [str(path) for path in now[site][1]]  # type: ignore[attr-defined]  # from JSON
    if any(known.get(site) != was for site, was in now.items()):
        try:
            write_exactly(file, {**known, **now})
        except OSError:
            pass  # it only saves time
    return found


def editables_in(site: str) -> list[str]:
    """List the folders that installed packages point to, in any of the four ways there are."""
    found: list[str] = []
    for name in sorted(os.listdir(site)):
        path = os.path.join(site, name)
        if name.endswith(".pth"):
            found += _pth(path, site)
        elif name.endswith(".egg-link"):
            found += [line.strip() for line in read_if_there(path).splitlines()[:1]]
        elif name.endswith(".dist-info"):
            found += _direct_url(os.path.join(path, "direct_url.json"))
        elif name.startswith("__editable__") and name.endswith("_finder.py"):
            found += _finder(read_if_there(path))
    real = os.path.realpath(site)
    folders = [os.path.realpath(path) for path in found if os.path.isdir(path)]
    return [path for path in dict.fromkeys(folders) if not f"{path}/".startswith(f"{real}/")]


def _pth(path: str, site: str) -> list[str]:
    lines = (line.strip() for line in read_if_there(path).splitlines())
    return [
        os.path.join(site, line)
        for line in lines
        if line and not line.startswith(("#", "import ", "import\t"))
    ]


def _direct_url(path: str) -> list[str]:
    from relaunch.jsontext import loads

    text = read_if_there(path)
    if "editable" not in text:
        return []
    try:
        value = loads(text)
    except ValueError:
        return []
    url = str(value.get("url", ""))
    if not value.get("dir_info", {}).get("editable") or not url.startswith("file://"):
        return []
    from urllib.parse import unquote

    return [unquote(url[7:])]


def _finder(text: str) -> list[str]:
    """Read the packages' folders from the finder that setuptools writes."""
    import ast

    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return []
    for line in body:
        target: ast.expr | None = None
        if isinstance(line, ast.AnnAssign):
            target = line.target
        elif isinstance(line, ast.Assign):
            target = line.targets[0]
        if isinstance(target, ast.Name) and target.id == "MAPPING" and line.value is not None:  # type: ignore[attr-defined]  # both have one
            try:
                mapping = ast.literal_eval(line.value)  # type: ignore[attr-defined]  # both have one
            except ValueError:
                return []
            return [os.path.dirname(str(path)) for path in mapping.values()]
    return []
