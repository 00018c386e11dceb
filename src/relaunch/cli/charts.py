"""Small charts over time, of blocks; at any width, and in ASCII where the locale knows no more."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"
_ASCII = " .:-=+*#@"
LABEL = 7
"""Columns of the name before a chart."""
TOP = 9
"""And of its largest value."""
LEAST = 8


class Line(Record):
    """One thing over time."""

    name: str
    times: Sequence[float]
    values: Sequence[float]
    shown: Callable[[float], str]
    """Writes a value."""
    since_last: bool = False
    """A value is that of all the time since the one before; else of the time until the next."""
    height: int = 1
    least_top: float = 0.0
    """A chart of smaller values is not drawn larger than life."""
    style: str = ""


def in_columns(
    times: Sequence[float],
    values: Sequence[float],
    first: float,
    last: float,
    width: int,
    *,
    since_last: bool = False,
) -> list[float | None]:
    """Return the largest value in each column of the time; None where nothing is known."""
    found: list[float | None] = [None] * width
    step = max(last - first, 1e-9) / width

    def column(t: float) -> int:
        return min(width - 1, max(0, int((t - first) / step)))

    def fill(begin: int, end: int, value: float) -> None:
        for at in range(begin, end + 1):
            known = found[at]
            found[at] = value if known is None else max(known, value)

    before = -1
    for at, (t, value) in enumerate(zip(times, values, strict=True)):
        if t < first or t > last:
            continue
        here = column(t)
        if since_last:
            fill(before + 1 if 0 <= before < here else here, here, value)
        else:
            until = column(times[at + 1]) - 1 if at + 1 < len(times) else here
            fill(here, max(here, until), value)
        before = here
    return found


def rows(
    values: Sequence[float | None], top: float, height: int, *, utf8: bool = True
) -> list[str]:
    """Draw columns of blocks, the highest row first; what is more than nothing is seen."""
    blocks = _EIGHTHS if utf8 else _ASCII
    drawn = []
    levels = [_level(value, top, height) for value in values]
    for row in reversed(range(height)):
        drawn.append("".join(blocks[min(8, max(0, level - 8 * row))] for level in levels))
    return drawn


def _level(value: float | None, top: float, height: int) -> int:
    if value is None or value <= 0 or top <= 0:
        return 0
    return max(1, round(min(1.0, value / top) * height * 8))


def charts(
    lines: Sequence[Line],
    *,
    first: float,
    last: float,
    width: int,
    pen: draw.Pen,
    marks: Sequence[float] = (),
) -> list[str]:
    """Draw lines over the same time below each other, an axis below, and marked moments on it."""
    room = max(LEAST, width - LABEL - TOP - 1)
    drawn = []
    for line in lines:
        columns = in_columns(line.times, line.values, first, last, room, since_last=line.since_last)
        top = max([line.least_top, *(value for value in columns if value is not None)])
        for number, row in enumerate(rows(columns, top, line.height, utf8=pen.utf8)):
            name = line.name if number == 0 else ""
            said = line.shown(top) if number == 0 else ""
            head = pen("dim", draw.pad(name, LABEL) + draw.pad(said, TOP, right=True)) + " "
            drawn.append(head + pen(line.style, row.rstrip()))
    if lines:
        drawn.append(_axis(first, last, room, marks, pen))
    return drawn


def _axis(first: float, last: float, room: int, marks: Sequence[float], pen: draw.Pen) -> str:
    """Draw `0 s ────▲1──── 5.3 s`."""
    begin, end = (
        f"{draw.short_duration(first)} " if first >= 0.5 else "0 s ",
        draw.short_duration(last),
    )
    cells = ["─" if pen.utf8 else "-"] * room
    cells[: len(begin)] = begin
    cells[-len(end) - 1 :] = f" {end}"
    cells = [pen("dim", cell) for cell in cells[:room]]
    for number, t in enumerate(marks, 1):
        if first <= t <= last:
            at = min(room - 1, int((t - first) / max(last - first, 1e-9) * room))
            for offset, char in enumerate(("▲" if pen.utf8 else "^") + str(number)):
                if at + offset < room:
                    cells[at + offset] = pen("bold yellow", char)
    return " " * (LABEL + TOP + 1) + "".join(cells)
