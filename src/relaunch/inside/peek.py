"""`peek(x + y)` prints `train.py:12 x + y=3` to standard error and returns the value.

RELAUNCH_PEEK=0 silences it, RELAUNCH_PEEK=file:PATH sends it there.
"""

from __future__ import annotations

import os
import sys
from time import localtime, time

from relaunch.inside.oneline import Line
from relaunch.inside.shown import ROOM, show
from relaunch.inside.untraced import leave_untraced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, TypeVar, overload

    A = TypeVar("A")
    B = TypeVar("B")
    C = TypeVar("C")

    Known = tuple[CodeType, str, str, list[tuple[str, int | slice]]]
    """A place: its code, which is held so that its id stays its own; the place in words; what
    stands before a single value; all labels."""

PLACES = 4096
"""Places that are remembered; a program may make code without end."""
LONGEST = 3600
"""Characters of a line: up to 4,096 bytes a pipe keeps together."""
_OFF = ("0", "off", "no", "false")
_getframe = sys._getframe
_places: dict[tuple[int, int], Known] = {}


def _peek(*values: Any, **named: Any) -> Any:
    try:
        frame = _getframe(1)
        try:
            known = _places[id(frame.f_code), frame.f_lasti]
        except KeyError:
            known = _learn(frame, values, named)
        single = known[2]
        if single and len(values) == 1 and not named:
            _say(single + show(values[0]))
        else:
            _say(_line(known, values, named))
    except Exception:
        pass
    if named:
        values = (*values, *named.values())
    return values[0] if len(values) == 1 else values or None


def _silent(*values: Any, **named: Any) -> Any:
    if named:
        values = (*values, *named.values())
    return values[0] if len(values) == 1 else values or None


def _learn(frame: FrameType, values: tuple[Any, ...], named: dict[str, Any]) -> Known:
    """Find out what is written at a place where nobody has come by yet."""
    from relaunch.inside.label.find import labels_of

    if not _untraced[0]:
        _untraced[0] = leave_untraced(_peek)
    _line_to.renew()
    code = frame.f_code
    place = f"{_file(code.co_filename)}:{frame.f_lineno}"
    labels = labels_of(frame, peek, len(values), list(named))
    single = ""
    if len(labels) == 1 and type(labels[0][1]) is int:
        single = f"{place} {_before(labels[0][0])}"
    if len(_places) >= PLACES:
        _places.clear()
    known = _places[id(code), frame.f_lasti] = (code, place, single, labels)
    return known


def _line(known: Known, values: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Write a line of several values, of named ones, or of none."""
    code, place, _, labels = known
    if not values and not named:
        return f"{place} in {code.co_qualname} {_clock()}"
    room = max(40, min(ROOM, LONGEST // (len(values) + len(named))))
    parts = []
    for text, at in labels:
        try:
            parts.append(_before(text) + show(values[at], room))
        except IndexError:  # called in another way than before
            pass
    parts += [f"{name}={show(value, room)}" for name, value in named.items()]
    line = f"{place} {'  '.join(parts)}"
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"


def _before(text: str) -> str:
    return f"{text}=" if text else ""


def _file(path: str) -> str:
    """Name a file in a few letters: those that tell it from others."""
    if path.startswith("<ipython-input-"):
        return f"In[{path.split('-')[2]}]"
    if path.startswith("<"):
        return path
    folder, name = os.path.split(path)
    if "/ipykernel_" in path:  # where a notebook says that its cells are
        return _cell(path)
    if name in ("__init__.py", "__main__.py"):
        return f"{os.path.basename(folder)}/{name}"
    return name


def _cell(path: str) -> str:
    """Return the number of a cell, as the notebook shows it."""
    try:
        shell: Any = sys.modules["IPython"].get_ipython()
        return f"In[{shell.compile._filename_map[path]}]"
    except Exception:
        return "cell"


def _clock() -> str:
    now = time()
    moment = localtime(now)
    hours = f"{moment.tm_hour:02}:{moment.tm_min:02}:{moment.tm_sec:02}"
    return f"{hours}.{int(now % 1 * 1000):03}"


_asked = os.environ.get("RELAUNCH_PEEK", "").strip()
_is_off = _asked.lower() in _OFF
_line_to = Line(_asked.removeprefix("file:") if _asked.startswith("file:") else "")
_say = _line_to.say
_untraced = [leave_untraced(_peek)]

if TYPE_CHECKING:

    @overload
    def peek() -> None: ...
    @overload
    def peek(value: A, /) -> A: ...
    @overload
    def peek(first: A, second: B, /) -> tuple[A, B]: ...
    @overload
    def peek(first: A, second: B, third: C, /) -> tuple[A, B, C]: ...
    @overload
    def peek(*values: Any, **named: Any) -> Any: ...
    def peek(*values: Any, **named: Any) -> Any:
        """Print each expression with its value to standard error, and return the value.

        Several arguments are returned as a tuple; without any it prints the place and the time.
        """
else:
    # What torch.compile says where it may not leave its graph (`fullgraph=True`).
    _peek._torchdynamo_disable = True
    _peek._torchdynamo_disable_msg = "peek prints, which no graph can; RELAUNCH_PEEK=0 silences it"
    peek = _silent if _is_off else _peek
    peek.__name__ = peek.__qualname__ = "peek"
    peek.__doc__ = """Print each expression with its value to standard error, and return the value.

    Several arguments are returned as a tuple; without any it prints the place and the time.
    """
