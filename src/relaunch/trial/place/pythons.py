"""Which Pythons are installed, and which of them a revision allows."""

from __future__ import annotations

import os
import re

from relaunch.proc.capture import capture, own_path
from relaunch.proc.ours import ask_bare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_PYTHON_NAME = re.compile(r"python[23]?(\.\d+)?t?$")
_versions: dict[tuple[str, int], str] = {}


def version_of(python: str) -> str:
    """Return the version of the Python at a path, as `3.11.7`; nothing when it does not run."""
    try:
        asked = (python, os.stat(python).st_mtime_ns)
    except OSError:
        return ""
    if asked not in _versions:
        code = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        said = ask_bare(python, code)
        _versions[asked] = said.text.strip() if said.code == 0 else ""
    return _versions[asked]


def pythons(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """List the installed Pythons as version and path, newest first."""
    found = {os.path.realpath(path): None for path in _candidates(env)}
    known = [(version_of(path), path) for path in found]
    return sorted(
        (pair for pair in known if pair[0]), key=lambda pair: numbers(pair[0]), reverse=True
    )


def _candidates(env: Mapping[str, str]) -> Iterator[str]:
    for folder in own_path(env.get("PATH", os.defpath)).split(os.pathsep):
        if os.path.basename(folder) != "shims":  # pyenv's, whose Pythons come next
            for name in _listed(folder):
                path = os.path.join(folder, name)
                if _PYTHON_NAME.match(name) and os.access(path, os.X_OK):
                    yield path
    pyenv = env.get("PYENV_ROOT") or os.path.join(env.get("HOME", ""), ".pyenv")
    for version in _listed(os.path.join(pyenv, "versions")):
        yield os.path.join(pyenv, "versions", version, "bin", "python")
    managed = capture(["uv", "python", "dir"], env=env).text.strip()
    for build in _listed(managed) if managed else []:
        yield os.path.join(managed, build, "bin", "python3")


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def suitable(requires_python: str, pythons: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return those Pythons that `>=3.7,<3.10` and the like allow, in their order."""
    parts = [part.strip() for part in requires_python.split(",") if part.strip()]
    return [pair for pair in pythons if all(_allows(part, pair[0]) for part in parts)]


def _allows(part: str, version: str) -> bool:
    """Judge one clause; what is none allows everything."""
    found = re.match(r"(~=|===?|!=|<=|>=|<|>)\s*([\d.]+?)(\.\*)?$", part)
    if not found:
        return True
    how, wanted, mine = found[1], numbers(found[2]), numbers(version)
    if how == "~=":
        return mine >= wanted and mine[: len(wanted) - 1] == wanted[:-1]
    if found[3] or how == "===":
        mine = mine[: len(wanted)]
    length = max(len(mine), len(wanted))
    mine, wanted = _padded(mine, length), _padded(wanted, length)
    return {
        "==": mine == wanted, "===": mine == wanted, "!=": mine != wanted, "<": mine < wanted,
        "<=": mine <= wanted, ">": mine > wanted, ">=": mine >= wanted,
    }[how]  # fmt: skip


def numbers(version: str) -> tuple[int, ...]:
    """Return `3.11.7` as numbers, three at most."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])


def _padded(numbers: Sequence[int], length: int) -> tuple[int, ...]:
    return (*numbers, *(0,) * (length - len(numbers)))
