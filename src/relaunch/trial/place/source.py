"""Runs a command against the packages of chosen clones, and proves afterwards which were loaded."""

from __future__ import annotations

import os

from relaunch.errors import PlaceError
from relaunch.inside.layout import import_root, packages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOTS = "RELAUNCH_SRC_ROOTS"
"""Entries `package=path` for the guard inside the process; PYTHONPATH loses to some finders."""


def source_env(
    clones: Sequence[str], env: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables to set on top of `env`, and package to the path it must come from.

    An earlier clone wins where two offer the same package, as on PYTHONPATH.
    """
    expected: dict[str, str] = {}
    roots: list[str] = []
    for clone in clones:
        offered = _offered(clone)
        for package, path in offered.items():
            root = import_root(package, path)
            if root not in roots:
                roots.append(root)
            expected.setdefault(package, path)
    if not expected:
        return {}, {}
    before = [entry for entry in env.get("PYTHONPATH", "").split(os.pathsep) if entry]
    changes = {
        "PYTHONPATH": os.pathsep.join([*roots, *(e for e in before if e not in roots)]),
        ROOTS: os.pathsep.join(f"{package}={path}" for package, path in expected.items()),
    }
    return changes, expected


def led_to(env: Mapping[str, str]) -> dict[str, str]:
    """Return package to the path it must come from, as such variables say."""
    pairs = (entry.partition("=") for entry in env.get(ROOTS, "").split(os.pathsep))
    return {package: path for package, equals, path in pairs if equals}


def _offered(clone: str) -> dict[str, str]:
    folder = os.path.abspath(os.path.expanduser(clone))
    if not os.path.isdir(folder):
        raise PlaceError(f"--src {clone}: no such directory", hint="rl --src ../CLONE -- CMD")
    if os.pathsep in folder:
        raise PlaceError(f"--src {clone}: PYTHONPATH cannot hold a path with `{os.pathsep}`")
    found = packages(folder)
    if os.path.exists(os.path.join(folder, "__init__.py")):
        found = {os.path.basename(folder): folder}  # the package itself was named
    if not found:
        raise PlaceError(
            f"--src {clone}: no package there, neither in src/ nor flat",
            hint=_inner_hint(folder) or "name the directory that holds pyproject.toml",
        )
    return found


def _inner_hint(folder: str) -> str:
    """Point at a project further inside, as in a repository of several."""
    for top in ("", "packages", "libs", "python"):
        base = os.path.join(folder, top)
        try:
            names = sorted(os.listdir(base))
        except OSError:
            continue
        for name in names:
            inner = os.path.join(base, name)
            if os.path.exists(os.path.join(inner, "pyproject.toml")) and packages(inner):
                return f"rl --src {inner} -- CMD"
    return ""


def proof(expected: Mapping[str, str], loaded: Mapping[str, str]) -> list[str]:
    """Say of each package which file the process really loaded, WRONG where it is another."""
    return [_proved(package, path, loaded.get(package, "")) for package, path in expected.items()]


def _proved(package: str, path: str, file: str) -> str:
    if not file:
        return f"{package} was not imported"
    if is_inside(file, path):
        return f"{package} was loaded from {file}"
    return f"WRONG: {package} was loaded from {file}, not from {path}"


def is_inside(file: str, path: str) -> bool:
    """Tell whether a loaded file is `path` or lies in it, links followed."""
    real, wanted = os.path.realpath(file), os.path.realpath(path)
    return real == wanted or real.startswith(wanted + os.sep)
