"""Requirements in tables: pyproject.toml in the words of each of its tools, and Pipfile."""

from __future__ import annotations

import re

from relaunch.trial.place.stated.line import LINE, VERSION, canonical, normalised
from relaunch.trial.place.stated.lists import reading
from relaunch.trial.place.stated.said import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any


def from_pyproject(texts: Mapping[str, str]) -> Iterator[Said]:
    if "pyproject.toml" not in texts:
        return
    data = read_toml(texts["pyproject.toml"])
    if data is None:
        yield Said(file="pyproject.toml", dynamic=True)
        return
    tool = table_at(data, "tool")
    build = strings_of(table_at(data, "build-system").get("requires"))
    groups = _groups(table_at(data, "dependency-groups"))
    for name, lines in table_at(tool, "pdm", "dev-dependencies").items():
        groups.setdefault(name, strings_of(lines))
    groups.setdefault("dev", strings_of(table_at(tool, "uv").get("dev-dependencies")))
    yield Said(file="pyproject.toml", build=build, extras={k: v for k, v in groups.items() if v})
    if "project" in data:
        yield _from_project(table_at(data, "project"), tool, texts)
    backend = str(table_at(data, "build-system").get("build-backend", ""))
    if "poetry" in tool:
        yield from_poetry(table_at(tool, "poetry")).but(builds="poetry" in backend)
    if "flit" in tool:
        yield _from_flit(table_at(tool, "flit", "metadata")).but(builds="flit" in backend)


def read_toml(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def table_at(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the table at that place; an empty one where there is none."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def strings_of(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else []
    return tuple(item for item in listed if isinstance(item, str))


def _groups(tables: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Read dependency groups, those that they include too."""
    by_name = {canonical(name): items for name, items in tables.items()}

    def members(name: str, above: tuple[str, ...]) -> Iterator[str]:
        items = by_name.get(name, []) if name not in above else []
        for item in items if isinstance(items, list) else []:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                yield from members(canonical(str(item.get("include-group"))), (*above, name))

    return {name: tuple(members(name, ())) for name in by_name}


def _from_project(
    project: Mapping[str, Any], tool: Mapping[str, Any], texts: Mapping[str, str]
) -> Said:
    """Read the standard `[project]` table."""
    name = str(project.get("name", ""))
    optional = {
        key: strings_of(value) for key, value in table_at(project, "optional-dependencies").items()
    }
    said = Said(
        file="pyproject.toml",
        name=name,
        python=str(project.get("requires-python", "")),
        extras={extra: _with_own(extra, optional, name) for extra in optional},
    )
    if "dependencies" not in strings_of(project.get("dynamic")):
        stated = "dependencies" in project
        return said.but(needs=strings_of(project["dependencies"])) if stated else said
    # setuptools, and hatch-requirements-txt
    places = table_at(tool, "setuptools", "dynamic", "dependencies").get("file")
    places = places or table_at(tool, "hatch", "metadata", "hooks", "requirements_txt").get("files")
    listed = [places] if isinstance(places, str) else strings_of(places)
    if not listed:
        return said.but(dynamic=True)
    return reading(said, listed, texts)


def _with_own(
    extra: str, optional: Mapping[str, Iterable[str]], name: str, above: tuple[str, ...] = ()
) -> list[str]:
    """Return the lines of an extra, with those of `name[other]` in place of it."""
    lines: list[str] = []
    for line in optional.get(extra, ()) if extra not in above else ():
        found = LINE.match(line)
        if found and name and canonical(found[1]) == canonical(name):
            for other in (found[2] or "").split(","):
                lines += _with_own(other.strip(), optional, name, (*above, extra))
        else:
            lines.append(line)
    return lines


def _from_flit(metadata: Mapping[str, Any]) -> Said:
    extras = table_at(metadata, "requires-extra")
    return Said(
        file="pyproject.toml",
        needs=strings_of(metadata.get("requires")) if "requires" in metadata else None,
        python=str(metadata.get("requires-python", "")),
        name=str(metadata.get("dist-name") or metadata.get("module", "")),
        extras={name: strings_of(lines) for name, lines in extras.items()},
    )


# --- poetry, and Pipfile


def from_poetry(poetry: Mapping[str, Any]) -> Said:
    table = table_at(poetry, "dependencies")
    needs, dynamic = poetry_needs(table)
    optional = dict(_table_lines(table, optional=True))
    extras: dict[str, Iterable[str]] = {
        extra: [line for name in strings_of(names) for line in optional.get(canonical(name), ())]
        for extra, names in table_at(poetry, "extras").items()
    }
    groups = {
        name: table_at(group, "dependencies") for name, group in table_at(poetry, "group").items()
    }
    groups.setdefault("dev", table_at(poetry, "dev-dependencies"))
    for name, group in groups.items():
        if group:
            extras.setdefault(name, poetry_needs(group)[0])
    python = table.get("python")
    return Said(
        file="pyproject.toml",
        needs=needs if "dependencies" in poetry else None,
        python=poetry_versions(python) if isinstance(python, str) else "",
        dynamic=dynamic,
        name=str(poetry.get("name", "")),
        extras=extras,
    )


def poetry_needs(table: Mapping[str, Any]) -> tuple[list[str], bool]:
    """Return the lines of a table, and whether one of it could not be told."""
    lines = [line for _, found in _table_lines(table) for line in found]
    return list(filter(None, lines)), "" in lines


def _table_lines(
    table: Mapping[str, Any], *, optional: bool = False
) -> Iterator[tuple[str, list[str]]]:
    for name, value in table.items():
        if canonical(name) != "python":
            entries = value if isinstance(value, list) else [value]
            chosen = [
                e for e in entries if bool(isinstance(e, dict) and e.get("optional")) is optional
            ]
            yield canonical(name), [_table_line(name, entry) for entry in chosen]


def _table_line(name: str, entry: object) -> str:
    """Turn one entry of a table into a line; nothing where that cannot be done."""
    if isinstance(entry, str):
        return normalised(f"{name}{poetry_versions(entry)}")
    if not isinstance(entry, dict):
        return ""
    conditions = list(_conditions(entry))
    marker = " and ".join(f"({text})" if conditions[1:] else text for text in conditions)
    extras = ",".join(strings_of(entry.get("extras")))
    head = f"{name}[{extras}]" if extras else name
    place = str(entry.get("url") or "")
    if entry.get("git"):
        at = entry.get("rev") or entry.get("tag") or entry.get("branch") or entry.get("ref")
        place = f"git+{entry['git']}{f'@{at}' if at else ''}"
    if place:
        return normalised(f"{head} @ {place}{' ; ' + marker if marker else ''}")
    if "path" in entry or "file" in entry:
        return ""
    version = poetry_versions(str(entry.get("version", "*")))
    return normalised(f"{head}{version}{'; ' + marker if marker else ''}")


def _conditions(entry: Mapping[str, Any]) -> Iterator[str]:
    if entry.get("markers"):
        yield str(entry["markers"])
    if entry.get("platform"):
        yield f'sys_platform == "{entry["platform"]}"'
    if entry.get("python"):
        for part in filter(None, poetry_versions(str(entry["python"])).split(",")):
            found = VERSION.match(part)
            if found:
                full = found[2].count(".") > 1 and not found[2].endswith("*")
                yield f'python_{"full_" if full else ""}version {found[1]} "{found[2]}"'


def poetry_versions(text: str) -> str:
    """Translate `^1.2`, `~1.2`, `1.*` to what PEP 440 knows; of `a || b` the last is taken."""
    last = text.split("||")[-1].strip()
    spaced = re.sub(r"([<>=!~^]+)\s+", r"\1", last)
    parts = [_poetry_version(part) for part in re.split(r"[,\s]+", spaced) if part]
    return ",".join(filter(None, parts))


def _poetry_version(part: str) -> str:
    found = re.match(r"(\^|~=|~|===?|!=|<=|>=|<|>)?v?(.*)$", part)
    how, version = (found[1] or "==", found[2]) if found else ("==", part)
    release = [int(number) for number in re.findall(r"\d+", re.split(r"[^\d.]", version)[0])]
    if version in ("*", "") or not release:
        return ""
    if how == "^":
        at = next((at for at, number in enumerate(release[:3]) if number), len(release) - 1)
        return f">={version},<{_next(release, at)}"
    if how == "~":
        return f">={version},<{_next(release, min(1, len(release) - 1))}"
    return f"{how}{version}" if how in ("==", "!=") else f"{how}{version.removesuffix('.*')}"


def _next(release: Sequence[int], at: int) -> str:
    return ".".join(map(str, [*release[:at], release[at] + 1]))


def from_pipfile(texts: Mapping[str, str]) -> Iterator[Said]:
    if "Pipfile" not in texts:
        return
    data = read_toml(texts["Pipfile"])
    if data is None:
        yield Said(file="Pipfile", dynamic=True)
        return
    needs, dynamic = poetry_needs(table_at(data, "packages"))
    asked = table_at(data, "requires")
    version = asked.get("python_full_version") or asked.get("python_version")
    yield Said(
        file="Pipfile",
        needs=needs,
        dynamic=dynamic,
        python=f"=={version}.*" if version else "",
        extras={"dev": poetry_needs(table_at(data, "dev-packages"))[0]},
    )
