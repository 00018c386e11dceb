"""Reads one line as a program: compound statements after `;` and `:`, `;;` to end a block.

The grammar, beside Python's own:

- `;` ends a simple statement. What follows is in the same block.
- A compound statement may stand wherever a statement may: after `;`, and after the `:` of another.
  Its block goes on to the end of the line.
- `;;` ends the innermost block, `;;;` the two innermost, and so on.
- `elif`, `else`, `except` and `finally` belong to the innermost open block that can have them, and
  end those within it; `case` to the innermost `match`. No `;` is needed before the first four.
- A `match` ends with its last `case`. A decorator is followed by `;` or by its `def` or `class`.
- A real newline ends the blocks that its line opened.
"""

from __future__ import annotations

from relaunch.desk.oneliner.scan import NAME, NEWLINE, Token, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OPENERS = frozenset(("for", "while", "if", "with", "try", "def", "class"))
_AFTER = {
    "elif": ("if", "elif"),
    "else": ("if", "elif", "for", "while", "try", "except"),
    "except": ("try", "except"),
    "finally": ("try", "except", "else of try"),
}
"""A clause, and the kinds of block that it can follow."""
_STEP = "    "


class _Unreadable(Exception):
    """The line has no reading here; Python will say what is wrong with it."""


def expand(text: str) -> str:
    """Return the program, one statement per line; the text itself if it cannot be read so."""
    lines: list[str] = []
    tokens: list[Token] = []
    try:
        for token in scan(text):
            if token.kind != NEWLINE:
                tokens.append(token)
            elif tokens:
                lines += _Reader(text, tokens).read()
                tokens = []
        if tokens:
            lines += _Reader(text, tokens).read()
    except _Unreadable:
        return text
    return "\n".join(lines)


class _Reader:
    """Reads one logical line from left to right; `here` is the token under the eye."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.here = 0
        self.blocks: list[str] = []
        """The open blocks, outermost first, each by the word that opened it."""
        self.lines: list[str] = []
        start = tokens[0].start
        self.indent = text[text.rfind("\n", 0, start) + 1 : start]

    def read(self) -> list[str]:
        while self.here < len(self.tokens):
            self._statement()
            self._semicolons()
        return self.lines

    def _statement(self) -> None:
        word = self._word(self.here)
        colon = self._colon()
        if self.blocks[-1:] == ["match"] and word != "case":
            self.blocks.pop()
        if word == "@":
            self._put(self._end_of_decorator())
        elif self._is_clause(self.here):
            self._open(self._close_for(word), colon)
        elif word == "case" and self._is_header(colon) and self._is_case():
            while self.blocks and self.blocks[-1] != "match":
                self.blocks.pop()
            self._open("case", colon)
        elif word in _OPENERS or (word == "async" and self._word(self.here + 1) in _OPENERS):
            self._open(self._word(self.here + 1) if word == "async" else word, colon)
        elif word == "match" and self._is_header(colon) and self._is_match(colon):
            self._open("match", colon)
        else:
            self._put(self._end_of_simple())

    def _semicolons(self) -> None:
        """Step over `;`; each beyond the first ends a block."""
        count = 0
        while self._word(self.here) == ";":
            self.here += 1
            count += 1
        if self.here == len(self.tokens):
            return
        for _ in range(count - 1):
            if not self.blocks:
                raise _Unreadable
            self.blocks.pop()

    def _put(self, end: int) -> None:
        """Write the tokens up to `end` as a line of the innermost block."""
        if end == self.here:
            raise _Unreadable
        code = self.text[self.tokens[self.here].start : self.tokens[end - 1].end]
        self.lines.append(self.indent + _STEP * len(self.blocks) + code)
        self.here = end

    def _open(self, kind: str, colon: int | None) -> None:
        """Write a header and go into its block; one without `:` is for Python to judge."""
        self._put(self._end_of_simple() if colon is None else colon + 1)
        self.blocks.append(kind)
        if colon is not None and self._word(self.here) == ";":
            raise _Unreadable  # a block has at least one statement

    # --- where does it end? ---

    def _colon(self) -> int | None:
        """Return where the `:` of a header is: outside of brackets, and of no `lambda`."""
        lambdas = 0
        for at in range(self.here, len(self.tokens)):
            token = self.tokens[at]
            if token.depth:
                continue
            if token.text == ";" or (at > self.here and self._is_clause(at)):
                return None
            if token.text == "lambda":
                lambdas += 1
            elif token.text == ":":
                if not lambdas:
                    return at
                lambdas -= 1
        return None

    def _end_of_simple(self) -> int:
        end = self.here
        while end < len(self.tokens):
            token = self.tokens[end]
            if not token.depth and (
                token.text == ";" or (end > self.here and self._is_clause(end))
            ):
                break
            end += 1
        return end

    def _end_of_decorator(self) -> int:
        end = self._end_of_simple()
        for at in range(self.here + 1, end):
            if self._word(at) in ("def", "class", "async") and not self.tokens[at].depth:
                return at
        return end

    # --- what is it? ---

    def _word(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def _is_clause(self, at: int) -> bool:
        """Tell a clause; an `else` without `:` is that of a conditional expression."""
        token = self.tokens[at]
        if token.kind != NAME or token.text not in _AFTER:
            return False
        return token.text != "else" or self._word(at + 1) == ":"

    def _is_header(self, colon: int | None) -> bool:
        """Tell `case x:` from `case: int`, which is a variable with that name."""
        return colon is not None and colon > self.here + 1

    def _is_case(self) -> bool:
        """Tell a clause of a `match`, one of the same line or one that real lines opened."""
        return "match" in self.blocks or self.here == 0

    def _is_match(self, colon: int | None) -> bool:
        """Tell the statement from a variable with that name: a `case` follows."""
        return colon is not None and self._word(colon + 1) in ("case", "")

    def _close_for(self, clause: str) -> str:
        """End the blocks within the one that the clause belongs to; return the new one's kind."""
        if self.here == 0:
            return "else of try" if clause == "else" else clause  # real lines opened its block
        while self.blocks:
            kind = self.blocks.pop()
            if kind in _AFTER[clause]:
                of_try = clause == "else" and kind in ("try", "except")
                return "else of try" if of_try else clause
        raise _Unreadable
