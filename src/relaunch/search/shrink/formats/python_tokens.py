"""Python source as tokens, by a lexer that never fails: what does not compile has tokens too.

Everything is bytes of UTF-8, as the positions of syntax trees are.
"""

from __future__ import annotations

import keyword
import re

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_LEXER = re.compile(
    rb"""(?P<newline>\r\n|\r|\n)
    |(?P<space>[ \t\f]+|\\(?:\r\n|\r|\n))
    |(?P<comment>\#[^\r\n]*)
    |(?P<string>[rbuftRBUFT]{0,2}(?:\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
        |"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*'))
    |(?P<name>[A-Za-z_\x80-\xff][\w\x80-\xff]*)
    |(?P<number>\.?\d(?:[eE][+-](?=\d)|[\w.])*)
    |(?P<op>\*\*=|//=|>>=|<<=|\.\.\.|->|:=|[-+*/%&|^@=<>!]=|\*\*|//|>>|<<|.)""",
    re.VERBOSE | re.DOTALL,
)
_OPEN, _CLOSE = (b"(", b"[", b"{"), (b")", b"]", b"}")
_BREAKS = frozenset(b": ; = += -= *= /= |= &= ^= @= %= := ->".split())
KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)


class Token(Record):
    """A stretch of the text."""

    kind: str
    start: int
    end: int
    text: bytes


def tokens(text: bytes) -> list[Token]:
    """Return all tokens of a text, white space too: together they are the text."""
    return [
        Token(kind=str(found.lastgroup), start=found.start(), end=found.end(), text=found.group())
        for found in _LEXER.finditer(text)
    ]


class Listed(Record):
    """A list with commas: elements as spans, within what holds them."""

    start: int
    end: int
    elements: tuple[tuple[int, int], ...]
    bracket: bool

    def span(self, low: int, high: int) -> tuple[int, int]:
        """Return what goes with some elements: a comma on one side too."""
        if high < len(self.elements):
            return self.elements[low][0], self.elements[high][0]
        if low:
            return self.elements[low - 1][1], self.elements[high - 1][1]
        return self.start, self.end


class _Open:
    """A list that is being read."""

    def __init__(self, start: int, bracket: bool) -> None:
        self.start = start
        self.bracket = bracket
        self.elements: list[tuple[int, int]] = []
        self.first = self.last = -1

    def take(self, token: Token) -> None:
        if self.first < 0:
            self.first = token.start
        self.last = token.end

    def cut(self) -> None:
        if self.first >= 0:
            self.elements.append((self.first, self.last))
        self.first = -1

    def done(self, end: int) -> Listed:
        self.cut()
        if not self.bracket and self.elements:
            self.start, end = self.elements[0][0], self.elements[-1][1]
        return Listed(
            start=self.start, end=end, elements=tuple(self.elements), bracket=self.bracket
        )


def lists(found: list[Token]) -> list[Listed]:
    """Return the comma lists, outer ones first: in brackets, and of `import a, b` and the like."""
    done: list[Listed] = []
    stack = [_Open(0, bracket=False)]
    for token in found:
        if token.kind in ("space", "comment") or (token.kind == "newline" and len(stack) > 1):
            continue
        if token.text in _OPEN:
            stack[-1].take(token)
            stack.append(_Open(token.end, bracket=True))
        elif token.text in _CLOSE:
            if len(stack) > 1:
                done.append(stack.pop().done(token.start))
            stack[-1].take(token)
        elif token.text == b",":
            stack[-1].cut()
        elif len(stack) == 1 and _breaks(token):
            done.append(stack.pop().done(token.start))
            stack.append(_Open(token.end, bracket=False))
        else:
            stack[-1].take(token)
    done += (one.done(found[-1].end if found else 0) for one in reversed(stack))
    return sorted(
        (one for one in done if one.elements and (one.bracket or len(one.elements) > 1)),
        key=lambda one: (one.start, -one.end),
    )


def brackets(text: bytes, found: list[Listed]) -> list[list[tuple[int, int, bytes]]]:
    """Return for each pair of brackets what takes them away, and leaves what is in them."""
    pairs = []
    for one in found:
        if one.bracket and text[one.end : one.end + 1] in _CLOSE:
            before = text[one.start - 2 : one.start - 1]
            gap = b" " if before.isalnum() else b""
            pairs.append([(one.start - 1, one.start, gap), (one.end, one.end + 1, b"")])
    return pairs


def _breaks(token: Token) -> bool:
    return token.kind == "newline" or token.text in _BREAKS or token.text in KEYWORDS


def names(found: list[Token]) -> list[bytes]:
    """Return the names of a source that could be shorter, in order of appearance."""
    seen = dict.fromkeys(t.text for t in found if t.kind == "name" and t.text not in KEYWORDS)
    return [name for name in seen if len(name) > 1]


def short_names(found: list[Token]) -> Iterator[bytes]:
    """Yield names of one letter that a source does not have."""
    used = {t.text for t in found}
    for letter in b"abcdefghijklmnopqrstuvwxyz":
        if bytes([letter]) not in used:
            yield bytes([letter])


def blanks(found: list[Token]) -> list[tuple[int, int, bytes]]:
    """Return comments, empty lines and wide spaces, with what is enough in place of each."""
    edits: list[tuple[int, int, bytes]] = []
    fresh = True
    for at, token in enumerate(found):
        after = found[at + 1] if at + 1 < len(found) else None
        if token.kind == "newline":
            if fresh:
                edits.append((token.start, token.end, b""))
            fresh = True
            continue
        if token.kind == "comment":
            start = token.start
            if at and found[at - 1].kind == "space":
                start = found[at - 1].start
            whole_line = fresh and after is not None and after.kind == "newline"
            edits.append((start, after.end if whole_line and after else token.end, b""))
            continue
        if token.kind == "space" and not fresh and after is not None:
            enough = b" " if _words(found[at - 1], after) else b""
            if token.text != enough and after.kind != "comment":
                edits.append((token.start, token.end, enough))
        fresh = fresh and token.kind == "space"
    return _apart(edits)


def _words(left: Token, right: Token) -> bool:
    wordy = ("name", "number", "string")
    return left.kind in wordy and right.kind in wordy


def _apart(edits: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    kept: list[tuple[int, int, bytes]] = []
    for edit in edits:
        if not kept or edit[0] >= kept[-1][1]:
            kept.append(edit)
    return kept


def narrow(text: bytes, found: list[Token]) -> bytes:
    """Return a source with each level of its lines one space in, as far as lines tell levels."""
    out: list[bytes] = []
    levels = [b""]
    fresh, depth, at = True, 0, 0
    while at < len(found):
        token = found[at]
        if fresh and depth == 0 and token.kind not in ("newline", "comment"):
            indent = token.text if token.kind == "space" else b""
            after = found[at + 1] if at + 1 < len(found) else None
            empty = indent and (after is None or after.kind in ("newline", "comment"))
            if not empty:
                while len(levels) > 1 and len(levels[-1]) > len(indent):
                    levels.pop()
                if len(indent) > len(levels[-1]):
                    levels.append(indent)
                out.append(b" " * (len(levels) - 1))
                if indent:
                    fresh = False
                    at += 1
                    continue
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        depth = max(depth, 0)
        fresh = token.kind == "newline" or (fresh and token.kind == "space")
        out.append(token.text)
        at += 1
    return b"".join(out)
