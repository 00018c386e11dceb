"""What one revision needs, read from its own files; nothing of them is ever run."""

from __future__ import annotations

import ast
import copy
import posixpath
import re

from relaunch.jsontext import dumps
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

TESTING = ("test", "tests", "testing", "dev")
"""The extras and groups that are recorded, as a probe is often a test."""


class Requirements(Record):
    """What a revision needs: `needs` are PEP 508 lines, normalised and sorted."""

    needs: tuple[str, ...] = ()
    build: tuple[str, ...] = ()
    """What building it needs, where that is stated."""
    python: str = ""
    """Which Pythons it allows, as `>=3.8,<4`."""
    dynamic: bool = False
    """Something could not be read: there may be more needs than these."""
    name: str = ""
    found_in: tuple[str, ...] = ()
    """The files that the needs were read from."""
    extras: Mapping[str, tuple[str, ...]] = {}
    """What its tests and its developers need, by the name it has there: `test`, `tests`, `dev`."""
    missing: tuple[str, ...] = ()
    """Files that these name and that were not handed in; with them, more can be read."""

    @property
    def digest(self) -> str:
        """Name the set of needs, wherever it was found."""
        from _blake2 import blake2b

        text = dumps(list(self.needs)).encode("ascii")
        return blake2b(text, digest_size=16).hexdigest()


class _Said(Record):
    """What one file says; `needs` is None when it says nothing of them."""

    file: str
    needs: Iterable[str] | None = None
    build: Iterable[str] = ()
    python: str = ""
    dynamic: bool = False
    name: str = ""
    extras: Mapping[str, Iterable[str]] = {}
    also_read: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    builds: bool = True
    """False for a table of a tool that is not the one to build this revision."""


def requirements(files: Mapping[str, bytes]) -> Requirements:
    """Read what there is of pyproject.toml, setup.cfg, setup.py and the like of one revision.

    The first that states its needs is believed, in the order in which installers look.
    """
    texts = {name: data.decode("utf-8-sig", "replace") for name, data in files.items()}
    pyproject = list(_from_pyproject(texts))
    said = [
        *(one for one in pyproject if one.builds),
        *_from_setup_cfg(texts),
        *_from_setup_script(texts),
        *(one for one in pyproject if not one.builds),
        *_from_lines(texts),
        *_from_pipfile(texts),
        *_from_conda(texts),
    ]
    at = next((at for at, one in enumerate(said) if one.needs is not None), len(said))
    unsure = any(one.dynamic for one in said[:at])
    if at < len(said) and said[at].file in ("setup.cfg", "setup.py"):
        unsure = False  # a pyproject.toml that leaves it to setuptools means these
    taken = said[at : at + 1]
    lines = [line for one in taken for line in one.needs or () if line.strip()]
    unread = any(one.dynamic for one in taken) or not all(map(normalised, lines))
    return Requirements(
        needs=_sorted(lines),
        build=_sorted(next((one.build for one in said if one.build), ())),
        python=next((one.python for one in said if one.python), "").replace(" ", ""),
        dynamic=unsure or unread,
        name=next((one.name for one in said if one.name), ""),
        found_in=tuple(dict.fromkeys(f for one in taken for f in (one.file, *one.also_read))),
        extras=_testing(said),
        missing=tuple(sorted({name for one in said[: at + 1] for name in one.missing})),
    )


def _testing(said: Sequence[_Said]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for one in said:
        for name, lines in one.extras.items():
            if name in TESTING:
                found.setdefault(name, _sorted(lines))
    return found


def _sorted(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({line for line in map(normalised, lines) if line}))


# --- one requirement on one line


_LINE = re.compile(
    r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*(?:\[([^\]]*)\])?\s*(.*?)\s*$", re.DOTALL
)
_VERSION = re.compile(r"(===|~=|==|!=|<=|>=|<|>)\s*([A-Za-z0-9._*+!-]+)$")
_MARKER_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|[()]|[<>=!~]+|[^\s'\"()<>=!~]+")


def canonical(name: str) -> str:
    """Return the one spelling of a project's name: `typing_extensions` is `typing-extensions`."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def normalised(line: str) -> str:
    """Return a PEP 508 line in its one spelling; nothing when it is none."""
    found = _LINE.match(line)
    if found is None:
        return ""
    head = canonical(found[1])
    if found[2] and found[2].strip():
        extras = {canonical(extra) for extra in found[2].split(",") if extra.strip()}
        head += f"[{','.join(sorted(extras))}]"
    if found[3].startswith("@"):
        url, _, marker = re.sub(r"\s+;", " ;", found[3][1:]).partition(" ;")
        return head + f" @ {url.strip()}" + (f" ; {_marker(marker)}" if marker.strip() else "")
    versions, _, marker = found[3].partition(";")
    texts = [text.strip() for text in versions.strip().strip("()").split(",") if text.strip()]
    parts = [_VERSION.match(text) for text in texts]
    if not all(parts):
        return ""
    head += ",".join(sorted({part[1] + part[2] for part in parts if part}))
    return head + (f"; {_marker(marker)}" if marker.strip() else "")


def _marker(text: str) -> str:
    """Spell a marker with one blank between its words and double quotes."""
    words = [
        f'"{word[1:-1]}"' if word[0] == "'" and '"' not in word else word
        for word in _MARKER_WORD.findall(text)
    ]
    return " ".join(words).replace("( ", "(").replace(" )", ")")


def _name_of(line: str) -> str:
    found = _LINE.match(line)
    return canonical(found[1]) if found else ""


def _under(line: str, marker: str) -> str:
    """Let a requirement hold only where `marker` does."""
    separator = " ;" if " @ " in line else ";"
    head, _, own = line.partition(separator)
    joined = f"({own.strip()}) and ({marker})" if own.strip() else marker
    return normalised(f"{head}{separator} {joined}")


# --- requirements.txt


class _Lines(Record):
    """What a requirements file and those it names hold."""

    needs: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    unread: bool = False
    """A line could not be understood."""

    @property
    def dynamic(self) -> bool:
        """There may be more needs than these."""
        return self.unread or bool(self.missing)

    def __add__(self, other: _Lines) -> _Lines:
        """Put two together."""
        return _Lines(
            needs=self.needs + other.needs,
            read=self.read + other.read,
            missing=self.missing + other.missing,
            unread=self.unread or other.unread,
        )


_COMMENT = re.compile(r"(^|\s)#.*$", re.MULTILINE)
_LINE_OPTION = re.compile(r"\s--?(?:hash|global-option|install-option|config-settings?)\b.*$")
_OTHER_FILE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)$")
_EDITABLE = re.compile(r"(?:-e|--editable)[\s=]*(.+)$")
_BOUND_BY = re.compile(r"(?:-c|--constraint)\b")
_ARCHIVE = re.compile(r"[^@\s]+\.(?:whl|zip|tar\.gz)$")
_WHEEL = re.compile(r".*/([A-Za-z0-9_.]+)-[^/]*\.whl(?:#.*)?$")


def _read_lines(name: str, texts: Mapping[str, str], above: tuple[str, ...] = ()) -> _Lines:
    """Read a requirements file, and those it names with `-r`."""
    if name not in texts:
        return _Lines(missing=(name,))
    all_lines = _Lines(read=(name,))
    for line in map(str.strip, _COMMENT.sub("", texts[name].replace("\\\n", " ")).splitlines()):
        other = _OTHER_FILE.match(line)
        if other:
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(name), other[1]))
            if inner not in (*above, name):
                all_lines += _read_lines(inner, texts, (*above, name))
        elif line:
            need = _one_line(line)
            all_lines += _Lines(needs=(need,) if need else (), unread=need is None)
    return all_lines


def _one_line(line: str) -> str | None:
    """Return the need on a line; nothing for one that needs nothing, None if it cannot be read."""
    editable = _EDITABLE.match(line)
    if editable:
        line = editable[1].strip("\"' ")
        if re.match(r"\.(/?\[.*\])?/?$", line):
            return ""  # the revision itself
    elif line.startswith("-"):
        return None if _BOUND_BY.match(line) else ""
    line = _LINE_OPTION.sub("", line)
    return ("" if _ARCHIVE.match(line) else normalised(line)) or _named_url(line)


def _named_url(line: str) -> str | None:
    """Turn `git+https://...#egg=name` into `name @ git+https://...`; None where no name is told."""
    url, _, marker = re.sub(r"\s+;", " ;", line).partition(" ;")
    place, _, told = url.strip().partition("#")
    words = dict(word.split("=", 1) for word in told.split("&") if "=" in word)
    wheel = _WHEEL.match(url)
    name = words.pop("egg", "") or (wheel[1] if wheel else "")
    if not name or "://" not in place:
        return None
    rest = "&".join(f"{key}={value}" for key, value in words.items())
    return normalised(
        f"{name} @ {place}{'#' + rest if rest else ''}{' ; ' + marker if marker else ''}"
    )


def _from_lines(texts: Mapping[str, str]) -> Iterator[_Said]:
    extras: dict[str, Iterable[str]] = {}
    for name in sorted(texts):
        found = re.match(r"requirements[-_.]?(dev|\w+?)(?:elop|elopment)?\.txt$", name)
        if found and found[1] in TESTING:
            extras[found[1]] = _read_lines(name, texts).needs
    if "requirements.txt" in texts:
        lines = _read_lines("requirements.txt", texts)
        yield _Said(
            file="requirements.txt",
            needs=lines.needs,
            dynamic=lines.dynamic,
            extras=extras,
            also_read=lines.read,
            missing=lines.missing,
        )
    elif extras:
        yield _Said(file="requirements.txt", extras=extras)


# --- pyproject.toml


def _from_pyproject(texts: Mapping[str, str]) -> Iterator[_Said]:
    if "pyproject.toml" not in texts:
        return
    data = _toml(texts["pyproject.toml"])
    if data is None:
        yield _Said(file="pyproject.toml", dynamic=True)
        return
    tool = _table(data, "tool")
    build = _strings(_table(data, "build-system").get("requires"))
    groups = _groups(_table(data, "dependency-groups"))
    for name, lines in _table(tool, "pdm", "dev-dependencies").items():
        groups.setdefault(name, _strings(lines))
    groups.setdefault("dev", _strings(_table(tool, "uv").get("dev-dependencies")))
    yield _Said(file="pyproject.toml", build=build, extras={k: v for k, v in groups.items() if v})
    if "project" in data:
        yield _from_project(_table(data, "project"), tool, texts)
    backend = str(_table(data, "build-system").get("build-backend", ""))
    if "poetry" in tool:
        yield _from_poetry(_table(tool, "poetry")).but(builds="poetry" in backend)
    if "flit" in tool:
        yield _from_flit(_table(tool, "flit", "metadata")).but(builds="flit" in backend)


def _toml(text: str) -> dict[str, Any] | None:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _table(data: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the table at that place; an empty one where there is none."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _strings(value: object) -> tuple[str, ...]:
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
) -> _Said:
    """Read the standard `[project]` table."""
    name = str(project.get("name", ""))
    optional = {
        key: _strings(value) for key, value in _table(project, "optional-dependencies").items()
    }
    said = _Said(
        file="pyproject.toml",
        name=name,
        python=str(project.get("requires-python", "")),
        extras={extra: _with_own(extra, optional, name) for extra in optional},
    )
    if "dependencies" not in _strings(project.get("dynamic")):
        stated = "dependencies" in project
        return said.but(needs=_strings(project["dependencies"])) if stated else said
    # setuptools, and hatch-requirements-txt
    places = _table(tool, "setuptools", "dynamic", "dependencies").get("file")
    places = places or _table(tool, "hatch", "metadata", "hooks", "requirements_txt").get("files")
    listed = [places] if isinstance(places, str) else _strings(places)
    if not listed:
        return said.but(dynamic=True)
    return _reading(said, listed, texts)


def _reading(said: _Said, names: Iterable[str], texts: Mapping[str, str]) -> _Said:
    """Add that the needs are what these files hold."""
    lines = sum((_read_lines(name, texts) for name in names), _Lines())
    return said.but(
        needs=lines.needs, dynamic=lines.dynamic, also_read=lines.read, missing=lines.missing
    )


def _with_own(
    extra: str, optional: Mapping[str, Iterable[str]], name: str, above: tuple[str, ...] = ()
) -> list[str]:
    """Return the lines of an extra, with those of `name[other]` in place of it."""
    lines: list[str] = []
    for line in optional.get(extra, ()) if extra not in above else ():
        found = _LINE.match(line)
        if found and name and canonical(found[1]) == canonical(name):
            for other in (found[2] or "").split(","):
                lines += _with_own(other.strip(), optional, name, (*above, extra))
        else:
            lines.append(line)
    return lines


def _from_flit(metadata: Mapping[str, Any]) -> _Said:
    extras = _table(metadata, "requires-extra")
    return _Said(
        file="pyproject.toml",
        needs=_strings(metadata.get("requires")) if "requires" in metadata else None,
        python=str(metadata.get("requires-python", "")),
        name=str(metadata.get("dist-name") or metadata.get("module", "")),
        extras={name: _strings(lines) for name, lines in extras.items()},
    )


# --- poetry, and Pipfile


def _from_poetry(poetry: Mapping[str, Any]) -> _Said:
    table = _table(poetry, "dependencies")
    needs, dynamic = _poetry_needs(table)
    optional = dict(_table_lines(table, optional=True))
    extras: dict[str, Iterable[str]] = {
        extra: [line for name in _strings(names) for line in optional.get(canonical(name), ())]
        for extra, names in _table(poetry, "extras").items()
    }
    groups = {
        name: _table(group, "dependencies") for name, group in _table(poetry, "group").items()
    }
    groups.setdefault("dev", _table(poetry, "dev-dependencies"))
    for name, group in groups.items():
        if group:
            extras.setdefault(name, _poetry_needs(group)[0])
    python = table.get("python")
    return _Said(
        file="pyproject.toml",
        needs=needs if "dependencies" in poetry else None,
        python=poetry_versions(python) if isinstance(python, str) else "",
        dynamic=dynamic,
        name=str(poetry.get("name", "")),
        extras=extras,
    )


def _poetry_needs(table: Mapping[str, Any]) -> tuple[list[str], bool]:
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
    extras = ",".join(_strings(entry.get("extras")))
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
            found = _VERSION.match(part)
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


def _from_pipfile(texts: Mapping[str, str]) -> Iterator[_Said]:
    if "Pipfile" not in texts:
        return
    data = _toml(texts["Pipfile"])
    if data is None:
        yield _Said(file="Pipfile", dynamic=True)
        return
    needs, dynamic = _poetry_needs(_table(data, "packages"))
    asked = _table(data, "requires")
    version = asked.get("python_full_version") or asked.get("python_version")
    yield _Said(
        file="Pipfile",
        needs=needs,
        dynamic=dynamic,
        python=f"=={version}.*" if version else "",
        extras={"dev": _poetry_needs(_table(data, "dev-packages"))[0]},
    )


# --- environment.yml


_CONDA = {"pytorch": "torch", "pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}
_NO_PACKAGE = frozenset(
    ("python", "pip", "cudatoolkit", "cudnn", "cuda", "mkl", "gcc", "gxx", "nodejs", "conda")
)


def _from_conda(texts: Mapping[str, str]) -> Iterator[_Said]:
    """Read the plain lists of an environment.yml; conda's names are not always the installers'."""
    text = texts.get("environment.yml")
    if text is None:
        return
    needs: list[str] = []
    python = where = ""
    for line in _COMMENT.sub("", text).splitlines():
        item = re.match(r"\s*-\s*(.+?)\s*$", line)
        if not item:
            where = line.strip() or where
        elif re.match(r"pip\s*:$", item[1]):
            where = "pip:"
        elif where == "pip:":
            needs.append(_one_line(item[1].strip("\"'")) or "")
        elif where == "dependencies:":
            name, versions = _conda_line(item[1].strip("\"'"))
            python = versions if name == "python" else python
            if name not in _NO_PACKAGE:
                needs.append(f"{_CONDA.get(name, name)}{versions}")
    yield _Said(file="environment.yml", needs=needs, python=python, dynamic=True)


def _conda_line(line: str) -> tuple[str, str]:
    """Split `conda-forge::numpy=1.18=py37_0` into its name and what PEP 440 makes of the rest."""
    found = re.match(r"(?:\S+::)?([A-Za-z0-9._-]+)\s*(.*)$", line)
    name, rest = (canonical(found[1]), found[2].strip()) if found else ("", "")
    exact = re.match(r"=?\s*(\d[^=\s,|]*)(?:[=\s]\S+)?$", rest)
    if exact:
        return name, f"=={exact[1].removesuffix('.*').removesuffix('*')}.*"
    return name, rest if rest[:1] in ("=", "<", ">", "!", "~") else ""


# --- setup.cfg


def _from_setup_cfg(texts: Mapping[str, str]) -> Iterator[_Said]:
    if "setup.cfg" not in texts:
        return
    import configparser

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(texts["setup.cfg"])
    except configparser.Error:
        yield _Said(file="setup.cfg", dynamic=True)
        return
    options = {
        key.replace("-", "_"): value
        for section in ("metadata", "options")
        if parser.has_section(section)
        for key, value in parser.items(section)
    }
    section = "options.extras_require"
    extras = parser.items(section) if parser.has_section(section) else []
    stated = options.get("install_requires")
    said = _Said(
        file="setup.cfg",
        needs=None if stated is None else _cfg_list(stated),
        build=_cfg_list(options.get("setup_requires", "")),
        python=options.get("python_requires", ""),
        name=options.get("name", ""),
        extras={name: _cfg_list(value) for name, value in extras},
    )
    named = re.match(r"\s*file:(.*)$", stated or "", re.DOTALL)
    yield _reading(said, re.split(r"[,\s]+", named[1].strip()), texts) if named else said


def _cfg_list(value: str) -> list[str]:
    return _COMMENT.sub("", value).splitlines()


# --- setup.py


def _from_setup_script(texts: Mapping[str, str]) -> Iterator[_Said]:
    if "setup.py" not in texts:
        return
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its escapes in strings
            script = _Script(ast.parse(texts["setup.py"]), texts)
    except (SyntaxError, ValueError, RecursionError):  # of Python 2, or not even that
        yield _Said(file="setup.py", dynamic=True)
        return
    asked = script.arguments
    needs = script.lines(asked["install_requires"]) if "install_requires" in asked else None
    if needs is None and asked.get("pbr") is True:
        needs = script.lines(script.file("requirements.txt"))
    extras = {"test": script.lines(asked.get("tests_require")) or []}
    named = asked.get("extras_require")
    for key, value in named.items() if isinstance(named, dict) else ():
        name, _, marker = str(key).partition(":")
        lines = [_under(line, marker) if marker else line for line in script.lines(value) or ()]
        if name:
            extras[name] = [*extras.get(name, ()), *lines]
        else:
            needs = [*(needs or ()), *lines]
    yield _Said(
        file="setup.py",
        needs=needs,
        build=script.lines(asked.get("setup_requires")) or (),
        python=_text(asked.get("python_requires")),
        dynamic=script.unsure(asked.get("install_requires")),
        name=_text(asked.get("name")),
        extras={name: lines for name, lines in extras.items() if lines},
        also_read=tuple(name for name in script.read if _is_in(name, texts, needs or ())),
        missing=tuple(script.missing),
    )


def _is_in(name: str, texts: Mapping[str, str], needs: Iterable[str]) -> bool:
    return set(_read_lines(name, texts).needs) <= set(map(normalised, needs))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


class _Unknown:
    """A value that only running the script would tell."""

    def __deepcopy__(self, memo: object) -> _Unknown:
        return self


_UNKNOWN = _Unknown()


class _Condition(Record):
    """A test of the world as a marker, and the opposite of it."""

    yes: str
    no: str


class _Script:
    """The arguments of `setup(...)`, worked out from the text of a script that is never run.

    Literals, names, sums, branches on the version of Python or the platform, and the requirements
    files that an expression mentions, however it goes on to read them.
    """

    def __init__(self, tree: ast.Module, texts: Mapping[str, str]) -> None:
        """Read it from top to bottom; functions only if no call of setup() was met."""
        self._texts = texts
        self.arguments: dict[str, Any] = {}
        self.read: list[str] = []
        self.missing: list[str] = []
        self._listed = [
            item.value
            for node in ast.walk(tree)
            for item in (node.elts if isinstance(node, ast.List) else ())
            if isinstance(item, ast.Constant) and isinstance(item.value, str)
        ]
        self._values: dict[str, Any] = {}
        self._meant: dict[str, ast.AST] = {}
        """What a name that has no value stands for."""
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        self._meant.update((function.name, function) for function in functions)
        self._run(tree.body)
        for function in functions:
            if not self.arguments:
                self._run(function.body)

    def lines(self, value: object) -> list[str] | None:
        """Return what is known of a list of requirements; None when nothing is."""
        if isinstance(value, str):
            value = value.splitlines()
        if not isinstance(value, list):
            return None
        return [item for item in value if isinstance(item, str) and item.strip()]

    def unsure(self, value: object) -> bool:
        """Tell whether a list of requirements holds something that is not known."""
        if isinstance(value, list):
            return any(not isinstance(item, str) for item in value)
        return isinstance(value, (_Unknown, dict))

    def file(self, name: str) -> list[Any]:
        """Return the lines of a requirements file of the revision."""
        found = _read_lines(name, self._texts)
        self.read += found.read
        self.missing += found.missing
        return [*found.needs, *([_UNKNOWN] if found.dynamic else [])]

    # statements

    def _run(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.If):
            certain = _is_main(node.test)
            self._branch(node.body, node.orelse, certain or self._value(node.test))
        elif isinstance(node, (ast.For, ast.While)):
            self._branch(node.body, [], _UNKNOWN)
        elif isinstance(node, ast.With):
            for item in node.items:
                if isinstance(item.optional_vars, ast.Name):
                    self._set(item.optional_vars.id, item.context_expr)
            self._run(node.body)
        elif isinstance(node, ast.Try):
            self._run([*node.body, *node.orelse, *node.finalbody])
            for handler in node.handlers:
                self._branch(handler.body, [], _UNKNOWN)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            self._assign(node.target, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            name, more = node.target.id, self._value(node.value)
            self._values[name] = _sum(self._values.get(name, _UNKNOWN), more)
        elif isinstance(node, (ast.Expr, ast.Return)) and isinstance(node.value, ast.Call):
            self._call(node.value)

    def _branch(self, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt], condition: Any) -> None:
        if condition is True:
            self._run(body)
            return
        before = copy.deepcopy(self._values)
        self._run(body)
        taken, self._values = self._values, before
        self._run(orelse)
        for name in {*taken, *self._values}:
            one, other = taken.get(name, _UNKNOWN), self._values.get(name, _UNKNOWN)
            self._values[name] = _either(one, other, condition)

    def _set(self, name: str, node: ast.expr) -> None:
        self._values[name] = self._value(node)
        self._meant[name] = node

    def _assign(self, target: ast.expr, node: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._set(target.id, node)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            table, key = self._values.get(target.value.id), self._value(target.slice)
            if isinstance(table, dict) and isinstance(key, str):
                table[key] = self._value(node)

    def _call(self, node: ast.Call) -> None:
        """Follow `setup(...)`, and what changes a list or a table in place."""
        function = node.func
        called = _name(function)
        if called == "setup":
            self.arguments.update(self._keywords(node))
        elif isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            held = self._values.get(function.value.id)
            values = [self._value(argument) for argument in node.args]
            if isinstance(held, list) and called in ("append", "insert") and values:
                held.append(values[-1])
            elif isinstance(held, list) and called == "extend" and values:
                held += values[0] if isinstance(values[0], list) else [_UNKNOWN]
            elif isinstance(held, dict) and called == "update":
                for value in values:
                    held.update(value if isinstance(value, dict) else {})
                held.update(self._keywords(node))

    def _keywords(self, node: ast.Call) -> dict[Any, Any]:
        """Return the arguments of a call by their names, those of `**table` too."""
        table: dict[Any, Any] = {}
        for keyword in node.keywords:
            value = self._value(keyword.value)
            if keyword.arg:
                table[keyword.arg] = value
            elif isinstance(value, dict):
                table.update(value)
        return table

    # expressions

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return copy.copy(self._values.get(node.id, _UNKNOWN))
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return self._list(node.elts)
        if isinstance(node, ast.Dict):
            return self._dict(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _sum(self._value(node.left), self._value(node.right))
        if isinstance(node, ast.IfExp):
            condition = self._value(node.test)
            return _either(self._value(node.body), self._value(node.orelse), condition)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        if isinstance(node, (ast.Compare, ast.UnaryOp)):
            return self._condition(node)
        if isinstance(node, ast.JoinedStr):
            return self._joined(node)
        if isinstance(node, ast.Call):
            return self._called(node)
        return self._from_files(node)

    def _list(self, nodes: Iterable[ast.expr]) -> list[Any]:
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self._value(node.value)
                items += inner if isinstance(inner, list) else [_UNKNOWN]
            else:
                items.append(self._value(node))
        return items

    def _dict(self, node: ast.Dict) -> dict[Any, Any]:
        table: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            found = self._value(value)
            if key is not None:
                name = self._value(key)
                table[name if isinstance(name, str) else _UNKNOWN] = found
            elif isinstance(found, dict):
                table.update(found)
        return table

    def _joined(self, node: ast.JoinedStr) -> Any:
        parts = [
            self._value(part.value if isinstance(part, ast.FormattedValue) else part)
            for part in node.values
        ]
        return "".join(parts) if all(isinstance(part, str) for part in parts) else _UNKNOWN

    def _item(self, node: ast.Subscript) -> Any:
        held, key = self._value(node.value), self._value(node.slice)
        if isinstance(held, dict) and isinstance(key, str):
            return held.get(key, _UNKNOWN)
        if isinstance(key, str):
            # A table that the script makes of a list of requirements, by their names.
            for line in self._listed:
                if _name_of(line) == canonical(key):
                    return line
        return _UNKNOWN

    def _called(self, node: ast.Call) -> Any:
        name = _name(node.func)
        if name == "setup":
            self._call(node)
        if name == "dict":
            return self._keywords(node)
        if name in ("list", "tuple", "set", "sorted") and len(node.args) == 1:
            inner = self._value(node.args[0])
            return inner if isinstance(inner, list) else self._from_files(node)
        if isinstance(node.func, ast.Attribute):
            held = self._value(node.func.value)
            values = [self._value(argument) for argument in node.args]
            if isinstance(held, str):
                known = all(isinstance(value, str) for value in values) and not node.keywords
                return _changed_text(held, name, values) if known else _UNKNOWN
            if isinstance(held, (list, dict)) and name == "copy":
                return held
        return self._from_files(node)

    def _from_files(self, node: ast.AST) -> Any:
        """Return the lines of the requirements files that an expression mentions."""
        names = dict.fromkeys(self._mentioned(node, set()))
        return [line for name in names for line in self.file(name)] if names else _UNKNOWN

    def _mentioned(self, node: ast.AST, seen: set[str]) -> Iterator[str]:
        """Find the files that a node names itself; without any, those that its names stand for."""
        own = [path for path in map(posixpath.normpath, _paths(node)) if _FILE.match(path)]
        yield from own
        names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if not own else set()
        for name in sorted(names & self._meant.keys()):
            if name not in seen:
                seen.add(name)
                yield from self._mentioned(self._meant[name], seen)

    # conditions

    def _condition(self, node: ast.expr) -> Any:
        """Turn a test of the world into a marker, where there is one for it."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._value(node.operand)
            known = isinstance(inner, _Condition)
            return _Condition(yes=inner.no, no=inner.yes) if known else _UNKNOWN
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            how = _HOW.get(type(node.ops[0]), "")
            return _compared(ast.unparse(node.left), how, self._value(node.comparators[0]))
        return _UNKNOWN


_FILE = re.compile(r".*(requir|depend|deps|reqs).*\.(txt|in)$", re.IGNORECASE)
_HOW = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_MAJOR = {
    **dict.fromkeys((("<", 3), ("<=", 2), ("==", 2), ("!=", 3)), "<"),
    **dict.fromkeys(((">=", 3), (">", 2), ("==", 3), ("!=", 2)), ">="),
}
_VARIABLES = {
    "sys.platform": "sys_platform",
    "os.name": "os_name",
    "platform.system()": "platform_system",
    "platform.python_implementation()": "platform_python_implementation",
}


def _compared(left: str, how: str, right: Any) -> Any:
    """Return the marker that says the same as a comparison with a literal."""
    if left in _VARIABLES and how in ("==", "!=") and isinstance(right, str):
        return _marked(_VARIABLES[left], how, right)
    if left in ("sys.version_info[0]", "sys.version_info.major"):
        how = _MAJOR.get((how, right), "")
        return _marked("python_version", how, "3") if how else _UNKNOWN
    numbers = right if isinstance(right, list) else []
    if left not in ("sys.version_info", "sys.version_info[:2]") or not how or not numbers:
        return _UNKNOWN
    if not all(type(number) is int for number in numbers):
        return _UNKNOWN
    if left == "sys.version_info":  # it goes on after these numbers, so it is never equal
        how = {"<=": "<", ">": ">="}.get(how, how)
    name = "python_full_version" if len(numbers) > 2 else "python_version"
    return _marked(name, how, ".".join(map(str, numbers)))


def _marked(name: str, how: str, value: str) -> _Condition:
    return _Condition(yes=f'{name} {how} "{value}"', no=f'{name} {_OPPOSITE[how]} "{value}"')


def _changed_text(text: str, method: str, values: Sequence[str]) -> Any:
    """Return what a method of a text returns, for the few that lists are written with."""
    if method in ("split", "splitlines", "strip") and "" not in values:
        return getattr(text, method)(*values[: method != "splitlines"])
    if method == "format" and text.count("{}") == text.count("{") == len(values):
        for value in values:
            text = text.replace("{}", value, 1)
        return text
    return _UNKNOWN


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, str) and isinstance(other, str):
        return one + other
    if isinstance(one, list) or isinstance(other, list):
        return [
            *(one if isinstance(one, list) else [_UNKNOWN]),
            *(other if isinstance(other, list) else [_UNKNOWN]),
        ]
    return _UNKNOWN


def _either(one: Any, other: Any, condition: Any) -> Any:
    """Return what holds after a branch: `one` where the condition does, else `other`."""
    if type(one) is type(other) and one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys((*one, *other))
        return {name: _either(one.get(name, []), other.get(name, []), condition) for name in names}
    if not isinstance(one, list) or not isinstance(other, list):
        return _UNKNOWN
    both = [item for item in one if item in other]
    if not isinstance(condition, _Condition):
        return [*both, _UNKNOWN]
    only = [_where(item, condition.yes) for item in one if item not in both]
    return [*both, *only, *(_where(item, condition.no) for item in other if item not in both)]


def _where(item: Any, marker: str) -> Any:
    return _under(item, marker) if isinstance(item, str) else item


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _paths(node: ast.AST) -> Iterator[str]:
    """Find the texts in a node that may be paths, those put together by a `join` as one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.Call) and _name(node.func) in ("join", "joinpath"):
        yield "/".join(text for argument in node.args for text in _paths(argument))
    else:
        for inner in ast.iter_child_nodes(node):
            yield from _paths(inner)


def _is_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and _name(test.left) == "__name__"
