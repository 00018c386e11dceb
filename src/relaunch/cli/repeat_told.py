"""What a repetition found: how often, how sure that is, which failures, and what provokes them."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.search.odds import runs_needed
from relaunch.session.past import outcome_json
from relaunch.session.repeating.told import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from relaunch.search.odds import Bounds
    from relaunch.session.repeating.told import Found, Rate, Request

_LIKELY = 0.05


def lines(found: Found, folder: str, width: int, pen: draw.Pen) -> list[str]:
    """Say all that was found."""
    stopped = f"{found.stopped}: " if found.stopped else ""
    told = [pen("bold", f"{stopped}{sentence(found)}")]
    told += [*_failures(found, folder, pen)]
    if len(found.rates) > 1:
        told += ["", *_table(found, width, pen), *provokes(found)]
    told += [f"  {count} of them say nothing: {why}" for why, count in found.untestable.items()]
    if found.stopped and found.left:
        told.append(pen("dim", "next: rl repeat --resume"))
    elif found.failed:
        told.append(pen("dim", "next: rl race -- ..., where threads are in play"))
    return told


def sentence(found: Found) -> str:
    """Say it in one line: `0 of 200 fail: below 1.5% with 95%, 12 s`."""
    plain = found.rates[0].bounds
    if not plain.runs:
        return "nothing was run"
    return f"{rate_words(plain)}, {draw.duration(found.seconds)}"


def rate_words(bounds: Bounds) -> str:
    """Say how often, and how sure that is."""
    sure = f"{100 * bounds.sure:g}%"
    head = f"{bounds.fails} of {bounds.runs} fail"
    if not bounds.fails:
        return f"{head}: below {percent(bounds.high)} with {sure}"
    if bounds.fails == bounds.runs:
        return f"{head}: above {percent(bounds.low)} with {sure}"
    span = f"{percent(bounds.low)} to {percent(bounds.high)}"
    return f"{head}: {percent(bounds.rate)}, {span} with {sure}"


def percent(rate: float) -> str:
    """Write a rate as a person reads it: `0.06%`, `1.5%`, `37%`."""
    value = 100 * rate
    if 0.095 <= value < 9.95 or 90.05 < value <= 99.95:
        return f"{value:.1f}%"
    return (
        f"{value:.2g}%" if value < 0.095 else f"{value:.4g}%" if value > 99.95 else f"{value:.0f}%"
    )


def _failures(found: Found, folder: str, pen: draw.Pen) -> Iterator[str]:
    for one in found.failures:
        yield f"  {one.count:>5}  {pen('red', draw.clean(one.title))}"
        output = os.path.join(folder, one.first.folder, "output.0")
        if one.first.folder and os.path.exists(output):
            yield pen("dim", f"         {os.path.relpath(output)}")


def _table(found: Found, width: int, pen: draw.Pen) -> list[str]:
    columns = [
        draw.Column("with"),
        draw.Column("failed", right=True),
        draw.Column("runs", right=True),
        draw.Column("rate", right=True),
        draw.Column("95% sure", right=True),
        draw.Column("by chance", right=True),
    ]
    cells: list[list[draw.Cell]] = []
    for rate in found.rates:
        one = rate.bounds
        style = "red" if _is_likely(rate) else ""
        cells.append(
            [
                (style, rate.mode),
                ("", str(one.fails)),
                ("", str(one.runs)),
                ("", percent(one.rate) if one.runs else "-"),
                ("", f"{percent(one.low)} to {percent(one.high)}" if one.runs else "-"),
                ("dim", "-" if rate.chance is None else f"{rate.chance:.2g}"),
            ]
        )
    return draw.table(columns, cells, width, pen)


def _is_likely(rate: Rate) -> bool:
    return rate.chance is not None and rate.chance < _LIKELY


def provokes(found: Found) -> list[str]:
    """Say which of the modes provoke it, the strongest first."""
    plain = found.rates[0].bounds
    strong = [
        rate
        for rate in found.rates
        if rate.mode != PLAIN and _is_likely(rate) and rate.bounds.rate > plain.rate
    ]
    strong.sort(key=lambda rate: -rate.bounds.rate)
    if not strong:
        return ["none of these provokes it, as far as so many runs can tell"]
    best = strong[0]
    names = ", ".join(rate.mode for rate in strong)
    needed = runs_needed(best.bounds.rate)
    often = draw.plural(needed, "run")
    return [f"{names} {'provoke' if len(strong) > 1 else 'provokes'} it: with {best.mode}, "
            f"{often} show it with 95%"]  # fmt: skip


# --- for machines


def ended(found: Found) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    first = found.failures[0] if found.failures else None
    return {
        "told": sentence(found),
        "found": bool(found.failed),
        "failure": first.title if first else "",
        "signature": first.digest if first else "",
        "runs": len(found.runs),
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def as_json(number: int, request: Request, found: Found) -> dict[str, Any]:
    """Return all that was found, plain."""
    return {
        "search": number,
        "command": [*request.recipe.argv],
        "rates": [
            {
                "with": rate.mode,
                "failed": rate.bounds.fails,
                "runs": rate.bounds.runs,
                "rate": rate.bounds.rate,
                "low": rate.bounds.low,
                "high": rate.bounds.high,
                "sure": rate.bounds.sure,
                "chance": rate.chance,
            }
            for rate in found.rates
        ],
        "failures": [
            {
                "title": one.title,
                "signature": one.digest,
                "count": one.count,
                "output": one.first.folder,
                "outcome": outcome_json(one.first.outcome),
            }
            for one in found.failures
        ],
        "untestable": dict(found.untestable),
        "forked": found.forked,
        "left": found.left,
        "stopped": found.stopped,
        "seconds": found.seconds,
    }
