"""What came of a sweep: the table, failing rows first, then in words what explains the failures."""

from __future__ import annotations

import sys
from textwrap import wrap

from relaunch.cli import draw, searches
from relaunch.cli.table import differing_sets, result_cells, result_columns, which_line
from relaunch.session.compare import Row
from relaunch.session.past import outcome_json
from relaunch.session.sweeping.told import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from relaunch.journal.searches import Search
    from relaunch.search.conditions import Condition
    from relaunch.search.factors import Finding
    from relaunch.session.compare import Ran
    from relaunch.session.project import Project
    from relaunch.session.sweeping.told import Found, Request

_MOST_ROWS = 40
_MOST_RATES = 3
_LIKELY_CHANCE = 0.05
_WIDEST = 100
_LEFT = "not all was run"


def show(
    project: Project, request: Request, book: Search, found: Found, *, json: bool, color: str
) -> None:
    """Say it on standard output, and keep it with the sweep."""
    rows = rows_of(request, found)
    differs = differing_sets(project, rows) if _is_about_sets(found) else []
    metrics = list(project.settings.metrics)

    def lines(pen: draw.Pen) -> list[str]:
        drawn = table(rows, metrics, pen) if rows else []
        return [*drawn, *verdict(found, pen), *differs, *which_line(rows, differs, pen)]

    searches.tell(
        book,
        schema="sweep",
        answer=as_json(request, book.number, found, differs),
        end=_ended(found),
        lines=lines,
        json=json,
        color=color,
    )


def _ended(found: Found) -> dict[str, Any]:
    """Return what a list of searches shows of this one."""
    failure, hunted = found.explanation.failure, found.hunted
    failed = len(found.runs) - found.passed
    said = f"{failed} of {len(found.runs)} failed" if failed else "all passed"
    return {
        "told": failure.text if failure and failure.rules else said,
        "found": bool(failure and failure.rules and failure.is_sure),
        "failure": hunted.title if hunted else "",
        "signature": hunted.digest if hunted else "",
        "runs": len(found.runs),
        "seconds": found.seconds,
        "stopped": found.stopped or (_LEFT if found.left else ""),
    }


def _is_about_sets(found: Found) -> bool:
    """Tell whether a config set is part of what explains a failure."""
    rules = [rule for one in _findings(found) for rule in one.rules]
    return any(one.factor == "set" for rule in rules for way in rule.ways for one in way)


def _findings(found: Found) -> list[Finding]:
    failure = found.explanation.failure
    return [*([failure] if failure else []), *(one for _, one in found.explanation.others)]


# --- the table


def rows_of(request: Request, found: Found) -> list[Row]:
    """Return a row for each combination, seeds together; those that failed alike beside each other.

    Where seeds are all that varies, each has its row.
    """
    seeds = [one.name for one in request.factors if one.kind is Kind.SEED]
    names = [name for name in request.named if name not in seeds] or request.named
    together: dict[tuple[str, ...], list[Ran]] = {}
    for run in found.runs:
        together.setdefault(tuple(run.settings[name] for name in names), []).append(run)
    rows = [
        Row(
            settings=dict(zip(names, values, strict=True)),
            ran=tuple(sorted(ran, key=lambda one: one.outcome.passed)),
        )
        for values, ran in together.items()
    ]
    places = {one.name: {value: n for n, value in enumerate(one.values)} for one in request.factors}
    rows.sort(key=lambda row: [places[name][value] for name, value in row.settings.items()])
    order = {title: number for number, title in enumerate(found.titles.values())}
    return sorted(rows, key=lambda row: _rank(row, order))


def _rank(row: Row, order: dict[str, int]) -> int:
    if row.passed == len(row.ran):
        return len(order) + 1
    return order.get(row.failures[0], len(order)) if row.failures else len(order)


def table(rows: Sequence[Row], metrics: Sequence[str], pen: draw.Pen) -> list[str]:
    """Draw the rows, at most so many."""
    names = [*rows[0].settings]
    columns = [
        draw.Column(""),
        *(draw.Column(draw.clean(name), flexible=True) for name in names),
        *result_columns(metrics),
    ]
    cells = [
        [
            ("red", _mark(row, pen)),
            *(("", draw.clean(row.settings[name]) or "''") for name in names),
            *result_cells(row, metrics),
        ]
        for row in rows[:_MOST_ROWS]
    ]
    lines = draw.table(columns, cells, draw.width(sys.stdout), pen)
    more = len(rows) - _MOST_ROWS
    if more > 0:
        passed = sum(row.passed == len(row.ran) for row in rows[_MOST_ROWS:])
        text = f"... {draw.plural(more, 'more row')}, {passed} of them passed"
        lines.append(pen("dim", f"{text}: rl sweep --resume --json"))
    return lines


def _mark(row: Row, pen: draw.Pen) -> str:
    """Return a sign for what failed: always, at times, or could not be tested."""
    if row.passed == len(row.ran):
        return ""
    if all(one.outcome.not_started for one in row.ran):
        return "?"
    if row.passed:
        return "~"
    return "✗" if pen.utf8 else "x"


# --- the explanation


def verdict(found: Found, pen: draw.Pen) -> list[str]:
    """Say in words what failed when, and what to type next."""
    lines = [pen("bold", _summary(found))]
    if found.hunted is not None and found.explanation.failure is not None:
        lines += _explained(found, found.hunted.digest, found.explanation.failure, pen)
    for key, finding in found.explanation.others:
        lines += _explained(found, key, finding, pen)
    for why, count in found.untestable.items():
        lines += _wrapped(f"not tested: {draw.plural(count, 'run')}: {why}")
    lines += [line for note in found.notes for line in _wrapped(note)]
    if found.left:
        lines.append(
            pen("dim", f"next: rl sweep --resume   ({draw.plural(found.left, 'run')} left)")
        )
    return lines


def _summary(found: Found) -> str:
    why = f"{found.stopped}: " if found.stopped else ""
    count, passed = len(found.runs), found.passed
    took = "" if found.before else f" in {draw.duration(found.seconds)}"
    if not count:
        return f"{why}no run has ended"
    if passed == count:
        all_of_them = "it passed" if count == 1 else f"all {count} passed"
        return f"{why}{all_of_them}{took}"
    return f"{why}{count - passed} of {draw.plural(count, 'run')} failed{took}"


def _explained(found: Found, key: str, finding: Finding, pen: draw.Pen) -> list[str]:
    kind = "" if finding is found.explanation.failure else "another failure: "
    example = f"   rl show {found.examples[key]}" if found.examples[key] else ""
    title = f"{kind}{draw.clean(found.titles[key])}"
    room = draw.width(sys.stdout) - len(example)
    lines = [pen("red", draw.clip(title, room, utf8=pen.utf8)) + pen("dim", example)]
    for text in [_rule_words(finding), *_more_words(found, finding)]:
        lines += _wrapped(text, "  ")
    return lines


def _rule_words(finding: Finding) -> str:
    runs = finding.runs + finding.runs_elsewhere
    fails = finding.fails + finding.fails_elsewhere
    if finding.is_exact:
        return f"{finding.text} ({fails} of {runs})"
    if not finding.rules:
        return finding.text
    return finding.text if finding.is_sure else f"{finding.text}; that may be chance"


def _more_words(found: Found, finding: Finding) -> Iterator[str]:
    """Yield what there is to say besides the rule."""
    yield from _undecided(found, finding)
    if finding.is_exact:
        yield from _only_together(found, finding)
    if finding.is_flaky:
        yield "the same settings fail and pass: it fails at times"
    if not finding.is_exact:
        for rate in [one for one in finding.rates if one.chance < _LIKELY_CHANCE][:_MOST_RATES]:
            yield (
                f"with {rate.condition.text} it fails {rate.fails} of {rate.runs} times,"
                f" else {rate.fails_elsewhere} of {rate.runs_elsewhere}"
            )
    for one in finding.interactions:
        both = " and ".join(condition.text for condition in one.both)
        yield (
            f"{both} interact: together {one.fails} of {one.runs},"
            f" {one.expected * one.runs:.1f} if each did only what it does alone"
        )


def _undecided(found: Found, finding: Finding) -> Iterator[str]:
    """Say that the data cannot tell rules apart, and what could."""
    if len(finding.rules) < 2:
        return
    first, second = (rule.text for rule in finding.rules[:2])
    said = f"the data cannot tell {first} from {second}"
    if found.left:
        yield f"{said}: rl sweep --resume may"
    elif finding.tell_apart:
        more = draw.plural(len(finding.tell_apart), "run")
        yield f"{said}: rl sweep --resume --tell-apart can, with {more} more"
    else:
        yield f"{said}, and no combination of these values could"


def _only_together(found: Found, finding: Finding) -> Iterator[str]:
    """Say of conditions that fail only together what each does alone."""
    way = finding.rules[0].ways[0]
    if len(finding.rules) > 1 or len(finding.rules[0].ways) > 1 or len(way) < 2:
        return
    counts = [(one, _passed_without(found, way, one)) for one in way]
    if all(count for _, count in counts):
        parts = [f"{count} without {one.text}" for one, count in counts]
        yield f"they interact: of the others {', '.join(parts)} passed"


def _passed_without(found: Found, way: Sequence[Condition], one: Condition) -> int:
    """Count the runs that passed where all conditions but one held."""
    return sum(
        run.outcome.passed
        and not one.holds(run.settings)
        and all(other.holds(run.settings) for other in way if other != one)
        for run in found.runs
    )


def _wrapped(text: str, indent: str = "") -> list[str]:
    width = min(_WIDEST, draw.width(sys.stdout))
    return wrap(
        draw.clean(text),
        width,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )


# --- for programs


def as_json(request: Request, number: int, found: Found, differs: Sequence[str]) -> dict[str, Any]:
    """Return what was found, for programs."""
    explanation, hunted = found.explanation, found.hunted
    failure = explanation.failure
    return {
        "search": number,
        "stopped": found.stopped,
        "left": found.left,
        "seconds": found.seconds,
        "command": [*request.argv],
        "factors": [
            {"name": one.name, "kind": one.kind.value, "values": [*one.values]}
            for one in request.factors
        ],
        "passed": found.passed,
        "runs": [
            {
                "settings": dict(run.settings),
                "id": run.trial_id,
                "passed": run.outcome.passed,
                **outcome_json(run.outcome),
            }
            for run in found.runs
        ],
        "failure": _finding_json(found, hunted.digest, failure) if hunted and failure else None,
        "others": [_finding_json(found, key, one) for key, one in explanation.others],
        "untestable": dict(found.untestable),
        "fixed": [*explanation.fixed],
        "together": [[*group] for group in explanation.together],
        "differs": [*differs],
        "notes": [*found.notes],
    }


def _finding_json(found: Found, key: str, finding: Finding) -> dict[str, Any]:
    return {
        "title": found.titles[key],
        "signature": key,
        "example": found.examples[key],
        "text": finding.text,
        "rules": [rule.text for rule in finding.rules],
        "exact": finding.is_exact,
        "sure": finding.is_sure,
        "flaky": finding.is_flaky,
        "fails": finding.fails,
        "runs": finding.runs,
        "fails_elsewhere": finding.fails_elsewhere,
        "runs_elsewhere": finding.runs_elsewhere,
        "tell_apart": [dict(case) for case in finding.tell_apart],
        "rates": [
            {
                "when": one.condition.text,
                "fails": one.fails,
                "runs": one.runs,
                "fails_elsewhere": one.fails_elsewhere,
                "runs_elsewhere": one.runs_elsewhere,
                "chance": one.chance,
            }
            for one in finding.rates
        ],
        "interactions": [
            {
                "both": [condition.text for condition in one.both],
                "fails": one.fails,
                "runs": one.runs,
                "expected": one.expected,
                "chance": one.chance,
            }
            for one in finding.interactions
        ],
    }
