"""Text, bytes and numbers on one line, cut in the middle; no work that grows with their length."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MARK = "…"
_ROUND = 13_000
"""Bits from which an int is rounded: Python refuses to write more than 4,300 digits."""
_LOG10_2 = 0.30102999566398119521
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if code != 10}
_CONTROL.update({9: "\\t", 13: "\\r", 0x2028: "\\u2028", 0x2029: "\\u2029"})


def cut(text: str, room: int) -> str:
    """Take out the middle of a text that is too long."""
    if len(text) <= room:
        return text
    tail = max(0, (room - 1) // 3)
    head = max(0, room - 1 - tail)
    return text[:head] + MARK + text[len(text) - tail :]


def one_line(text: str, room: int) -> str:
    """Bring a text of a stranger on one line without control characters."""
    if len(text) > 8 * room:
        text = cut(text, 8 * room)
    if not text.isprintable():
        if "\n" in text:
            text = " ".join(text.split())
        text = text.translate(_CONTROL)
        if not text.isprintable():  # lone surrogates, and marks that turn the writing round
            text = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text)
    return cut(text, room)


def text(value: str, room: int, above: object = ()) -> str:
    """Show a str as Python writes it; a long one by its ends and its length."""
    size = len(value)
    if size <= room - 2:
        whole = str.__repr__(value)
        if len(whole) <= room:
            return whole
    return _ends(str.__repr__, value, f" ({size:,} characters)", room)


def raw(value: bytes | bytearray, room: int, above: object = ()) -> str:
    """Show bytes likewise."""
    size = len(value)
    if size <= room - 3:
        whole = _bytes(value)
        if len(whole) <= room:
            return whole
    return _ends(_bytes, value, f" ({size:,} bytes)", room)


def _bytes(value: bytes | bytearray) -> str:
    return bytes.__repr__(bytes(value))


def _ends(write: Callable[[Any], str], value: Any, length: str, room: int) -> str:
    """Write the head and the tail of a text so that both and the length fit."""
    free = max(8, room - len(length) - 1)
    tail = free // 3
    opening = write(value[: free - tail])
    closing = write(value[len(value) - tail :])
    start = closing.index(closing[-1]) + 1
    # What was escaped takes more room than it had: it is cut here, once more.
    kept = opening[: max(2, free - tail - 1)].removesuffix(opening[-1])
    return kept + MARK + closing[max(start, len(closing) - tail) :] + length


def integer(value: int, room: int, above: object = ()) -> str:
    """Show an int of any size; beyond what Python writes, rounded, with the number of digits."""
    bits = int.bit_length(value)
    if bits > _ROUND:
        return _rounded(value, bits)
    whole = int.__repr__(value)
    if len(whole) <= room:
        return whole
    digits = f" ({len(whole.lstrip('-')):,} digits)"
    return cut(whole, max(8, room - len(digits))) + digits


def _rounded(value: int, bits: int) -> str:
    from math import log10  # built into Python

    sign = "-" if value < 0 else ""
    exact = log10(abs(value >> (bits - 60))) + (bits - 60) * _LOG10_2
    digits = int(exact)
    return f"{sign}{10 ** (exact - digits):.4f}e+{digits} (about {digits + 1:,} digits)"
