"""Requirements on lines of their own: requirements.txt, and those that it names."""

from __future__ import annotations

import posixpath
import re

from relaunch.record import Record
from relaunch.trial.place.stated.line import normalised
from relaunch.trial.place.stated.said import TESTING, Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class Lines(Record):
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

    def __add__(self, other: Lines) -> Lines:
        """Put two together."""
        return Lines(
            needs=self.needs + other.needs,
            read=self.read + other.read,
            missing=self.missing + other.missing,
            unread=self.unread or other.unread,
        )


COMMENT = re.compile(r"(^|\s)#.*$", re.MULTILINE)
_LINE_OPTION = re.compile(r"\s--?(?:hash|global-option|install-option|config-settings?)\b.*$")
_OTHER_FILE = re.compile(r"(?:-r|--requirement)[\s=]*(\S+)$")
_EDITABLE = re.compile(r"(?:-e|--editable)[\s=]*(.+)$")
_BOUND_BY = re.compile(r"(?:-c|--constraint)\b")
_ARCHIVE = re.compile(r"[^@\s]+\.(?:whl|zip|tar\.gz)$")
_WHEEL = re.compile(r".*/([A-Za-z0-9_.]+)-[^/]*\.whl(?:#.*)?$")


def read_lines(name: str, texts: Mapping[str, str], above: tuple[str, ...] = ()) -> Lines:
    """Read a requirements file, and those it names with `-r`."""
    if name not in texts:
        return Lines(missing=(name,))
    all_lines = Lines(read=(name,))
    for line in map(str.strip, COMMENT.sub("", texts[name].replace("\\\n", " ")).splitlines()):
        other = _OTHER_FILE.match(line)
        if other:
            inner = posixpath.normpath(posixpath.join(posixpath.dirname(name), other[1]))
            if inner not in (*above, name):
                all_lines += read_lines(inner, texts, (*above, name))
        elif line:
            need = one_line(line)
            all_lines += Lines(needs=(need,) if need else (), unread=need is None)
    return all_lines


def one_line(line: str) -> str | None:
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


def from_lines(texts: Mapping[str, str]) -> Iterator[Said]:
    extras: dict[str, Iterable[str]] = {}
    for name in sorted(texts):
        found = re.match(r"requirements[-_.]?(dev|\w+?)(?:elop|elopment)?\.txt$", name)
        if found and found[1] in TESTING:
            extras[found[1]] = read_lines(name, texts).needs
    if "requirements.txt" in texts:
        lines = read_lines("requirements.txt", texts)
        yield Said(
            file="requirements.txt",
            needs=lines.needs,
            dynamic=lines.dynamic,
            extras=extras,
            also_read=lines.read,
            missing=lines.missing,
        )
    elif extras:
        yield Said(file="requirements.txt", extras=extras)


def reading(said: Said, names: Iterable[str], texts: Mapping[str, str]) -> Said:
    """Add that the needs are what these files hold."""
    lines = sum((read_lines(name, texts) for name in names), Lines())
    return said.but(
        needs=lines.needs, dynamic=lines.dynamic, also_read=lines.read, missing=lines.missing
    )
