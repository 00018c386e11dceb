"""Makes a line safe for a terminal, in the user's process: its text, and no escape sequence."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with each character that is not to be seen as its escape in Python."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() or one in "\n\t" else ascii(one)[1:-1] for one in text)
