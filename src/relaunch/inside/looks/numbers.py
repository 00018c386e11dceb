"""What tensors and arrays have in common: their facts by name, and those facts as a line."""

from __future__ import annotations

from relaunch.inside.looks.plain import MARK, integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WHOLE = 8
"""As many elements, or fewer, are shown one by one."""
_DIGITS = {"float64": 0, "complex128": 0, "float32": 7, "complex64": 7}
"""As many as the type holds; 0 stands for all."""


def facts_line(facts: dict[str, Any]) -> str:
    """Write the facts of a tensor or an array: what it is, then its numbers."""
    words = [facts[key] for key in ("class", "shape", "dtype", "device") if key in facts]
    line = " ".join([one if type(one) is str else shape_text(one) for one in words])
    if "grad" in facts:
        line += " grad"
    if "values" not in facts:
        return line + numbers_text(facts)
    line += _marks(facts)
    values = _values(facts["values"], _DIGITS.get(facts["dtype"], 4))
    if facts["shape"] == ():  # a number first of all
        return f"{values} {line.replace('() ', '', 1)}"
    return f"{line} {values}"


def numbers_text(facts: dict[str, Any]) -> str:
    """Write the numbers that were read, each with a space before it."""
    line = _marks(facts)
    if "true" in facts:
        line += f" {facts['true']:,} true"
    low = facts.get("min")
    if low is not None:
        high = facts["max"]
        same = "nan" not in facts and "inf" not in facts and "-inf" not in facts
        if low == high and same:
            line += f" all {short(low)}"
        else:
            line += f" {short(low)}..{short(high)} mean {short(facts['mean'])}"
    for key in ("nan", "inf", "-inf", "NaT"):
        if key in facts:
            line += f" {key} {facts[key]:,}"
    if "unread" in facts:
        line += f" (not read: {facts['unread']})"
    if "sampled" in facts:
        line += f" (sampled {facts['sampled']:,} of {facts['size']:,})"
    return line


def _marks(facts: dict[str, Any]) -> str:
    return " " + " ".join(facts["marks"]) if "marks" in facts else ""


def shape_text(shape: Any) -> str:
    """Write a shape as Python does; one of very many dimensions by its first ones."""
    if len(shape) < 2:
        return f"({shape[0]},)" if shape else "()"
    if len(shape) <= 12:
        return f"({', '.join([str(one) for one in shape])})"
    return f"({', '.join([str(one) for one in shape[:12]])}, {MARK} {len(shape) - 12} more)"


def short(number: Any) -> str:
    """Write a number of a summary: four digits say enough, an int is written out."""
    return integer(number, 40) if type(number) is int else f"{number:.4g}"


def _values(values: Any, digits: int) -> str:
    if type(values) is list:
        return f"[{', '.join([_values(one, digits) for one in values])}]"
    if type(values) in (float, complex):
        return f"{values:.{digits}g}" if digits else repr(values)
    return repr(values)


def pieces(value: Any, size: int, most: int, grain: int, flat: Callable[[Any], Any]) -> list[Any]:
    """Cut into pieces of at most `grain` elements, at most `most` of them, spread over the whole.

    `flat` turns a tensor or an array as it lies in memory, without a copy.
    """
    if size <= grain:
        return [value]
    value = flat(value)
    length = value.shape[0]
    width = size // length
    if width <= grain:
        height = grain // width
        return [value[at : at + height] for at in _spread(length, height, most)]
    rows = _spread(length, 1, most)
    each = max(1, most // len(rows))
    return [piece for row in rows for piece in pieces(value[row], width, each, grain, flat)]


def _spread(length: int, height: int, most: int) -> list[int]:
    """Return where pieces of this height begin: all of them, or as many as may be, spread out."""
    if -(-length // height) <= most:
        return list(range(0, length, height))
    return [at * (length - height) // max(1, most - 1) for at in range(most)]
