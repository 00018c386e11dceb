"""What growing a size found: the edge, the map where there are several, and the curves."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.cli.grow_live import COLOURS, WORDS, along, axis, named, shown
from relaunch.cli.searches import after
from relaunch.search.grown import Direction
from relaunch.search.order import Order
from relaunch.search.seen import Seen
from relaunch.session.growing import rows
from relaunch.session.growing.curve import MEMORY, TIME, telling
from relaunch.session.growing.sized import filled, text_of
from relaunch.session.growing.told import State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from relaunch.search.grown import Look, Stretch
    from relaunch.search.order import Fit
    from relaunch.session.growing.told import Dimension, Found, Grown, Measure, Request

_MOST_ROWS = 12
_ROW_SHOWN = 60
_WIDEST_BAR, _NUMBER_WIDE = 20, 8
_EIGHTHS = "▏▎▍▌▋▊▉█"
_SQUARES = {Order.N_SQUARED: "n²", Order.N_CUBED: "n³", Order.TWO_TO_N: "2ⁿ"}


def lines(found: Found, request: Request, folder: str, width: int, pen: draw.Pen) -> list[str]:
    """Draw all that was found."""
    if not found.grown:
        return [pen("bold", found.stopped or "nothing was run")]
    is_only = len(found.grown) == 1
    told: list[str] = []
    for one in found.grown:
        why = f"{found.stopped}: " if found.stopped and one is found.grown[-1] else ""
        took = f", {_took(found)}" if is_only else ""
        told += [*([""] if told else []), pen("bold", f"{why}{sentence(one)}{took}")]
        pairs = [*_facts(one, request, pen), *_runs_at_edge(one, request, folder), _tip(one, found)]
        shown_pairs = [(name, draw.clean(text, lines=True)) for name, text in pairs if text]
        told += draw.facts(shown_pairs, width, pen)
        told += _about(one, width, pen)
    if not is_only:
        told += ["", _took(found)]
    return [*told, after(found.stopped, "grow", pen)] if found.stopped else told


def ended(found: Found) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    failure = next((one.failure for one in found.grown if one.failure is not None), None)
    return {
        "told": "; ".join(map(sentence, found.grown)),
        "found": any(one.is_found for one in found.grown),
        "failure": failure.title if failure else "",
        "signature": failure.digest if failure else "",
        "runs": found.runs,
        "seconds": found.seconds,
        "stopped": found.stopped,
    }


def _took(found: Found) -> str:
    took = f"{draw.plural(found.runs, 'run')} in {draw.duration(found.seconds)}"
    return took if found.new_runs == found.runs else f"{took} ({found.new_runs} of them now)"


def sentence(one: Grown) -> str:
    """Say where the verdict changes."""
    answer, edge = one.answer, one.answer.edge
    if not answer.looks:
        return f"{one.dimension.name}: nothing was run yet"
    if edge is None:
        tried = [look.value for look in answer.looks]
        span = f"{named(one.dimension, tried[0])} to {shown(tried[-1], one.dimension)}"
        verb = answer.direction.value
        return f"{verb}, {span}" if answer.direction is not Direction.UNKNOWN else f"{verb}: {span}"
    if answer.pattern is not None and answer.pattern.is_sure:
        return f"{one.dimension.name}: {answer.pattern.text}"
    verb = "passes" if one.fails_first else "fails"
    before = f"{shown(edge.before, one.dimension)} {'fails' if one.fails_first else 'passes'}"
    if edge.is_exact:
        said = f"{verb} from {named(one.dimension, edge.after)} on ({before})"
    else:
        span = f"{named(one.dimension, edge.first_suspect)}..{shown(edge.after, one.dimension)}"
        said = f"{verb} from somewhere in {span} on ({before})"
    return f"{said}, but not always" if one.is_scattered else said


def _facts(one: Grown, request: Request, pen: draw.Pen) -> list[tuple[str, str]]:
    others = [look for look in one.answer.looks if look.seen is Seen.OTHER]
    untold = [look for look in one.answer.looks if look.seen is Seen.UNTESTABLE]
    return [
        ("at", ", ".join(f"{name}={shown(value)}" for name, value in one.fixed.items())),
        ("failure", one.failure.title if one.failure is not None else ""),
        ("otherwise", _kinds(one, others)),
        ("untestable", _kinds(one, untold)),
        _row(one, request, pen),
    ]


def _runs_at_edge(one: Grown, request: Request, folder: str) -> list[tuple[str, str]]:
    """Say how to run both sides of the edge, and where the output of the failing one is."""
    edge = one.answer.edge
    if edge is None:
        return []
    passing, failing = edge.before, edge.after
    if one.fails_first:
        passing, failing = failing, passing
    output = os.path.join(folder, one.folders[failing], "output.0")
    runs = [] if any(size.file for size in request.dimensions) else [
        ("passes", _line(one, request, passing)), ("fails", _line(one, request, failing))
    ]  # fmt: skip
    return [*runs, ("output", os.path.relpath(output) if os.path.exists(output) else "")]


def _line(one: Grown, request: Request, value: float) -> str:
    sizes = {**one.fixed, one.dimension.name: value}
    recipe = filled(request.recipe, {name: text_of(size) for name, size in sizes.items()}, {})
    pairs = "".join(f"--env {draw.quote(f'{name}={text}')} " for name, text in recipe.env.items())
    if one.dimension.limit == "memory":
        pairs += f"--memory {shown(value, one.dimension)} "
    elif one.dimension.limit:
        pairs += f"--disk {draw.quote(one.dimension.path)}={shown(value, one.dimension)} "
    return f"rl {pairs}-- {draw.quoted(recipe.argv)}"


def _tip(one: Grown, found: Found) -> tuple[str, str]:
    """Where nothing passes, name a value of another size with which something does."""
    if one.answer.direction is Direction.ALWAYS_FAILS:
        for other in found.grown:
            passed = [look.value for look in other.answer.looks if look.seen is Seen.PASSED]
            if other.dimension.name in one.fixed and passed:
                return "try", f"rl grow --at {other.dimension.name}={text_of(passed[0])} ..."
    return "", ""


def _about(one: Grown, width: int, pen: draw.Pen) -> list[str]:
    """Draw the map if there is need for one, and the curves."""
    told = ["", *_map(one, width, pen)] if one.is_scattered else []
    if len(one.answer.looks) > 1 and not one.dimension.limit:
        told += ["", *chart(one, width, pen), ""]
        told += draw.facts([(m.name, _measured(one, m, pen)) for m in one.measures], width, pen)
    return told


def _kinds(one: Grown, looks: Sequence[Look]) -> str:
    """Name other failures, each with one size where it came."""
    if not looks:
        return ""
    kinds: dict[str, list[float]] = {}
    for look in looks:
        kinds.setdefault(one.shown[look.value], []).append(look.value)
    named_ones = [f"{title} ({_sizes(one, values)})" for title, values in kinds.items()]
    return "\n".join(named_ones[:3])


def _sizes(one: Grown, values: Sequence[float]) -> str:
    first = named(one.dimension, values[0])
    return (
        first
        if len(values) == 1
        else f"{first} to {shown(values[-1], one.dimension)}, {len(values)} runs"
    )


def _row(one: Grown, request: Request, pen: draw.Pen) -> tuple[str, str]:
    """Show the row that came last where the verdict changed: it may be the row, not the size."""
    edge = one.answer.edge
    if not one.dimension.file or edge is None or not edge.is_exact:
        return "", ""
    path = os.path.join(request.recipe.cwd, one.dimension.file)
    try:
        text = rows.row(path, int(edge.after))
    except OSError:
        return "", ""
    return f"row {shown(edge.after)}", draw.clip(draw.clean(text), _ROW_SHOWN, utf8=pen.utf8)


# --- the map


def _map(one: Grown, width: int, pen: draw.Pen) -> list[str]:
    """Draw which sizes show what: the verdict changes more than once."""
    seen = {look.value: look.seen for look in one.answer.looks}
    state = State(dimension=one.dimension, scale=one.scale, seen=seen)
    drawn = [f"  {axis(state, width - 2, pen)}"]
    if one.answer.pattern is not None and one.answer.pattern.is_sure:
        return drawn
    told = [(_stretch_words(part, one.dimension), part) for part in one.answer.map]
    wide = max(len(words) for words, _ in told)
    return drawn + [
        f"  {words:>{wide}}  {pen(COLOURS[part.seen], WORDS[part.seen])} ({part.tried} tried)"
        for words, part in told
    ]


def _stretch_words(part: Stretch, of: Dimension) -> str:
    """Write a stretch; where its ends were not looked at closely, it says `about`."""
    if part.low == part.high:
        return shown(part.low, of)
    about = "" if part.is_low_exact and part.is_high_exact else "about "
    return f"{about}{shown(part.low, of)} to {shown(part.high, of)}"


# --- the curves


def chart(one: Grown, width: int, pen: draw.Pen) -> list[str]:
    """Draw time and memory at some of the sizes; a bar each for those that tell how they grow."""
    looks = chosen(one)
    columns = [draw.Column(one.dimension.name, right=True), draw.Column("")]
    cells = [
        [("", shown(look.value, one.dimension)), (COLOURS[look.seen], WORDS[look.seen])]
        for look in looks
    ]
    taken = [*draw.natural_widths(columns, cells), *([_NUMBER_WIDE] * 2)]
    bar = min(_WIDEST_BAR, max(1, (width - 2 - sum(taken) - 10) // 2))
    drawn = [_bars(looks, TIME, bar, pen)]
    if _has_memory(one):
        drawn.append(_bars(looks, MEMORY, bar, pen))
    for name, more in zip((TIME, MEMORY), drawn, strict=False):
        columns += [draw.Column(name, right=True), draw.Column("")]
        cells = [[*row, *two] for row, two in zip(cells, more, strict=True)]
    return [f"  {line}" for line in draw.table(columns, cells, width - 2, pen)]


def _bars(looks: Sequence[Look], name: str, room: int, pen: draw.Pen) -> list[list[draw.Cell]]:
    """Write what each run took, and draw it for those that tell how it grows."""
    write: Callable[[float], str] = draw.duration if name == TIME else draw.size
    counted = telling(looks)
    top = max((_taken(look, name) for look in counted), default=0.0)
    cells: list[list[draw.Cell]] = []
    for look in looks:
        value = _taken(look, name)
        bar = _bar(value / top, room, utf8=pen.utf8) if value and look in counted else ""
        cells.append([("", write(value) if value else "-"), ("cyan", bar)])
    return cells


def _taken(look: Look, name: str) -> float:
    return (look.seconds if name == TIME else look.peak_bytes) or 0.0


def _has_memory(one: Grown) -> bool:
    return any(look.peak_bytes for look in one.answer.looks)


def _bar(share: float, room: int, *, utf8: bool) -> str:
    """Draw a share as a bar, to an eighth of a column where that can be shown."""
    if not utf8:
        return "#" * max(1, round(share * room))
    eighths = max(1, round(share * room * 8))
    rest = eighths % 8
    return _EIGHTHS[-1] * (eighths // 8) + (_EIGHTHS[rest - 1] if rest else "")


def chosen(one: Grown) -> list[Look]:
    """Choose the sizes to show: both ends, both sides of the edge, and some evenly between."""
    looks, edge = one.answer.looks, one.answer.edge
    if len(looks) <= _MOST_ROWS:
        return [*looks]
    kept = {0, len(looks) - 1}
    if edge is not None:
        kept |= {n for n, look in enumerate(looks) if look.value in (edge.before, edge.after)}
    counted = telling(looks)
    places = [along(one.scale, one.dimension, look.value) for look in looks]
    while len(kept) < _MOST_ROWS:
        rest = [n for n in range(len(looks)) if n not in kept]
        left = [n for n in rest if looks[n] in counted] or rest
        kept.add(max(left, key=lambda n: min(abs(places[n] - places[m]) for m in kept)))
    return [looks[n] for n in sorted(kept)]


def _measured(one: Grown, measure: Measure, pen: draw.Pen) -> str:
    """Say how it grows, and where it comes to its limit."""
    fit = measure.fit
    if fit.curve is None and measure.name == MEMORY and not _has_memory(one):
        return "too little to be told from rl's own"
    if fit.curve is None:
        return "too few sizes to tell how it grows"
    if fit.order is Order.CONSTANT:
        said = "stays the same"
    else:
        said = f"grows like {order_name(fit.order, pen)}"
        if not fit.is_sure:
            said = perhaps(fit, pen)
    if measure.limit is None or (measure.earliest is None and not measure.is_given):
        return said
    limit = draw.duration(measure.limit) if measure.name == TIME else draw.size(measure.limit)
    return f"{said}\n{_reached(one, measure, limit)}"


def perhaps(fit: Fit, pen: draw.Pen) -> str:
    """Name the orders that would do; one that may not grow at all is said to first."""
    orders = [fit.order, *(curve.order for curve in fit.rivals)]
    names = [order_name(one, pen) for one in orders if one is not Order.CONSTANT][:3]
    if Order.CONSTANT in orders:
        return f"stays the same, or grows like {' or '.join(names[:2])}: the runs do not tell"
    or_else = f", or like {' or '.join(names[1:])}" if names[1:] else ""
    return f"grows perhaps like {names[0]}{or_else}"


def _reached(one: Grown, measure: Measure, limit: str) -> str:
    """Say at which size the limit is reached, as far as that can be told."""
    if measure.earliest is None:
        return f"{limit} is not in sight"
    name, earliest = one.dimension.name, rounded(measure.earliest)
    if measure.reaches is None:
        return f"reaches {limit} not before about {name}={earliest}"
    about = f"reaches {limit} at about {name}={rounded(measure.reaches)}"
    if measure.latest is None:
        return f"{about}, not before {earliest}"
    latest = rounded(measure.latest)
    return about if earliest == latest else f"{about} ({earliest} to {latest})"


def order_name(order: Order, pen: draw.Pen) -> str:
    """Write an order: `n²` where that can be shown."""
    return _SQUARES.get(order, order.value) if pen.utf8 else order.value


def rounded(size: float) -> str:
    """Write a size that is only known roughly: `5,100`."""
    value = float(f"{size:.2g}")
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"


# --- for programs


def as_json(number: int, request: Request, found: Found) -> dict[str, Any]:
    """Return what was found, for programs."""
    return {
        "search": number,
        "found": any(one.is_found for one in found.grown),
        "stopped": found.stopped,
        "command": [*request.recipe.argv],
        "runs": found.runs,
        "new_runs": found.new_runs,
        "seconds": found.seconds,
        "dimensions": [_dimension_json(one) for one in found.grown],
    }


def _dimension_json(one: Grown) -> dict[str, Any]:
    answer, edge, failure = one.answer, one.answer.edge, one.failure
    return {
        "name": one.dimension.name,
        "file": one.dimension.file,
        "limit": one.dimension.limit,
        "unit": one.dimension.unit,
        "low": one.dimension.low,
        "high": one.dimension.high,
        "scale": one.scale.value,
        "at": dict(one.fixed),
        "found": one.is_found,
        "text": sentence(one),
        "direction": answer.direction.name.lower(),
        "before": edge.before if edge else None,
        "after": edge.after if edge else None,
        "exact": bool(edge and edge.is_exact),
        "hidden": bool(edge and edge.is_hidden),
        "shape": answer.shape.name.lower(),
        "pattern": answer.pattern.text if answer.pattern and answer.pattern.is_sure else "",
        "failure": failure.title if failure else "",
        "signature": failure.digest if failure else "",
        "map": [
            {"low": part.low, "high": part.high, "seen": part.seen.value, "tried": part.tried,
             "low_exact": part.is_low_exact, "high_exact": part.is_high_exact}
            for part in answer.map
        ],
        "runs": [_look_json(one, look) for look in answer.looks],
        "curves": {measure.name: _measure_json(measure) for measure in one.measures},
    }  # fmt: skip


def _look_json(one: Grown, look: Look) -> dict[str, Any]:
    return {
        "value": look.value,
        "seen": look.seen.value,
        "shown": one.shown[look.value],
        "seconds": look.seconds,
        "peak_bytes": look.peak_bytes,
        "folder": one.folders[look.value],
    }


def _measure_json(measure: Measure) -> dict[str, Any]:
    fit = measure.fit
    return {
        "order": fit.order.value,
        "sure": fit.is_sure,
        "rivals": [curve.order.value for curve in fit.rivals],
        "offset": fit.curve.offset if fit.curve else None,
        "factor": fit.curve.factor if fit.curve else None,
        "limit": measure.limit,
        "reaches": measure.reaches,
        "earliest": measure.earliest,
        "latest": measure.latest,
    }
