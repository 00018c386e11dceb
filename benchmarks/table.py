"""A subject's figures as rows, printed as an aligned Markdown table."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Met(Enum):
    """How a row stands to its target."""

    YES = "met"
    NO = "NOT MET"
    UNMEASURED = "NOT MEASURED"
    NO_TARGET = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One thing measured: its cells, and the ratio that is promised of it, if any."""

    cells: tuple[str, ...]
    ratio: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    unmeasured: str = ""

    @property
    def met(self) -> Met:
        """Tell whether the promise holds."""
        if self.unmeasured:
            return Met.UNMEASURED
        if self.ratio is None or (self.at_most is None and self.at_least is None):
            return Met.NO_TARGET
        if self.at_most is not None and self.ratio > self.at_most:
            return Met.NO
        if self.at_least is not None and self.ratio < self.at_least:
            return Met.NO
        return Met.YES

    @property
    def target(self) -> str:
        """Say what is promised."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return f">= {self.at_least:g}" if self.at_least is not None else ""


@dataclass(kw_only=True, slots=True)
class Table:
    """One subject: what was asked, the rows, and what a reader must know to trust them."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    figure: str = "ratio"
    """What the figure is that a target is held against."""

    def text(self) -> str:
        """Write it out."""
        head = (*self.columns, self.figure, "target", "")
        lines = [head, *(_cells(row, len(self.columns)) for row in self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        rule = ["-" * (width - 1) + ":" for width in widths]
        rule[0], rule[-1] = "-" * widths[0], "-" * widths[-1]
        body = [_line(head, widths), "| " + " | ".join(rule) + " |"]
        body += [_line(line, widths) for line in lines[1:]]
        notes = [f"- {row.cells[0]}: {row.unmeasured}" for row in self.rows if row.unmeasured]
        notes += [f"- {note}" for note in self.notes]
        return "\n".join([f"## {self.title}", "", *body, "", *notes]).rstrip() + "\n"


def _cells(row: Row, columns: int) -> tuple[str, ...]:
    ratio = (
        "" if row.ratio is None else f"{row.ratio:.2f}" if row.ratio < 100 else f"{row.ratio:.0f}"
    )
    cells = row.cells + ("",) * (columns - len(row.cells))
    return (*cells, ratio, row.target, row.met.value)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    last = len(cells) - 1
    padded = [
        cell.ljust(width) if i in (0, last) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "| " + " | ".join(padded) + " |"
