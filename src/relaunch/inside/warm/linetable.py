"""Gives code that runs on the line numbers of the edited file, so that tracebacks tell the truth.

A function that waits in a call keeps its old code until it comes to a site. Until then only the
table of its positions is replaced, in the code object itself.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

_LONG, _NONE = 14, 15
_MOST_UNITS = 8


def move(code: CodeType, moved: Callable[[tuple[int, ...]], tuple[int, ...]]) -> None:
    """Replace the positions of a code object where they moved; not of those in it."""
    places = [tuple(place) for place in code.co_positions()]
    new = [moved(place) if None not in place else place for place in places]  # type: ignore[arg-type]
    first = moved((code.co_firstlineno, code.co_firstlineno, 0, 0))[0]
    if new == places and first == code.co_firstlineno:
        return
    _put(code, first, encode(new, first))


def encode(places: list[tuple[Any, ...]], first: int) -> bytes:
    """Write the table of positions: one entry for each run of equal ones, in its longest form."""
    out = bytearray()
    line = first
    for place, units in _runs(places):
        if place[0] is None:
            out.append(0x80 | _NONE << 3 | units - 1)
            continue
        start, end, column, last = place
        out.append(0x80 | _LONG << 3 | units - 1)
        out += _signed(start - line)
        out += _number((start if end is None else end) - start)
        out += _number(0 if column is None else column + 1)
        out += _number(0 if last is None else last + 1)
        line = start
    return bytes(out)


def _runs(places: list[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    at = 0
    while at < len(places):
        end = at + 1
        while end < len(places) and end - at < _MOST_UNITS and places[end] == places[at]:
            end += 1
        yield places[at], end - at
        at = end


def _number(value: int) -> bytes:
    out = bytearray()
    while value >= 64:
        out.append(0x40 | value & 0x3F)
        value >>= 6
    out.append(value)
    return bytes(out)


def _signed(value: int) -> bytes:
    return _number(-value << 1 | 1) if value < 0 else _number(value << 1)


def _put(code: CodeType, first: int, table: bytes) -> None:
    """Write into the code object. What it pointed to is kept: somebody may be reading it."""
    address, line = _places()
    ctypes.PyDLL(None).Py_IncRef(ctypes.py_object(table))
    ctypes.c_void_p.from_address(id(code) + address).value = id(table)
    ctypes.c_int.from_address(id(code) + line).value = first


_found: list[tuple[int, int]] = []


def prove() -> None:
    """Find our way in the code objects of this interpreter; OSError if they are unknown."""
    _places()


def _places() -> tuple[int, int]:
    """Find the offsets of table and first line in a code object of this interpreter."""
    if not _found:
        probe = compile("x = 1\ny = 2\n", "probe", "exec")
        probe = probe.replace(co_firstlineno=1_234_567)
        size = CodeType.__basicsize__
        words = [
            offset
            for offset in range(16, size, 8)
            if ctypes.c_void_p.from_address(id(probe) + offset).value == id(probe.co_linetable)
        ]
        lines = [
            offset
            for offset in range(16, size, 4)
            if ctypes.c_int.from_address(id(probe) + offset).value == 1_234_567
        ]
        if len(words) != 1 or len(lines) != 1:
            raise OSError(f"code objects of Python {sys.version_info[:2]} look otherwise")
        _found.append((words[0], lines[0]))
    return _found[0]
