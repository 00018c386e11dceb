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
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Pin = tuple[str, str, str]
    """A package, its version or address, and where it is needed: a marker, or nothing."""

_INSTALLED = re.compile(r"([A-Za-z0-9][\w.]*)-([^-]+)(?:-py[\d.]+)?\.(?:dist|egg)-info$")
_PIN = re.compile(
    r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:===?\s*([^\s;,#]+)|@\s*(\S+))"
    r"(?:\s*;\s*([^#\n]+?)(?=\s+(?:--|#)|\s*$))?"
)
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


def editable(folders: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return what is installed from a tree that is worked on, and what it puts on the path."""
    found: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            told = _INSTALLED.match(entry)
            inner = os.path.join(folder, entry)
            if told and _is_editable(read_if_there(os.path.join(inner, "direct_url.json"))):
                listed = read_if_there(os.path.join(inner, "RECORD")).splitlines()
                names = [line.partition(",")[0] for line in listed if ".pth," in line]
                lines = [
                    line.strip()
                    for name in names
                    for line in read_if_there(os.path.join(folder, name)).splitlines()
                ]
                found.setdefault(canonical(told[1]), tuple(filter(os.path.isdir, lines)))
    return found


def _is_editable(text: str) -> bool:
    try:
        return bool(loads(text)["dir_info"]["editable"])
    except (ValueError, LookupError, TypeError):
        return False


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
            found = _read_pipfile_lock(loads(text))
        elif base.endswith(".lock") or base.startswith("pylock."):
            found = _read_toml(text)
        else:
            found = _read_pins(text)
        return _joined(found)
    except (
        ValueError,
        LookupError,
        AttributeError,
        TypeError,
    ) as error:  # of a file that has another form
        raise PlaceError(f"`{name}` cannot be read as a lock: {error}") from error


def lines_of(name: str, version: str) -> list[str]:
    """Return what an installer takes of a package as `read_lock` tells it, in one line or more."""
    found = []
    for one in version.split(", "):
        place, _, marker = one.partition(" ; ")
        head = f"{name} @ {place} " if "://" in place else f"{name}=={place}"
        found.append(f"{head}; {marker}" if marker else head.strip())
    return found


def _joined(pins: Iterable[Pin]) -> dict[str, str]:
    versions: dict[str, set[str]] = {}
    for name, version, marker in pins:
        # Whether it holds here is for the installer to say.
        told = f"{version} ; {marker}" if marker else version
        versions.setdefault(canonical(name), set()).add(told)
    return {name: ", ".join(sorted(versions[name])) for name in sorted(versions)}


def _read_toml(text: str) -> Iterator[Pin]:
    """Read poetry.lock, uv.lock, pdm.lock and pylock.toml: a table for each package."""
    import tomllib

    data = tomllib.loads(text)
    every = [*data.get("package", ()), *data.get("packages", ())]
    needed = _needed_where(every)
    for package in every:
        source = package.get("source", package)
        if not _is_own(source):
            version = _address(package, source) or str(package.get("version", ""))
            marker = package.get("markers") or package.get("marker") or needed.get(package["name"])
            yield package["name"], version, marker if isinstance(marker, str) else ""


def _is_own(source: Mapping[str, Any]) -> bool:
    return bool(_OWN & {*source, source.get("type")})


def _address(package: Mapping[str, Any], source: Mapping[str, Any]) -> str:
    """Return where a package is taken from, if not by its version, as an installer wants it."""
    vcs = package.get("vcs", {})
    place = str(source.get("git") or source.get("url") or vcs.get("url") or "")
    at = source.get("resolved_reference") or package.get("revision") or vcs.get("commit-id") or ""
    below = source.get("subdirectory") or vcs.get("subdirectory") or ""
    if "git" in source and not at:  # uv: https://host/fork.git?rev=main&subdirectory=sub#abc123
        place, _, at = place.partition("#")
        place, _, asked = place.partition("?")
        below = dict(one.split("=", 1) for one in asked.split("&") if "=" in one).get(
            "subdirectory", ""
        )
    is_git = "git" in (*source, source.get("type"), vcs.get("type"))
    if not is_git:
        return place if "url" in source else ""
    return _git_address(place, str(at), str(below))


def _git_address(place: str, at: str, below: str = "") -> str:
    if "://" not in place:  # git@host:owner/name.git
        place = f"ssh://{place.replace(':', '/', 1)}"
    whole = f"git+{place.removeprefix('git+')}{f'@{at}' if at else ''}"
    return f"{whole}#subdirectory={below}" if below else whole


def _needed_where(every: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the markers under which packages of a uv.lock are needed; it has them at who needs.

    Only where it has the project itself, from which all others are needed.
    """
    edges = {one["name"]: [*_edges(one)] for one in every}
    reached = {one["name"]: "" for one in every if _is_own(one.get("source", {}))}
    queue = [*reached]
    for name in queue:  # by what is needed everywhere
        for other, marker in edges.get(name, ()):
            if not marker and other not in reached:
                reached[other] = ""
                queue.append(other)
    always = {*reached}
    queue = [*always]
    for name in queue:
        for other, marker in edges.get(name, ()):
            if other in always:
                continue
            wanted = " and ".join(f"({one})" for one in (reached[name], marker) if one)
            if other not in reached:
                queue.append(other)
                reached[other] = wanted
            elif wanted not in reached[other]:
                reached[other] = f"({reached[other]}) or ({wanted})"
    return reached


def _edges(package: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    groups = [package.get("dependencies", ())]
    for kind in ("optional-dependencies", "dev-dependencies"):
        groups += package.get(kind, {}).values()
    for group in groups:
        if isinstance(group, list):
            for one in group:
                marker = str(one.get("marker", "")) if isinstance(one, dict) else ""
                if isinstance(one, dict):
                    # What holds for an extra alone is not known to be asked for, and may be.
                    yield one["name"], "" if "extra ==" in marker else marker


def _read_pipfile_lock(data: Mapping[str, Any]) -> Iterator[Pin]:
    for section in ("default", "develop"):
        for name, entry in data.get(section, {}).items():
            version = str(entry.get("version", "")).lstrip("=")
            if entry.get("git"):
                below = str(entry.get("subdirectory", ""))
                version = _git_address(entry["git"], str(entry.get("ref", "")), below)
            yield name, version, str(entry.get("markers", ""))


def _read_pins(text: str) -> Iterator[Pin]:
    """Read `pip freeze` and pinned requirements; what is not pinned to one version is left out."""
    for line in map(str.strip, text.replace("\\\n", " ").splitlines()):
        url, pin = _FROM_URL.match(line), _PIN.match(line)
        if url:
            yield url[2], url[1], ""
        elif pin and not line.startswith("-"):
            yield pin[1], pin[2] or pin[3], (pin[4] or "").strip()
