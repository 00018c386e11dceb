"""Finds what the arguments of a running call are called: by its source, else by its bytecode."""

from __future__ import annotations

import sys
from itertools import islice

from relaunch.inside.label.bytecode import built, fits, order_of
from relaunch.inside.label.written import Call, text_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    Label = tuple[str, int | slice]
    """A text, and the argument that it stands for, or several."""

LONGEST = 80
"""Characters of an argument's text that are shown."""
_OPTIMIZED = 1
"""Flag of code whose variables are no dict: that of functions."""
_MODULE = type(sys)
_UNKNOWN = object()


def labels_of(frame: FrameType, function: object, count: int, names: list[str]) -> list[Label]:
    """Return the texts of the `count` unnamed arguments with which the frame calls `function`.

    An empty text stands for an argument that says enough itself, or of which nothing is known.
    """
    for look in (_written, _built):
        try:
            found = look(frame, function, count, names)
        except Exception:
            continue
        if found is not None:
            return found
    return [("", at) for at in range(count)]


def _written(
    frame: FrameType, function: object, count: int, names: list[str]
) -> list[Label] | None:
    """Look into the source, unless it is another one by now."""
    code, at = frame.f_code, frame.f_lasti
    place = _place(code, at)
    found = text_at(code, place, frame.f_globals) if place[0] is not None else None
    if found is None:
        return None
    if found.whole is not None:
        call = found.whole
        same = call.may_be(count, names) and _is_of(call.callee, frame, function)
        return _labels(call) if same and fits(code, at, place, found.text, call) else None
    # The place of the call is that of its statement, as in an `assert` that pytest rewrote.
    ours = [one for one in found.calls if one.callee and _is_of(one.callee, frame, function)]
    if len(ours) > 1:
        if place[2] is None:  # a place without columns: any of them
            return None
        ours = ours[order_of(code, at, place, ours[0].callee[-1]) :]
    return _labels(ours[0]) if ours and ours[0].may_be(count, names) else None


def _built(frame: FrameType, function: object, count: int, names: list[str]) -> list[Label] | None:
    """Take the bytecode that makes the arguments apart."""
    code, at = frame.f_code, frame.f_lasti
    callee, texts = built(code, at, _place(code, at))
    if len(texts) != count + len(names) or not _is_of(tuple(callee.split(".")), frame, function):
        return None
    return [(_cut(text), at) for at, text in enumerate(texts[:count])]


def _place(code: CodeType, at: int) -> Any:
    return next(islice(code.co_positions(), at // 2, None))


def _labels(call: Call) -> list[Label]:
    """Give each argument its text; those of stars one together, for nobody sees where one ends."""
    texts = ["" if said else _cut(text) for text, said in zip(call.texts, call.said, strict=True)]
    if all(call.plain):
        return [(text, at) for at, text in enumerate(texts)]
    first = call.plain.index(False)
    after = call.plain[::-1].index(False)
    stars = ", ".join(call.texts[first : len(texts) - after])
    head: list[Label] = [(text, at) for at, text in enumerate(texts[:first])]
    tail: list[Label] = [(text, at - after) for at, text in enumerate(texts[len(texts) - after :])]
    return [*head, (_cut(stars), slice(first, -after or None)), *tail]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _is_of(callee: tuple[str, ...], frame: FrameType, function: object) -> bool:
    """Tell whether these names, as of `a.b.c`, mean the function, as far as can be seen."""
    found: Any = _UNKNOWN
    for name in callee:
        if found is _UNKNOWN:
            found = _named(frame, name)
        elif type(found) is _MODULE:
            found = vars(found).get(name, _UNKNOWN)
        else:  # to ask another object might run its code
            return True
        if found is _UNKNOWN:
            return True
    return found is _UNKNOWN or found is function


def _named(frame: FrameType, name: str) -> Any:
    code = frame.f_code
    local = name in code.co_varnames or name in code.co_cellvars or name in code.co_freevars
    if local or not code.co_flags & _OPTIMIZED:
        found = frame.f_locals.get(name, _UNKNOWN)
        if found is not _UNKNOWN or local:
            return found
    found = frame.f_globals.get(name, _UNKNOWN)
    return frame.f_builtins.get(name, _UNKNOWN) if found is _UNKNOWN else found
