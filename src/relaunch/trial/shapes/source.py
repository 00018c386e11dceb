"""A Python file as lines with comments, in which nothing but comments is ever changed.

Encoding, byte-order mark, line ends, tabs: whatever is no comment stays byte for byte. That is
proved on the new text before anybody writes it.
"""

from __future__ import annotations

import ast
import io
import tokenize

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_BOM = b"\xef\xbb\xbf"
_PLAIN = (tokenize.COMMENT, tokenize.NL)


class NotWritable(Exception):
    """The text cannot be changed safely; `why` says it in one line."""

    def __init__(self, why: str) -> None:
        """Say why."""
        super().__init__(why)
        self.why = why


class Line(Record):
    """A logical line: all of a statement, which may take several lines of the file."""

    first: int
    last: int
    """The line of the file that it ends on, where its comment goes."""
    column: int
    """Where on that line its comment begins, or would."""
    comment: str = ""


class Source:
    """The text of one file."""

    def __init__(self, data: bytes) -> None:
        """Read it; raises NotWritable if this Python cannot."""
        self.data = data
        self._bom = _BOM if data.startswith(_BOM) else b""
        try:
            self.encoding = tokenize.detect_encoding(io.BytesIO(data).readline)[0]
            self.encoding = self.encoding.removesuffix("-sig")
            self.text = data[len(self._bom) :].decode(self.encoding)
            self.tree = ast.parse(data)
        except (SyntaxError, ValueError, LookupError) as error:
            raise NotWritable(f"this Python cannot read it: {error}") from None
        if "\r" in self.text.replace("\r\n", ""):
            raise NotWritable("it has carriage returns that end no line")
        self.lines = self.text.split("\n")
        self._by_line = {number: line for line in self._logical() for number in _numbers(line)}

    def line_of(self, number: int) -> Line | None:
        """Return the logical line that a line of the file belongs to."""
        return self._by_line.get(number)

    def comments(self) -> list[Line]:
        """Return the logical lines that end with a comment."""
        lines = {id(line): line for line in self._by_line.values()}
        return [line for line in lines.values() if line.comment]

    def width_with(self, line: Line, comment: str) -> int:
        """Return how long the last line of a statement would be with this comment."""
        return len(self._with(line, comment).rstrip("\r"))

    def _logical(self) -> list[Line]:
        found: list[Line] = []
        first = 0
        comment: tokenize.TokenInfo | None = None
        for token in _tokens(self.text):
            if token.type == tokenize.COMMENT:
                comment = token
            elif token.type == tokenize.NEWLINE:
                last = token.start[0]
                own = comment is not None and comment.start[0] == last and first
                body = self.lines[last - 1].rstrip("\r")
                column = comment.start[1] if comment is not None and own else len(body)
                text = comment.string if comment is not None and own else ""
                found.append(Line(first=first or last, last=last, column=column, comment=text))
                first = 0
            elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
                first = first or token.start[0]
        return found

    # --- changing --------------------------------------------------------------------------------

    def with_comments(self, comments: Mapping[int, str]) -> bytes:
        """Return the file with these comments, by the line that they end; proved to be no more."""
        lines = list(self.lines)
        for number, comment in comments.items():
            line = self._by_line[number]
            lines[line.last - 1] = self._with(line, comment)
        text = "\n".join(lines)
        try:
            data = self._bom + text.encode(self.encoding)
        except UnicodeEncodeError:
            raise NotWritable(f"{self.encoding} has no letters for a name in it") from None
        self._prove(data, text)
        return data

    def _with(self, line: Line, comment: str) -> str:
        whole = self.lines[line.last - 1]
        end = "\r" if whole.endswith("\r") else ""
        body = whole.removesuffix("\r")
        code = body[: line.column]
        if not line.comment:
            code += " " * max(0, 2 - (len(code) - len(code.rstrip(" \t"))))
        return f"{code}{comment}{end}"

    def _prove(self, data: bytes, text: str) -> None:
        try:
            is_same = _code(text) == _code(self.text)
            tree = ast.parse(data)
        except (SyntaxError, ValueError, tokenize.TokenError) as error:
            raise NotWritable(f"it would be no Python any more: {error}") from None
        if not is_same or _dump(tree) != _dump(self.tree):
            raise NotWritable("more than comments would change")


def _numbers(line: Line) -> range:
    return range(line.first, line.last + 1)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    return list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))


def _code(text: str) -> list[tuple[int, str, tuple[int, int]]]:
    """Return all that is no comment, each with its place."""
    found = []
    for token in _tokens(text):
        if token.type not in _PLAIN:
            # Where a line ends moves with its comment.
            place = (0, 0) if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER) else token.start
            found.append((token.type, token.string, place))
    return found


def _dump(tree: ast.AST) -> str:
    return ast.dump(tree, include_attributes=True)
