"""Shapes that stand in a comment, wherever in its words, and what they are said of."""

from __future__ import annotations

from relaunch.record import Record
from relaunch.trial.shapes.notation import (
    ANY,
    REST,
    Shape,
    closing,
    is_side,
    names_in,
    read_value,
    sides_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

_ARROWS = ("->", "=>", "→", "=", "⇒")
_SHORT = 2
_NAMES = 200


class Said(Record):
    """A shape in a comment."""

    start: int
    end: int
    value: Any
    label: str = ""
    """The name before it, if it is one of those that the line sets."""
    label_start: int = 0
    is_result: bool = False
    """An arrow leads to it."""


def said_in(comment: str, labels: Sequence[str], known: Collection[str] = ()) -> list[Said]:
    """Return the shapes in a comment of a line that sets these names; `known` are sizes by name.

    `(B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)` says one thing of the line: the last.
    """
    found = [one for one in _all(comment, labels) if _is_meant(one, comment, known)]
    results = [one for one in found if one.is_result]
    labelled = [one for one in found if one.label]
    return labelled or results[-1:] or found[:1]


def _all(comment: str, labels: Sequence[str]) -> Iterator[Said]:
    at = 0
    while at < len(comment):
        if comment[at] not in "([{" or (at and _binds(comment[at - 1])):
            at += 1
            continue
        read = read_value(comment, at) or _one_side(comment, at)
        if read is None:
            at = at + 1 if comment[at] == "(" else max(closing(comment, at), at) + 1
            continue
        value, end = read
        before = comment[:at].rstrip()
        label = next((one for one in labels if _ends_with(before.rstrip(":"), one)), "")
        start = len(before.rstrip(":")) - len(label) if label else at
        is_result = before.endswith(_ARROWS)
        yield Said(start=at, end=end, value=value, label=label, label_start=start,
                   is_result=is_result)  # fmt: skip
        at = end


def _one_side(comment: str, at: int) -> tuple[Shape, int] | None:
    """Read `shape (t)`: elsewhere one word in brackets is no shape."""
    end = comment.find(")", at)
    is_told = comment[:at].rstrip(" :=").lower().endswith(("shape", "size"))
    text = comment[at + 1 : end].strip()
    if end < 0 or not is_told or comment[at] != "(" or not text or not is_side(text):
        return None
    return Shape(sides=(text,)), end + 1


def _binds(char: str) -> bool:
    """Tell whether a bracket right behind this is a call or an index."""
    return char.isalnum() or char in "_)]."


def _ends_with(text: str, word: str) -> bool:
    rest = text[: -len(word)] if text.endswith(word) else None
    return rest is not None and not (rest and (rest[-1].isalnum() or rest[-1] in "_."))


def _is_meant(one: Said, comment: str, known: Collection[str]) -> bool:
    """Tell a shape from words in brackets, as `(query, key)`: it has a size, or stands alone."""
    alone = comment[one.end :].strip() == "" and comment[: one.label_start].strip() in ("", "#")
    if comment[one.start] == "[" and isinstance(one.value, Shape) and len(one.value.sides) == 1:
        return alone  # as in `using list [-1]`
    return alone or any(_is_size(side, known) for side in sides_of(one.value))


def _is_size(side: str, known: Collection[str]) -> bool:
    return (
        side in (ANY, REST)
        or side in known
        or not side.replace(".", "").isidentifier()
        or len(side) <= _SHORT
        or side.isupper()
    )


def names_said(comments: Sequence[str]) -> tuple[str, ...]:
    """Return the names in all shapes of some comments: the program is asked for their numbers."""
    found: dict[str, None] = {}
    for comment in comments:
        for one in _all(comment, ()):
            for side in sides_of(one.value):
                found.update((name.partition(".")[0], None) for name in names_in(side))
    return tuple(found)[:_NAMES]
