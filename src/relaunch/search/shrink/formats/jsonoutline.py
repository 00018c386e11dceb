"""Where a JSON document can be cut, however large it is: how it is nested, block by block.

The file is read once. Of each block only a few numbers stay: whether it begins in a string, how
deep it begins, and how shallow it becomes. All that is deeper than the shallowest place of a block
is small, or another block has it as its shallowest: so a comma there is where to cut, and it is
looked for when it is needed. A string longer than a block is a container of its letters. What is
wrong within a value is not seen: that may be just what fails.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from functools import lru_cache
from operator import itemgetter

from relaunch.search.shrink.document import Unparsable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Run = tuple[int, int]
    """So many blocks in a row, or so many bytes: from one up to the other."""
    Token = tuple[int, int, int]
    """Where it is, the byte that is there, and the depth of its container."""

BLOCK = 1 << 14
"""The smallest block."""
_MOST_BLOCKS = 1 << 16
_ENDS = 1 << 16
_ROUNDS = 24
_QUOTE, _COMMA = ord('"'), ord(",")
_END_QUOTE = 0
"""Stands for the second quote of a string."""
_OPENED_BY = {ord("]"): ord("["), ord("}"): ord("{")}
_CLOSERS = frozenset({*_OPENED_BY, _END_QUOTE})
_NO_MARK = bytes(set(range(256)) - set(b'"[]{}'))
_TOKEN = re.compile(rb'"[^"]*"?|[\[\]{},]')
_LETTERS = re.compile(
    rb"(?>\\u[dD][89abAB]..\\u[dD][c-fC-F]..|\\u....|\\[^u]|[^\\][\x80-\xbf]*){12}(?=.{12})",
    re.DOTALL,
)
"""Behind so many no escape goes on that began before them, not even two that are one character;
and with so many bytes to come none of them is cut."""
_JSON = re.compile(
    rb'(?:[ \t\r\n\[\]{},:]+|"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][0-9.eE+-]*'
    rb"|true|false|null|NaN|-?Infinity)*",
    re.DOTALL,
)
_FIRST, _LONGEST_WORD = 256, 32


class Outline:
    """The nesting of one document in a file; `Unparsable` if it is not one value."""

    def __init__(self, path: str, size: int) -> None:
        """Read all of the file, once."""
        self.path = path
        self.size = size
        self.block = max(BLOCK, -(-size // _MOST_BLOCKS))
        self.start, self.end, root = self._inside()
        """What is in the outermost container, without its brackets."""
        self._begins = bytearray()
        self._depth = array("q")
        self.lowest = array("q")
        """How deep each block is at its shallowest; 1 is directly in the outermost container."""
        self._scan(root)
        self.tokens = lru_cache(maxsize=16)(self._tokens)
        self.cut = lru_cache(maxsize=None)(self._cut)
        """Where a block is cut."""
        self.known: dict[Run, list[Run]] = {}
        """What goes with runs of blocks, as far as that was asked for."""

    def __len__(self) -> int:
        """Return the number of blocks."""
        return len(self.lowest)

    def number(self, at: int) -> int:
        """Return the block in which a byte is."""
        return (at - self.start) // self.block

    def _cut(self, number: int) -> int:
        """Return the first comma of a block where it is shallowest; -1 if there is none."""
        if self._is_text(number):
            start = self.start + number * self.block
            match = _LETTERS.match(self._read(number), self._begins[number] >> 1)
            return -1 if match is None or self._is_key(start) else start + match.end()
        lowest = self.lowest[number]
        for at, mark, depth in self.tokens(number):
            if mark == _COMMA and depth == lowest:
                return at
        return -1

    def after_cut(self, number: int) -> int:
        """Return what is behind the comma, or between two letters."""
        return self.cut(number) + (not self._is_text(number))

    def _is_text(self, number: int) -> bool:
        """Tell whether all of a block is in one string: that is deeper than where it begins."""
        return self.lowest[number] > self._depth[number]

    def closing(self, at: int, depth: int) -> int:
        """Return where the container of a depth ends in which a byte is."""
        first = self.number(at)
        for number in range(first, len(self)) if depth > 1 else ():
            if number > first and self.lowest[number] >= depth:
                continue
            tokens = self.tokens(number)
            for index in range(_count_before(tokens, at), len(tokens)):
                place, mark, deep = tokens[index]
                if deep == depth and mark in _CLOSERS:
                    return place
        return self.end

    def opening(self, at: int, depth: int) -> int:
        """Return where the container of a depth begins in which a byte is."""
        before = self._before(at, depth, down_to=depth - 1)
        return next((place for place, mark in before if mark != _COMMA), -1)

    def item(self, at: int, depth: int) -> tuple[int, bool]:
        """Return what is before an item of a container: a comma, or its bracket if it is first."""
        place, mark = next(self._before(at, depth, down_to=depth))
        return place, mark != _COMMA

    def _before(self, at: int, depth: int, *, down_to: int) -> Iterator[tuple[int, int]]:
        """Walk back over the commas of a depth and what opens one, in blocks as shallow as that."""
        last = self.number(at)
        for number in range(last, -1, -1):
            if number < last and self.lowest[number] > down_to:
                continue
            tokens = self.tokens(number)
            for index in range(_count_before(tokens, at) - 1, -1, -1):
                place, mark, deep = tokens[index]
                if deep == depth and mark not in _CLOSERS:
                    yield place, mark
        yield self.start - 1, 0

    def _is_key(self, at: int) -> bool:
        """Tell whether a string that is longer than a block is a key: what is behind it tells."""
        end = self.closing(at, self.lowest[self.number(at)])
        return self._bytes(end + 1, self.block).lstrip().startswith(b":")

    def _read(self, number: int) -> bytes:
        return self._bytes(self.start + number * self.block, self.block)

    def _bytes(self, start: int, count: int) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(start)
            return file.read(min(count, self.end - start))

    def _tokens(self, number: int) -> list[Token]:
        """Return the brackets, quotes and commas of a block, with the depth of their containers."""
        start = self.start + number * self.block
        data = _unescaped(self._read(number), self._begins[number] >> 1)[0]
        depth = self._depth[number]
        found: list[Token] = []
        first = 0
        if self._begins[number] & 1:
            first = data.find(b'"') + 1
            if not first:
                return found
            found.append((start + first - 1, _END_QUOTE, depth + 1))
        for match in _TOKEN.finditer(data, first):
            at, end = match.span()
            mark = data[at]
            if mark == _QUOTE:
                found.append((start + at, _QUOTE, depth + 1))
                if end > at + 1 and data[end - 1] == _QUOTE:
                    found.append((start + end - 1, _END_QUOTE, depth + 1))
                continue
            if mark != _COMMA and mark not in _OPENED_BY:
                depth += 1
            found.append((start + at, mark, depth))
            depth -= mark in _OPENED_BY
        return found

    def _inside(self) -> tuple[int, int, int]:
        """Return where what is in the outermost container starts and ends, and its bracket."""
        with open(self.path, "rb") as file:
            first = file.read(_ENDS)
            file.seek(max(0, self.size - _ENDS))
            last = file.read(_ENDS)
        start = len(first) - len(first.lstrip(b" \t\r\n"))
        closed = last.rstrip(b" \t\r\n")
        end = self.size - (len(last) - len(closed)) - 1
        if first[start : start + 1] not in (b"[", b"{") or not _is_json(first[start:]):
            raise Unparsable("not JSON", start)
        if not closed or _OPENED_BY.get(closed[-1]) != first[start] or end <= start:
            raise Unparsable("not closed", end)
        return start + 1, end, first[start]

    def _scan(self, root: int) -> None:
        stack = bytearray((root,))
        quoted = escaped = 0
        with open(self.path, "rb") as file:
            file.seek(self.start)
            for start in range(self.start, self.end, self.block):
                data = file.read(min(self.block, self.end - start))
                self._begins.append(quoted | escaped << 1)
                self._depth.append(len(stack))
                data, escaped = _unescaped(data, escaped)
                if quoted and b'"' not in data:
                    self.lowest.append(len(stack) + 1)
                    continue
                marks = data.translate(None, _NO_MARK)
                if quoted:
                    marks = b'"' + marks
                quoted = marks.count(b'"') & 1
                left = _unbalanced(_unquoted(marks))
                opened = left.lstrip(b"]}")
                for mark in left[: len(left) - len(opened)]:
                    if len(stack) == 1 or stack.pop() != _OPENED_BY[mark]:
                        raise Unparsable("closed, but not opened", start)
                if opened.strip(b"[{"):
                    raise Unparsable("closed, but not opened", start)
                self.lowest.append(len(stack))
                stack += opened
        if quoted or len(stack) > 1:
            raise Unparsable("not closed", self.end)


def _is_json(data: bytes) -> bool:
    """Tell whether it begins with nothing but what JSON is made of."""
    first = data[:_FIRST]
    match = _JSON.match(first)
    at = match.end() if match else 0
    is_cut = len(first) < len(data) and len(first) - at < _LONGEST_WORD
    return is_cut or first[at : at + 1] in (b"", b'"')


def _count_before(tokens: list[Token], at: int) -> int:
    """Count the tokens before a byte."""
    return bisect_left(tokens, at, key=itemgetter(0))


def _unescaped(data: bytes, escaped: int) -> tuple[bytes, int]:
    """Return a block without backslashes before quotes, and whether the next byte has one."""
    if escaped:
        data = b"_" + data[1:]
    if b"\\" not in data:
        return data, 0
    data = data.replace(b"\\\\", b"__")
    return data.replace(b'\\"', b"__"), int(data.endswith(b"\\"))


def _unquoted(marks: bytes) -> bytes:
    """Return the brackets that are in no string."""
    marks = marks.replace(b'""', b"")  # two that touch open and close nothing between them
    return b"".join(marks.split(b'"')[::2]) if b'"' in marks else marks


def _unbalanced(marks: bytes) -> bytes:
    """Return the brackets without those that close each other."""
    for _ in range(_ROUNDS):
        less = marks.replace(b"[]", b"").replace(b"{}", b"")
        if len(less) == len(marks):
            return marks
        marks = less
    left = bytearray()
    for mark in marks:
        if left and left[-1] == _OPENED_BY.get(mark):
            left.pop()
        else:
            left.append(mark)
    return bytes(left)
