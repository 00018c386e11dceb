"""Where in large JSON lies what a person wants to stay: by its keys, read token by token."""

from __future__ import annotations

import re
from array import array
from fnmatch import fnmatchcase

from relaunch.search.shrink.large import Held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from relaunch.search.shrink.formats.jsonoutline import Outline

    Token = tuple[int, bytes]

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*"|[\[\]{},:"]', re.DOTALL)
_PLAIN = re.compile(r"[^*?\[]*")
_WORD = re.compile(r"[^*?.]+")
_QUOTE = ord('"')
_READ = 1 << 20
_MOST_NAMES = 10_000
"""So many keys of an object are remembered: more are hardly met again."""


class _Path:
    """The keys down to a value, as `Tree.path` writes them; remembers those below."""

    __slots__ = ("_below", "_keep", "matched", "may_hold", "text")

    def __init__(self, text: str | None, keep: Sequence[str]) -> None:
        """None: the document itself, which has no key."""
        self.text = text
        self._keep = keep
        self.may_hold = text is None or any(_may_match(f"{text}.", one) for one in keep)
        """Whether something below may match."""
        self.matched = {one for one in keep if text is not None and fnmatchcase(text, one)}
        self._below: dict[bytes, _Path] = {}

    def below(self, key: bytes) -> _Path:
        """Return the path of a member, or of an item: its key is a star."""
        found = self._below.get(key)
        if found is None:
            name = (key[1:-1] if key[:1] == b'"' else key).decode(errors="replace")
            found = _Path(name if self.text is None else f"{self.text}.{name}", self._keep)
            if len(self._below) < _MOST_NAMES:
                self._below[key] = found
        return found


def _may_match(start: str, pattern: str) -> bool:
    """Tell whether a pattern may match what begins so: what it has before its first wildcard."""
    plain = _PLAIN.match(pattern)
    first = plain.group() if plain else ""
    return first.startswith(start) or start.startswith(first)


def in_document(outline: Outline, keep: Sequence[str]) -> Held:
    """Return what is to stay of a document, each member with its key."""
    found: set[str] = set()
    starts, ends = array("q"), array("q")
    tokens = _Tokens(outline)
    for start, end, _ in _spans(tokens, _Path(None, keep), found, tokens.pass_over):
        starts.append(start)
        ends.append(end)
    return Held(starts=starts, ends=ends, found=frozenset(found))


def in_line(keep: Sequence[str]) -> Callable[[bytes], set[str]]:
    """Return who tells which patterns are found in a value on a line."""
    path = _Path(None, keep).below(b"*")
    may_hold = _words(keep).search

    def matched(line: bytes) -> set[str]:
        if path.matched and line.strip():
            return path.matched
        found: set[str] = set()
        if may_hold(line):
            for _ in _spans(_tokens_in(line), path, found):
                pass
        return found

    return matched


def _words(keep: Sequence[str]) -> re.Pattern[bytes]:
    """Return what is found in each line with a key that one of the patterns asks for.

    Of a pattern it is the longest word without a wildcard; where that has dots or nothing around
    it, it has dots or quotes around it in the line.
    """
    return re.compile(b"|".join(map(_longest_word, keep)))


def _longest_word(pattern: str) -> bytes:
    found = [*_WORD.finditer(pattern.partition("[")[0])]
    if not found:
        return b""
    word = max(found, key=lambda one: len(one.group()))
    before, after = pattern[: word.start()][-1:], pattern[word.end() :][:1]
    bounds = [rb'["\.]' if beside in ("", ".") else b"" for beside in (before, after)]
    return bounds[0] + re.escape(word.group().encode(errors="replace")) + bounds[1]


def held_texts(data: bytes, keep: Sequence[str], *, is_lines: bool) -> list[tuple[str, bytes]]:
    """Return what is to stay with its path, as `TreeGrammar.held` does: the last one first."""
    found: list[tuple[str, bytes]] = []
    root = _Path(None, keep)
    if not is_lines:
        lines, path = [data], root
    else:
        lines, path = [*filter(in_line(keep), data.split(b"\n"))], root.below(b"*")
    for line in lines:
        if path.matched:
            found.append((path.text or "", line.strip()))
            continue
        for start, end, inner in _spans(_tokens_in(line), path, set()):
            text = line[start:end].strip()
            if text:  # nothing, in an empty list
                found.append((inner.text or "", text))
    return found[::-1]


def _tokens_in(data: bytes) -> Iterator[Token]:
    return ((match.start(), match.group()) for match in _TOKEN.finditer(data))


class _Tokens:
    """The strings and marks of a file; large containers can be passed over."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._to = 0

    def pass_over(self, at: int, depth: int) -> None:
        """Go on where the container of a depth ends, if it is larger than a block."""
        following = self._outline.number(at) + 1
        if following < len(self._outline) and self._outline.lowest[following] >= depth:
            self._to = self._outline.closing(at, depth)

    def __iter__(self) -> Iterator[Token]:
        with open(self._outline.path, "rb") as file:
            data, base = file.read(_READ), 0
            while data:
                at = len(data)
                for match in _TOKEN.finditer(data):
                    start = match.start()
                    if match.end() == start + 1 and data[start] == _QUOTE:
                        at = start  # a string that goes on
                        break
                    yield base + start, match.group()
                    if self._to > base + start:
                        at = self._to - base
                        break
                if at > len(data) or self._to == base + at:
                    base += at
                    file.seek(base)
                    data = file.read(_READ)
                    continue
                more = file.read(max(_READ, len(data) - at))
                data, base = data[at:] + more if more else b"", base + at


def _spans(
    tokens: Iterable[Token],
    root: _Path,
    found: set[str],
    pass_over: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[int, int, _Path]]:
    """Give the members and items whose path matches; what is in those is only passed over."""
    outer: list[tuple[_Path, bool]] = []
    here, is_list, value = root, False, root
    """The container, and what comes next in it."""
    key, key_at, held_at, depth = b"", 0, 0, 0
    """How deep in what stays; 0: not in it."""
    for at, token in tokens:
        mark = token[:1]
        if mark == b'"':
            key, key_at = token, at
            continue
        if depth:
            depth += mark in b"[{"
            if depth > 1:
                depth -= mark in b"]}"
                continue
            depth = 0
            yield held_at, at, value
        if mark in b"[{":
            outer.append((here, is_list))
            here, is_list = value, mark == b"["
            if pass_over is not None and not here.may_hold:
                pass_over(at + 1, len(outer))
        elif mark in b"]}":
            here, is_list = outer.pop() if outer else (root, False)
            continue
        if mark == b":":
            value, held_at = here.below(key), key_at
        elif is_list:
            value, held_at = here.below(b"*"), at + 1
        else:
            continue
        if value.matched:
            found.update(value.matched)
            depth = 1
