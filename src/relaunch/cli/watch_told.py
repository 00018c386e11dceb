"""What a trial used, drawn after it: charts over its time, and the moments that were marked."""

from __future__ import annotations

from relaunch.cli import draw
from relaunch.cli.charts import charts
from relaunch.cli.watch_rows import lines_of
from relaunch.cli.watch_words import used_words
from relaunch.session.watched import marks_of, usage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from relaunch.journal.store import Trial
    from relaunch.session.watched import Mark

_LEAST_POINTS = 2


def told(trial: Trial, *, width: int, pen: draw.Pen, height: int = 3) -> list[str]:
    """Draw it; nothing when nobody watched."""
    series = usage_of(trial)
    used = (trial.end or {}).get("usage") or {}
    lines = [used_words(used)] if used.get("peak_bytes") else []
    if series is None or len(series.points) < _LEAST_POINTS:
        return lines
    marks = marks_of(trial)
    moments = [mark.when - series.when for mark in marks]
    last = max(series.column("t")[-1], float((trial.end or {}).get("duration_s") or 0.0))
    points = [[*point] for point in series.points]
    drawn = charts(
        lines_of(points, height=height), first=0.0, last=last, width=width, pen=pen, marks=moments
    )
    lines += drawn
    for number, (mark, t) in enumerate(zip(marks, moments, strict=True), 1):
        lines.append(mark_line(number, mark, t, pen))
    return lines


def mark_line(number: int, mark: Mark, t: float, pen: draw.Pen) -> str:
    """Say when a moment was marked, and as what."""
    sign = f"{'▲' if pen.utf8 else '^'}{number}"
    text = f"  {draw.clean(mark.text)}" if mark.text else ""
    return f"{pen('bold yellow', sign)} at {draw.duration(max(0.0, t))}{text}"


def usage_json(trial: Trial) -> dict[str, Any] | None:
    """Return the series and the marks as `rl show --json` has them."""
    from relaunch.look.series import COLUMNS

    series = usage_of(trial)
    if series is None:
        return None
    return {
        "when": series.when,
        "columns": list(COLUMNS),
        "points": [list(point) for point in series.points],
        "marks": [{"when": mark.when, "text": mark.text} for mark in marks_of(trial)],
    }
