"""`rl -s a,b -n 3`: runs each set so often, shows where it is, and draws one table at the end."""

from __future__ import annotations

import sys

from relaunch.cli import draw
from relaunch.cli.run import ask_about, consent_of
from relaunch.events import Warned
from relaunch.session.compare import run_all
from relaunch.session.past import outcome_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from relaunch.cli.run import Lines
    from relaunch.events import Event
    from relaunch.session.compare import Row
    from relaunch.session.project import Project
    from relaunch.session.request import Request

INTERRUPTED = 130


def run_table(project: Project, request: Request, lines: Lines) -> int:
    """Run it all and draw the table on standard output; 0 when every trial passed, else 1."""

    said: set[str] = set()

    def tell(event: Event) -> None:
        if isinstance(event, Warned):
            if event.text in said:  # the same for every trial
                return
            said.add(event.text)
        if lines.json or isinstance(event, Warned):
            lines.tell(event)

    rows = run_all(
        project,
        request,
        tell=tell,
        ask=(lambda found: ask_about(project, found)) if request.may_ask else None,
        consent=consent_of(request),
        progress=_Progress(),
    )
    differs = differing_sets(project, rows)
    if lines.json:
        draw.say_json("table", {"rows": [_row_json(row) for row in rows], "differs": differs})
    else:
        draw.say("\n".join(_screen(project, rows, differs)) + "\n")
    for one in (one for row in rows for one in row.ran):
        if one.outcome.interrupted:
            return INTERRUPTED
        if one.outcome.not_started:
            return one.outcome.exit_code or 1
    return 0 if all(row.passed == len(row.ran) for row in rows) else 1


class _Progress:
    """One line that is written over, on a terminal only."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()

    def __call__(self, done: int, total: int, config_set: str) -> None:
        if not self._on:
            return
        full = 20 * done // total
        bar = "#" * full + "." * (20 - full)
        line = f"rl  [{bar}] {done}/{total} {config_set}" if done < total else ""
        draw.steer(sys.stderr, "\r\x1b[K")
        draw.put(sys.stderr, line)


def _screen(project: Project, rows: Sequence[Row], differs: Sequence[str]) -> list[str]:
    pen = draw.pen(sys.stdout)
    metrics = list(project.settings.metrics)
    columns = [draw.Column("set"), *result_columns(metrics)]
    cells = [[("", row.config_set or "-"), *result_cells(row, metrics)] for row in rows]
    drawn = draw.table(columns, cells, draw.width(sys.stdout), pen)
    return [*drawn, *differs, *which_line(rows, differs, pen)]


def result_columns(metrics: Sequence[str]) -> list[draw.Column]:
    """Return the columns that tell what came of the trials of a row."""
    return [
        draw.Column("ok"),
        *(draw.Column(name, flexible=True) for name in metrics),
        draw.Column("time", right=True),
        draw.Column("trials", flexible=True),
        draw.Column("failure", flexible=True),
    ]


def result_cells(row: Row, metrics: Sequence[str]) -> list[draw.Cell]:
    """Return what stands in these columns."""
    colour = "green" if row.passed == len(row.ran) else "red"
    times = sorted(one.outcome.duration_s for one in row.ran)
    return [
        (colour, f"{row.passed}/{len(row.ran)}"),
        *(("", _metric(row, name)) for name in metrics),
        ("", draw.short_duration(times[len(times) // 2])),
        ("", " ".join(f"#{one.trial_id}" for one in row.ran)),
        ("", draw.clean("; ".join(row.failures)) or "-"),
    ]


def _metric(row: Row, name: str) -> str:
    texts = [one.outcome.metrics.get(name, "-") for one in row.ran]
    return draw.clean(" ".join(texts)) if set(texts) != {"-"} else "-"


def differing_sets(project: Project, rows: Sequence[Row]) -> list[str]:
    """Say which lines differ between the sets that always passed and the others."""
    passed, failed = _sides(rows)
    if not passed or not failed:
        return []
    from relaunch.session.sets import differing

    return differing(project, passed, failed)


def which_line(rows: Sequence[Row], differs: Sequence[str], pen: draw.Pen) -> list[str]:
    """Say how to find out which of several lines it is."""
    passed, failed = _sides(rows)
    if len(differs) < 2 or not passed or not failed:
        return []
    return [pen("dim", f"which of them: rl bisect --set {passed[0]} {failed[0]} -- CMD")]


def _sides(rows: Sequence[Row]) -> tuple[list[str], list[str]]:
    """Name the sets that always passed, and the others."""
    named = [row for row in rows if row.config_set]
    failed = dict.fromkeys(row.config_set for row in named if row.passed < len(row.ran))
    passed = dict.fromkeys(row.config_set for row in named if row.config_set not in failed)
    return [*passed], [*failed]


def _row_json(row: Row) -> dict[str, object]:
    trials = [{"id": one.trial_id, **outcome_json(one.outcome)} for one in row.ran]
    return {
        "set": row.config_set,
        "passed": row.passed,
        "runs": len(row.ran),
        "failures": list(row.failures),
        "trials": trials,
    }
