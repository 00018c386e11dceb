"""`rl log`: what was tried, as a table; the plain case starts like bare Python."""

from __future__ import annotations

import time

from relaunch.cli import draw, opened
from relaunch.errors import UsageError
from relaunch.session import look_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from relaunch.session.look_back import Summary

EXAMPLES = """\
Examples
  rl log                            the last 20
  rl log --verdict failed --since 2d
  rl log --signature ValueError --all
  rl log --searches                 what rl bisect, grow and sweep found
  rl log --json | jq '.trials[].note'
"""
SHOWN = 20
_TREND_POINTS = 8
_METRIC = "metric "
STATE_STYLES = {
    "passed": "green",
    "failed": "red",
    "killed": "yellow",
    "interrupted": "yellow",
    "unstarted": "yellow",
    "running": "cyan",
    "unknown": "yellow",
}
VERDICT_STYLES = {"good": "green", "bad": "red", "unsure": "yellow"}


def quick(argv: list[str]) -> int | None:
    """Handle `rl log` and `rl log -n N` without argparse; None leaves the rest to it."""
    count = _plain_count(argv)
    if count is None:
        return None
    journal = opened.here()[1]
    rows, earlier = look_back.last(journal, count)
    rows, searches, earlier = look_back.with_searches(journal, rows, count, earlier=earlier)
    _report(rows, searches, earlier=earlier, pen=draw.pen())
    return 0


def _plain_count(argv: list[str]) -> int | None:
    if not argv:
        return SHOWN
    text = argv[1] if len(argv) == 2 and argv[0] == "-n" else argv[0][2:]
    plain = argv[0].startswith("-n") and len(argv) <= 2 and text.isdecimal() and int(text) > 0
    return int(text) if plain else None


def _report(
    rows: list[Summary],
    searches: list[Summary],
    *,
    earlier: bool,
    pen: draw.Pen,
    reverse: bool = False,
) -> None:
    if not rows and not searches:
        draw.remark("rl: no trials yet   try: rl -- python train.py")
        return
    now, width = time.time(), draw.width()
    lines = screen(rows, searches, now=now, width=width, pen=pen, reverse=reverse)
    if earlier:
        lines.append(pen("dim", "earlier ones: rl log --all"))
    draw.say("\n".join(lines) + "\n")


def screen(
    rows: list[Summary],
    searches: list[Summary],
    *,
    now: float,
    width: int,
    pen: draw.Pen,
    reverse: bool = False,
) -> list[str]:
    """Draw the trials with the searches between them, what cannot be read, then the trend."""
    good = [row for row in rows if "problem" not in row]
    table = _table(good, now, width, pen) if good else [""]
    head, lines = table[:1] if good else [], table[1:]
    if searches:
        from relaunch.cli.searches import between

        lines = between(good, lines, searches, now=now, width=width, pen=pen)
    lines = [*head, *(reversed(lines) if reverse else lines)]
    for row in (*rows, *searches):
        if "problem" in row:
            name = row["id"] if row in searches else f"#{row['id']}"
            lines.append(pen("yellow", draw.clean(f"{name} unreadable: {row['problem']}")))
    return lines + _trend(good, width, pen)


def _table(rows: list[Summary], now: float, width: int, pen: draw.Pen) -> list[str]:
    """Lay the rows out; when they do not fit, the second metric goes before the words do."""
    names = _metric_names(rows)
    columns, cells = _cells(rows, names[:2], now)
    if len(names) > 1 and sum(draw.natural_widths(columns, cells)) + 2 * len(columns) > width:
        columns, cells = _cells(rows, names[:1], now)
    return draw.table(columns, cells, width, pen)


def _cells(
    rows: list[Summary], metrics: list[str], now: float
) -> tuple[list[draw.Column], list[list[draw.Cell]]]:
    with_sets = any(row["set"] for row in rows)
    with_cold = any(row["resumed"] or row["cold"] for row in rows)
    columns = [draw.Column("#", right=True), draw.Column("ago", right=True)]
    if with_sets:
        columns.append(draw.Column("set", flexible=True, optional=1))
    columns += [draw.Column("code", optional=4), draw.Column("exit")]
    columns.append(draw.Column("time", right=True, optional=2))
    if with_cold:
        columns.append(draw.Column("cold", right=True, optional=1))
    columns += [draw.Column(draw.clean(name), flexible=True, optional=3) for name in metrics]
    columns.append(draw.Column("why", flexible=True, least=6))
    columns.append(draw.Column("verdict", flexible=True, least=7))
    cells = []
    before: Summary | None = None
    for row in rows:
        line: list[draw.Cell] = [("bold", draw.clean(row["id"])), ("", draw.age(now - row["when"]))]
        if with_sets:
            line.append(("", draw.clean(row["set"]) or "-"))
        line += [_code(row, before), _exit(row), _time(row, now)]
        if with_cold:
            line.append(_cold(row))
        line += [_metric(row, name) for name in metrics]
        line += [_why(row), _verdict(row)]
        cells.append(line)
        before = row
    return columns, cells


def _metric(row: Summary, name: str) -> draw.Cell:
    is_unknown = f"{_METRIC}{name}" in row.get("unknown", {})
    return ("", "?" if is_unknown else draw.clean(row["metrics"].get(name, "")))


def _metric_names(rows: list[Summary]) -> list[str]:
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row["metrics"]))
        unknown = (name for name in row.get("unknown", {}) if name.startswith(_METRIC))
        names.update(dict.fromkeys(name.removeprefix(_METRIC) for name in unknown))
    return list(names)


def _code(row: Summary, before: Summary | None) -> draw.Cell:
    """Say which code: `same` or `edited` against the row above, or commit + files that differ.

    How many lines an edit has is `rl diff`'s to say: it would cost a git process per row here.
    """
    code = row["code"]
    if not code["digest"]:
        return ("dim", "-")
    differ = f"+{code['differ']}" if code["differ"] else ""
    if before and before["code"]["base"] == code["base"] and before["code"]["digest"]:
        if before["code"]["digest"] == code["digest"]:
            return ("dim", "same")
        return ("", f"edited{differ}")
    return ("", (draw.clean(code["base"][:7]) or "files") + differ)


def exit_word(row: Summary) -> str:
    """Say how a trial ended in one short word."""
    if row["state"] in ("running", "killed"):
        return str(row["state"])
    if row["state"] == "unstarted":
        return "not run"
    if row["timed_out"]:
        return "timeout"
    if is_hung(row):
        return "hung"
    if row["signal"]:
        return draw.signal_name(row["signal"])
    return "?" if row["exit_code"] is None else str(row["exit_code"])


def is_hung(row: Summary) -> bool:
    """Tell whether it was ended because it hung."""
    return bool(row["signature"]) and row["signature"].get("kind") == "hang"


def _exit(row: Summary) -> draw.Cell:
    return (STATE_STYLES.get(row["state"], ""), exit_word(row))


def _time(row: Summary, now: float) -> draw.Cell:
    if row["state"] == "running":
        return ("dim", draw.short_duration(max(0.0, now - row["when"])))
    return ("", "" if row["duration_s"] is None else draw.short_duration(row["duration_s"]))


def _cold(row: Summary) -> draw.Cell:
    """Say what a warm run would have taken, or took, from its beginning."""
    cold_s = look_back.cold_s(row)
    if cold_s is None:
        return ("dim", "same" if row["warm"] and row["cold"] else "")
    return ("", draw.short_duration(cold_s))


def _why(row: Summary) -> draw.Cell:
    """Give the person's reason; a one-liner without one speaks for itself."""
    if row["note"] or not row["typed"]:
        return ("", draw.clean(row["note"]))
    return ("dim", draw.clean(draw.quoted(row["typed"])))


def _verdict(row: Summary) -> draw.Cell:
    """Give the person's word where there is one, else what was told when it ended."""
    name = f"[{row['name']}]" if row["name"] else ""
    said = "  ".join(draw.clean(word) for word in (row["verdict"], name, row["text"]) if word)
    if said:
        return (VERDICT_STYLES.get(row["verdict"], ""), said)
    if row.get("unreadable"):
        return ("yellow", draw.clean(row["unreadable"]))
    told = row["told"].replace("same failure as #", "same as #", 1)
    if told in ("", "NEW failure") and row["signature"]:  # the first failure has no history
        told = f"{'NEW ' if told else ''}{row['signature']['title']}"
    return ("dim", draw.clean(told))


def _trend(rows: list[Summary], width: int, pen: draw.Pen) -> list[str]:
    values = look_back.trend(rows)[-_TREND_POINTS:]
    if len(values) < 2:
        return []
    numbers = " -> ".join(draw.short_duration(value) for value in values)
    bars = draw.sparkline(values, utf8=pen.utf8)
    line = f"to the critical point: {numbers} {bars}"
    if len(line) > width:
        first, final = draw.short_duration(values[0]), draw.short_duration(values[-1])
        line = f"to the critical point: {first} -> {final} {bars}"
    return [line]


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    add = parser.add_argument
    add("-n", type=int, default=SHOWN, metavar="N", help=f"how many, newest last ({SHOWN})")
    add("--all", action="store_true", help="all of them")
    add("--set", metavar="S", help="only with this config set")
    add(
        "--verdict",
        metavar="WORD",
        help="only good, bad, unsure (as marked), passed, failed, interrupted, unstarted, "
        "killed (rl itself was), running or unknown (its end cannot be read)",
    )
    add("--signature", metavar="TEXT", help="only failures with this in their title, or digest")
    add("--since", metavar="TIME", help="only since 45m, 3h, 2d, 1w ago, or 2026-11-01[ 14:30]")
    add("--text", metavar="WORDS", help="only with all these words in note, mark, command, failure")
    add("--command", metavar="WORDS", help="only with all these words in the command")
    add("--searches", action="store_true", help="only searches: rl bisect, grow, sweep")
    add("--reverse", action="store_true", help="newest first")
    add("--json", action="store_true", help="as JSON: schema relaunch/log/1")
    add("--color", choices=("auto", "always", "never"), default="auto", help="(auto)")


def main(args: Namespace) -> int:
    """List the trials that were asked for."""
    if args.n < 1:
        raise UsageError(f"-n {args.n} shows nothing", hint="rl log -n 20")
    _, journal = opened.here()
    now = time.time()
    query = look_back.query(
        config_set=args.set,
        verdict=args.verdict or "",
        signature=args.signature or "",
        since=args.since or "",
        text=args.text or "",
        command=args.command or "",
        now=now,
    )
    count = 1 << 60 if args.all else args.n
    rows: list[Summary] = []
    earlier = False
    if query is not None and not args.searches:
        rows, earlier = look_back.found(journal, query, count)
    elif not args.searches:
        rows, earlier = look_back.last(journal, count)
    rows, searches, earlier = look_back.with_searches(
        journal, rows, count, earlier=earlier, query=query
    )
    if args.json:
        step = -1 if args.reverse else 1
        draw.say_json(
            "log",
            {
                "trials": rows[::step],
                "earlier": earlier,
                "critical_s": look_back.trend(rows),
                "searches": searches[::step],
            },
        )
    elif args.searches and not searches:
        draw.remark("rl: no search is like that   try: rl bisect --help")
    elif query is not None and not rows and not searches:
        draw.remark("rl: no trial is like that   try: rl log")
    else:
        pen = draw.pen(choice=args.color)
        _report(rows, searches, earlier=earlier, pen=pen, reverse=args.reverse)
    return 0
