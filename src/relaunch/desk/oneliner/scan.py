"""Cuts Python text into words, strings and signs; alike under every Python 3.

`tokenize` knows the grammar of the Python that runs it, and refuses what a newer one allows; and it
costs `re`. Only the ends of strings and brackets matter here; what is wrong, Python will say.
"""

from __future__ import annotations

from relaunch.record import Record

NAME, STRING, NUMBER, SIGN, NEWLINE = "name", "string", "number", "sign", "newline"
_PREFIXES = frozenset(
    ("r", "b", "u", "f", "t", "br", "rb", "fr", "rf", "tr", "rt")
)  # each in any case
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


class Token(Record):
    """One piece of the text; blanks and comments are none."""

    kind: str
    text: str
    start: int
    depth: int
    """How many brackets are open before it, and after it if it closes one."""

    @property
    def end(self) -> int:
        """Where the text goes on behind it."""
        return self.start + len(self.text)


def scan(text: str) -> list[Token]:
    """Return the tokens of the text; a newline is one only outside of brackets."""
    found: list[Token] = []
    at, depth = 0, 0
    while at < len(text):
        char = text[at]
        if char in " \t\f\r" or (char == "\n" and depth):
            at += 1
            continue
        if char == "\\" and text[at + 1 : at + 2] in ("\n", "\r"):
            at += 3 if text.startswith("\r\n", at + 1) else 2
            continue
        if char == "#":
            at = line_end(text, at)
            continue
        kind, end = _one(text, at)
        if char in _CLOSE:
            depth = max(0, depth - 1)
        found.append(Token(kind=kind, text=text[at:end], start=at, depth=depth))
        if char in _OPEN:
            depth += 1
        at = end
    return found


def line_end(text: str, at: int) -> int:
    """Return where the line ends that `at` is in."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _one(text: str, at: int) -> tuple[str, int]:
    """Return what begins here, and where it ends."""
    char = text[at]
    if char == "\n":
        return NEWLINE, at + 1
    if char in "'\"":
        return STRING, _string_end(text, at, "")
    if _begins_word(char):
        end = _word_end(text, at)
        if text[end : end + 1] in ("'", '"') and text[at:end].lower() in _PREFIXES:
            return STRING, _string_end(text, end, text[at:end].lower())
        return NAME, end
    if char.isdigit() or (char == "." and text[at + 1 : at + 2].isdigit()):
        end = at + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "._"):
            end += 1
        return NUMBER, end
    return SIGN, at + (2 if text.startswith(":=", at) else 1)


def _begins_word(char: str) -> bool:
    return char == "_" or char.isalpha() or char > "\x7f"


def _word_end(text: str, at: int) -> int:
    while at < len(text) and (_begins_word(text[at]) or text[at].isdigit()):
        at += 1
    return at


def _string_end(text: str, at: int, prefix: str) -> int:
    """Return where a string ends whose quote is here; the end of its line if it is not closed."""
    quote = text[at : at + 3] if text[at : at + 3] in ("'''", '"""') else text[at]
    fields = "f" in prefix or "t" in prefix
    at += len(quote)
    while at < len(text):
        if text.startswith(quote, at):
            return at + len(quote)
        char = text[at]
        if fields and char == "\\" and text.startswith("N{", at + 1) and "r" not in prefix:
            at = text.find("}", at) + 1 or len(text)
        elif char == "\\" and not (fields and text[at + 1 : at + 2] in ("{", "}")):
            at += 2
        elif fields and char == "{":
            at = at + 2 if text.startswith("{{", at) else _field_end(text, at + 1, quote)
        elif char == "\n" and len(quote) == 1:
            return at
        else:
            at += 1
    return len(text)


def _field_end(text: str, at: int, quote: str) -> int:
    """Return the place behind the `}` of a field of an f-string; any code may stand in it."""
    depth = 0
    while at < len(text):
        char = text[at]
        if char == "}" and depth == 0:
            return at + 1
        if char == ":" and depth == 0:
            return _spec_end(text, at + 1, quote)
        if char == "\n" and len(quote) == 1 and depth == 0:
            return at
        if char == "#":
            at = line_end(text, at)
        elif char.isspace():
            at += 1
        else:
            depth += (char in _OPEN) - (char in _CLOSE)
            at = _one(text, at)[1]
    return len(text)


def _spec_end(text: str, at: int, quote: str) -> int:
    """Return the place behind the `}` that ends a field's format, which may have fields itself."""
    while at < len(text):
        if text[at] == "}":
            return at + 1
        if text.startswith(quote, at):
            return at
        at = _field_end(text, at + 1, quote) if text[at] == "{" else at + 1
    return len(text)
