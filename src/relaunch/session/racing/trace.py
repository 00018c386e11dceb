"""The lines around the switches that matter, in the order in which they ran."""

from __future__ import annotations

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any

_AROUND = 4
"""So many lines of a thread are shown before and after a switch."""
_MOST_STRETCHES = 12


class Line(Record):
    """One line that ran."""

    file: str
    line: int
    function: str
    values: tuple[tuple[str, str], ...]
    """What its names were once it had run; of a line that was interrupted, before."""
    is_cut: bool = False
    """Another thread ran before it was over."""


class Stretch(Record):
    """What a thread ran until another one did."""

    thread: str
    name: str
    lines: tuple[Line, ...]
    left_out: int = 0
    """Lines in the middle that are not shown."""
    why: str = ""
    """`switch`: it was interrupted there; `wait`: it could not go on; `done`: it was over."""


def stretches(told: Any, plan: Collection[Sequence[Any]]) -> tuple[Stretch, ...]:
    """Return who ran what, from before the first switch that matters to after the last one."""
    names = {one: name for one, name, _ in told.get("threads", ())}
    wanted = {tuple(one[:3]) for one in plan}
    found: list[Stretch] = []
    is_planned: list[bool] = []
    lines: list[list[Any]] = []
    thread = "0"
    for entry in told.get("lines", ()):
        if entry[0] == "line":
            if lines and entry[1] != thread:  # it was interrupted where nobody could tell
                found.append(_stretch(thread, names, lines, ""))
                is_planned.append(False)
                lines = []
            thread = entry[1]
            lines.append(entry)
            continue
        _, kind, who, count, _ = entry
        planned = (kind, who, count) in wanted
        found.append(_stretch(who, names, lines, "switch" if kind == "p" else "wait"))
        is_planned.append(planned)
        lines = []
    if lines:
        found.append(_stretch(thread, names, lines, ""))
        is_planned.append(False)
    waiting = {one["id"] for one in told.get("waits", ())}
    last = {one.thread: number for number, one in enumerate(found)}
    for thread, number in last.items():
        if thread not in waiting and found[number].why == "wait":
            found[number] = found[number].but(why="done")
    return _around(found, is_planned)


def _around(found: list[Stretch], is_planned: list[bool]) -> tuple[Stretch, ...]:
    """Cut what is before the first and after the last; who was interrupted comes back once more."""
    matter = [number for number, planned in enumerate(is_planned) if planned]
    if not matter:
        shown = [one for one in found[-4:] if one.lines]
        return tuple(_short(one) for one in shown)
    first, last = matter[0], matter[-1]
    after = [number for number in range(last + 1, len(found)) if found[number].lines]
    backs = [number for number in after if found[number].thread == found[last].thread]
    end = next(iter(backs or after[:1]), last)
    shown = [_last_lines(found[first]), *(_short(one) for one in found[first + 1 : end])]
    shown += [_first_lines(found[end])] if end > first else []
    return tuple(one for one in shown if one.lines)[:_MOST_STRETCHES]


def _last_lines(one: Stretch) -> Stretch:
    return one.but(lines=one.lines[-_AROUND:])


def _first_lines(one: Stretch) -> Stretch:
    is_whole = len(one.lines) <= _AROUND
    return one.but(lines=one.lines[:_AROUND], why=one.why if is_whole else "")


def _short(one: Stretch) -> Stretch:
    left_out = len(one.lines) - 2 * _AROUND
    if left_out <= 1:
        return one
    lines = (*one.lines[:_AROUND], *one.lines[-_AROUND:])
    return one.but(lines=lines, left_out=left_out)


def _stretch(thread: str, names: Any, lines: Sequence[Sequence[Any]], why: str) -> Stretch:
    shown = []
    for number, (_, _, file, line, function, after, before) in enumerate(lines):
        is_cut = why == "switch" and number == len(lines) - 1
        values = before if is_cut else after or before
        shown.append(
            Line(
                file=file,
                line=line,
                function=function,
                values=tuple((name, text) for name, text in values),
                is_cut=is_cut,
            )
        )
    return Stretch(thread=thread, name=names.get(thread, thread), lines=tuple(shown), why=why)
