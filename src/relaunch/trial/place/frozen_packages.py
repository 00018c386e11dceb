"""Which packages, in which versions: what a Python has, what a lock says, and what changed."""

from __future__ import annotations

import os
import re

from relaunch.errors import PlaceError
from relaunch.jsontext import loads
from relaunch.record import Record
from relaunch.textfile import read_if_there
from relaunch.trial.place.interpreter import interpreter
from relaunch.trial.place.stated.line import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_INSTALLED = re.compile(r"([A-Za-z0-9][\w.]*)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info$")
_PIN = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:===?\s*([^\s;,#]+)|@\s*(\S+))")
_FROM_URL = re.compile(r"(?:-e\s+|--editable[\s=]+)?(\S+://\S+?)#(?:\S*&)?egg=([\w.-]+)")
_OWN = frozenset(("editable", "virtual", "directory", "path"))
"""Where the sources of a lock say that a package is the project's own."""


class Change(Record):
    """A package that is not the same on both sides; empty where it is not there at all."""

    name: str
    old: str
    new: str


def freeze(python: str, *, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return name to version of what `python` would import, read from its folders alone."""
    found = interpreter((python,), os.environ if env is None else env, os.getcwd())
    if found is None:
        raise PlaceError(f"`{python}` is no Python", hint=f"ls -l {python}")
    packages: dict[str, str] = {}
    for folder in found.site_packages:
        for entry in sorted(os.listdir(folder)):
            told = _INSTALLED.match(entry)
            if told:
                packages.setdefault(canonical(told[1]), told[2])
    return packages


def pins(folder: str) -> dict[str, str]:
    """Return what is installed in one folder, as an installer would take it again, by name."""
    found: dict[str, str] = {}
    for entry in sorted(os.listdir(folder)):
        told = _INSTALLED.match(entry)
        if told:
            url = _direct(read_if_there(os.path.join(folder, entry, "direct_url.json")))
            name = canonical(told[1])
            found[name] = f"{name} @ {url}" if url else f"{name}=={told[2]}"
    return found


def _direct(text: str) -> str:
    """Return the address in a direct_url.json, with the commit that was taken."""
    try:
        said: dict[str, Any] = loads(text)
        vcs = said.get("vcs_info")
        return f"{vcs['vcs']}+{said['url']}@{vcs['commit_id']}" if vcs else str(said["url"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return ""


def provider(folders: Iterable[str], name: str) -> str:
    """Name the installed package that has a module or a command called `name`."""
    heads = (f"{name}/__init__.py,", f"{name}.py,", f"../../../bin/{name},")
    for folder in folders:
        for entry in sorted(os.listdir(folder)):
            told = _INSTALLED.match(entry)
            listed = read_if_there(os.path.join(folder, entry, "RECORD")) if told else ""
            if told and any(line.startswith(heads) for line in listed.splitlines()):
                return canonical(told[1])
    return ""


def changed(good: Mapping[str, str], bad: Mapping[str, str]) -> list[Change]:
    """List what differs from `good` to `bad`, by name."""
    return [
        Change(name=name, old=good.get(name, ""), new=bad.get(name, ""))
        for name in sorted({*good, *bad})
        if good.get(name, "") != bad.get(name, "")
    ]


def read_lock(text: str, name: str) -> dict[str, str]:
    """Return name to version of a lock or of pins, told apart by the name of the file.

    A package that is there in several versions, each for some Pythons, has them all.
    """
    base = os.path.basename(name)
    try:
        if base == "Pipfile.lock":
            pairs = _read_pipfile_lock(loads(text))
        elif base.endswith(".lock") or base.startswith("pylock."):
            pairs = _read_toml(text)
        else:
            pairs = _read_pins(text)
        return _joined(pairs)
    except (
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:  # of a file that has another form
        raise PlaceError(f"`{name}` cannot be read as a lock: {error}") from error


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    versions: dict[str, set[str]] = {}
    for name, version in pairs:
        versions.setdefault(canonical(name), set()).add(version)
    return {name: ", ".join(sorted(versions[name])) for name in sorted(versions)}


def _read_toml(text: str) -> Iterator[tuple[str, str]]:
    """Read poetry.lock, uv.lock, pdm.lock and pylock.toml: a table for each package."""
    import tomllib

    data = tomllib.loads(text)
    for package in (*data.get("package", ()), *data.get("packages", ())):
        source = package.get("source", package)
        if not _OWN & {*source, source.get("type")}:
            yield package["name"], _commit(package, source) or str(package.get("version", ""))


def _commit(package: Mapping[str, Any], source: Mapping[str, Any]) -> str:
    """Return the commit of a package that is taken from a repository: versions stay the same."""
    place = str(source.get("git") or source.get("url") or "")
    at = source.get("resolved_reference") or package.get("revision")
    return f"{place}@{at}" if at else place if "git" in source else ""


def _read_pipfile_lock(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for section in ("default", "develop"):
        for name, entry in data.get(section, {}).items():
            version = str(entry.get("version", "")).lstrip("=")
            yield name, version or f"{entry.get('git', '')}@{entry.get('ref', '')}".strip("@")


def _read_pins(text: str) -> Iterator[tuple[str, str]]:
    """Read `pip freeze` and pinned requirements; what is not pinned to one version is left out."""
    for line in map(str.strip, text.replace("\\\n", " ").splitlines()):
        url, pin = _FROM_URL.match(line), _PIN.match(line)
        if url:
            yield url[2], url[1]
        elif pin and not line.startswith("-"):
            yield pin[1], pin[2] or pin[3]
