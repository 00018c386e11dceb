"""`--sections train.py:10-40,model.py:GPT.forward`: reads it, and draws what was measured."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.cli.places import tree_of
from relaunch.errors import UsageError
from relaunch.inside.probe import lines, spans
from relaunch.inside.sections.meter import RESET, WORDS
from relaunch.inside.sections.tables import cells, merged, remarks, titles
from relaunch.recipe import Probe
from relaunch.trial.sections import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_RL = "rl run --sections"
_GIVE_WAY = {"min-max": 1, "self": 2, "now": 3, "gpu delta": 4, "each": 5, "max": 6}
"""Columns that go when the screen is narrow, the highest first."""
_TO_THE_LEFT = ("section", "min-max")


def read_sections(texts: Sequence[str]) -> tuple[Probe, ...]:
    """Read what is to be measured; raises UsageError with what could be meant."""
    words = [word.strip() for text in texts for word in text.split(",")]
    if not any(words):
        raise UsageError("--sections names none", hint=f"{_RL} train.py:10-40")
    return tuple(_section(word) for word in dict.fromkeys(words) if word)


def _section(word: str) -> Probe:
    file, colon, rest = word.rpartition(":")
    first, dash, last = rest.partition("-")
    is_range = first.isdecimal() and (last.isdecimal() or not dash)
    is_name = all(part.isidentifier() for part in rest.split("."))
    if not colon or not file or not (is_range or is_name):
        words = f"`{word}` is no section: FILE:FIRST-LAST or FILE:FUNCTION"
        raise UsageError(words, hint=f"{_RL} train.py:10-40")
    tree = tree_of(file, _RL)
    probe = Probe(
        kind="section",
        file=os.path.realpath(file),
        line=int(first) if is_range else 0,
        end=int(last or first) if is_range else 0,
        function="" if is_range else rest,
        label=draw.clean(word),
    )
    if tree is None:
        return probe
    try:
        if is_range and not dash:
            probe = probe.but(end=spans.find_end(tree, probe.line))
        meant = {"line": probe.line, "end": probe.end, "function": probe.function}
        spans.find_spans(tree, lines.by_name(tree), meant)
    except lines.NoPlace as error:
        near = " and ".join(f"{file}:{one}" for one in error.near)
        said = f"{file}: {error.why}" + (f"; near is {near}" if near else "")
        hint = f"{_RL} {file}:{error.near[0]}" if error.near else f"{_RL} FILE:FIRST-LAST"
        raise UsageError(said, hint=hint) from None
    return probe


def screen(value: Mapping[str, Any], *, width: int, pen: draw.Pen) -> list[str]:
    """Draw the table of a trial, and below it what is odd."""
    found = processes(value)
    rows = merged(found)
    if not rows:
        return []
    names = titles(rows)
    columns = [
        draw.Column(
            name,
            right=name not in _TO_THE_LEFT,
            flexible=name == "section",
            least=16,
            optional=_GIVE_WAY.get(name, 0),
        )
        for name in names
    ]
    grid = [[("", draw.clean(text)) for text in cells(row, names)] for row in rows]
    said = [pen("yellow", draw.clean(one)) for one in remarks(found, value.get("ended_ns", 0))]
    rungs = {one.memory for one in found} - {RESET, ""}
    said += [pen("dim", f"memory: {WORDS.get(rung, draw.clean(rung))}") for rung in sorted(rungs)]
    return [*draw.table(columns, grid, width, pen), *said]


def details(value: Mapping[str, Any], *, width: int, pen: draw.Pen) -> list[str]:
    """Draw each process by itself, and how each section went from iteration to iteration."""
    drawn: list[str] = []
    for process, one in zip(value["processes"], processes(value), strict=True):
        words = draw.clip(draw.quoted(process.get("argv") or ()), max(width - 24, 20))
        drawn += ["", f"{pen('bold', one.name)}  {pen('dim', draw.clean(words))}"]
        alone = {**value, "processes": [process]}
        drawn += screen(alone, width=width, pen=pen)
        for path, numbers in one.sections.items():
            if len(numbers.rows) > 1:
                drawn += _course(" > ".join(path), numbers, pen)
    return drawn[1:]


def _course(name: str, numbers: Any, pen: draw.Pen) -> list[str]:
    from relaunch.trial.sections import thinned

    count = numbers.column("number")
    said = f"{draw.clean(name)}: iterations {count[0] + 1:,} to {count[-1] + 1:,}"
    times = draw.sparkline(thinned(numbers.column("ns"), 32), utf8=pen.utf8)
    memory = thinned(numbers.column("rss"), 32)
    least = min(memory)
    rise = draw.sparkline([one - least for one in memory], utf8=pen.utf8)
    return [said, f"  time    {times}", f"  memory  {rise}"]


def in_short(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was measured without the iterations, of which `rl show --json` has more."""
    found = []
    for process in value["processes"]:
        sections = [
            {name: field for name, field in one.items() if name != "iterations"}
            for one in process["sections"]
        ]
        found.append({**process, "sections": sections})
    return {**value, "processes": found}


def show(value: Mapping[str, Any], missed: Sequence[str], pen: draw.Pen, *, quiet: bool) -> None:
    """Draw the table on standard error, below what the program printed; quietly, what is odd."""
    drawn = screen(value, width=draw.width(sys.stderr), pen=pen)
    if quiet:
        drawn = [draw.clean(one) for one in remarks(processes(value), value.get("ended_ns", 0))]
    for line in [*drawn, *(f"rl: {draw.clean(one)}" for one in missed)]:
        draw.put(sys.stderr, line + "\n")
