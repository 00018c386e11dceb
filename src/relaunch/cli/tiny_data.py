"""`rl tiny data`: a small extract of a big data set, in its format, with what is special."""

from __future__ import annotations

import os
import sys

from relaunch.cli import draw
from relaunch.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from relaunch.tiny.data.request import How, Part, Request, Taken

EXAMPLES = """\
Examples
  rl tiny data big.parquet --rows 100 --stratify label -o small.parquet
  rl tiny data big.jsonl.gz --rows 50 --first
  rl tiny data train.csv --longest text --plain
  rl tiny data big.jsonl --around 51203 --rows 20
  rl tiny data big.jsonl --failing-when 'len(text) > 8000'
  rl tiny data big.jsonl --rows 10 --keep-failing -- python load.py {}
  rl tiny data shards/00.tar --rows 8 --images 32
  rl tiny data app.db --rows 20 --table orders

Up to half of the rows are those with special values that were seen: nulls, nan,
empty, longest, least and greatest, beyond ASCII, other types; --plain takes none.
Rows stay as they are, in their order; the original is only read.
"""
DEFAULT_ROWS = 100
_MOST_KINDS = 6


def arguments(parser: ArgumentParser) -> None:
    """Declare the options."""
    from relaunch.tiny.data.formats import FORMATS

    parser.usage = "%(prog)s [-h] [-n N] [-o FILE] [OPTIONS] FILE [-- CMD {}]"
    parser.add_argument("path", metavar="FILE", help="jsonl, json, csv, tsv, text (gz, bz2, xz, "
                        "zst too), parquet, arrow, tar, sqlite, a folder")  # fmt: skip
    parser.add_argument("-n", "--rows", metavar="N", default=str(DEFAULT_ROWS),
                        help=f"how many rows ({DEFAULT_ROWS})")  # fmt: skip
    parser.add_argument(
        "-o", "--output", metavar="FILE", default="", help="where it goes (NAME.tiny.ENDING, here)"
    )
    ways = parser.add_argument_group("which rows").add_mutually_exclusive_group()
    ways.add_argument("--random", action="store_true", help="any (this is the default)")
    ways.add_argument("--first", action="store_true", help="from the beginning")
    ways.add_argument("--stratify", metavar="KEY", help="of each class, as many as its share; a.b")
    ways.add_argument("--longest", metavar="KEY", nargs="?", const="", help="by bytes, or by KEY")
    ways.add_argument("--shortest", metavar="KEY", nargs="?", const="", help="likewise")
    ways.add_argument("--per-schema", action="store_true", help="one of each set of keys and types")
    ways.add_argument("--around", metavar="N", help="row N and its neighbours; the first is 1")
    parser.add_argument("--seed", metavar="N", default="0", help="another choice at random (0)")
    parser.add_argument("--plain", action="store_true", help="no rows for special values")
    parser.add_argument("--failing-when", metavar="EXPR", default="",
                        help="keep rows of which this Python is true; keys are names")  # fmt: skip
    parser.add_argument("--keep-failing", action="store_true",
                        help="keep the row that makes `-- CMD {}` fail, or that the last failed "
                        "trial names")  # fmt: skip
    parser.add_argument("--images", metavar="PIXELS", default="0", help="make images this small")
    parser.add_argument(
        "--arrays", metavar="N", default="0", help="cut arrays to N in each direction"
    )
    parser.add_argument("--table", metavar="NAME", default="",
                        help="of a database: this one, and what it refers to")  # fmt: skip
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="",
        metavar="NAME",
        help=f"whatever it looks like: {', '.join(FORMATS)}",
    )
    parser.add_argument("--no-header", action="store_true", help="csv: the first line is a row")
    parser.add_argument("-f", "--force", action="store_true", help="replace what is there")
    parser.add_argument("--json", action="store_true", help="as JSON: schema relaunch/tiny-data/1")


def main(args: Namespace) -> int:
    """Take the rows and say which."""
    request = read(args)
    if args.command is not None and not args.keep_failing:
        said = "a command without --keep-failing"
        raise UsageError(said, hint="rl tiny data FILE --keep-failing -- CMD {}")
    with Progress() as progress:
        if args.keep_failing:
            from relaunch.session.tiny_failing import extract_failing

            taken = extract_failing(request, args.command, format=args.format, tell=progress)
        else:
            from relaunch.tiny.data.extract import extract

            taken = extract(request, format=args.format, tell=progress)
    if args.json:
        draw.say_json("tiny-data", as_json(taken))
    else:
        draw.say("\n".join(wrapped(told(taken), draw.width())) + "\n")
    return 0


def read(args: Namespace) -> Request:
    """Turn options into a request."""
    from relaunch.tiny.data.request import Request

    rows = _number(args.rows, "--rows")
    if not rows:
        raise UsageError("--rows 0: at least one", hint="--rows 100")
    how, key = _how(args)
    return Request(
        path=args.path,
        out=args.output or default_output(args.path),
        rows=rows,
        how=how,
        key=key,
        seed=_number(args.seed, "--seed"),
        around=_number(args.around or "0", "--around"),
        failing_when=args.failing_when,
        is_plain=args.plain,
        is_forced=args.force,
        images=_number(args.images, "--images"),
        arrays=_number(args.arrays, "--arrays"),
        table=args.table,
        has_header=not args.no_header,
    )


def _how(args: Namespace) -> tuple[How, str]:
    from relaunch.tiny.data.request import How

    if args.stratify is not None:
        return How.STRATIFIED, args.stratify
    if args.longest is not None:
        return How.LONGEST, args.longest
    if args.shortest is not None:
        return How.SHORTEST, args.shortest
    if args.per_schema:
        return How.SCHEMAS, ""
    if args.around is not None:
        return How.AROUND, ""
    return (How.FIRST if args.first else How.RANDOM), ""


def default_output(path: str) -> str:
    """Return `big.tiny.jsonl` for `data/big.jsonl.gz`, here."""
    from relaunch.tiny.data.files import packing_named

    name = os.path.basename(os.path.normpath(path))
    name = name.removesuffix(packing_named(name))
    stem, ending = os.path.splitext(name)
    return f"{stem}.tiny{ending if ending != '.tgz' else '.tar'}"


def _number(text: str, flag: str) -> int:
    from relaunch.cli.launch_options import whole_number

    return whole_number(text.replace(",", "").replace("_", ""), flag)


def told(taken: Taken) -> list[str]:
    """Say in a few lines what was taken and why."""
    of = f" of {taken.total:,}" if taken.total is not None else ""
    rows = f"{taken.rows:,}{of} {'row' if taken.rows == 1 else 'rows'}"
    reasons = [_reason(part) for part in taken.parts]
    sizes = f"{draw.size(taken.bytes_after)} of {draw.size(taken.bytes_before)}"
    lines = [f"{taken.out}: {rows}, {sizes}, {taken.format}"]
    lines += [f"  {reason}" for reason in reasons]
    return [*lines, *(f"  note: {note}" for note in taken.notes)]


def wrapped(lines: Sequence[str], width: int) -> list[str]:
    """Break lines that are too long, and go on under their beginning."""
    from textwrap import wrap

    found = []
    for line in lines:
        text = draw.clean(line)
        indent = "    " if text.startswith("  ") else "  "
        found += wrap(text, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return found


def _reason(part: Part) -> str:
    if not part.kinds:
        return f"{part.count:,} {part.why}"
    shown = list(part.kinds[:_MOST_KINDS])
    more = len(part.kinds) - len(shown)
    said = ", ".join(shown) + (f" and {draw.plural(more, 'more kind')}" if more else "")
    return f"{part.count:,} {part.why} ({said})"


def as_json(taken: Taken) -> dict[str, object]:
    """Return all of it as data."""
    return {
        "format": taken.format,
        "out": taken.out,
        "rows": taken.rows,
        "total": taken.total,
        "parts": [
            {"count": part.count, "why": part.why, "kinds": list(part.kinds)}
            for part in taken.parts
        ],
        "picks": [pick + 1 for pick in taken.picks],
        "bytes_before": taken.bytes_before,
        "bytes_after": taken.bytes_after,
        "notes": list(taken.notes),
    }


class Progress:
    """A bar on a terminal, for work that takes a moment."""

    def __init__(self, what: str = "") -> None:
        """Draw nothing yet."""
        import time

        from relaunch.cli.live import Lines

        self._clock = time.monotonic
        self._began = self._drawn = self._clock()
        self._lines = Lines(draw.pen(sys.stderr))
        self._what = what

    def __call__(self, share: float) -> None:
        """Draw how far it has come, ten times a second."""
        now = self._clock()
        if now - self._drawn < 0.1 or now - self._began < 0.5 or not self._lines.is_terminal:
            return
        self._drawn = now
        share = min(1.0, max(0.0, share))
        left = (now - self._began) * (1 - share) / share if share > 0.02 else 0.0
        words = f" {share:4.0%}" + (f"  {draw.duration(left)} left" if left >= 1 else "")
        room = max(8, self._lines.width - 24)
        full = "█" if self._lines.pen.utf8 else "#"
        empty = "·" if self._lines.pen.utf8 else "."
        done = round(share * room)
        self._lines.draw(f"{full * done}{empty * (room - done)}{words}")

    def clear(self) -> None:
        """Take the bar away, for something to be said."""
        self._lines.close()

    def __enter__(self) -> Progress:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the terminal as it was."""
        self._lines.close()
