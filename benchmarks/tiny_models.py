"""How many of the installed architectures can be made tiny: every one is tried, and told of.

python -m benchmarks.tiny_models                  # goes on where the last one was stopped
python -m benchmarks.tiny_models --failed         # tries those anew that did not pass
python -m benchmarks.tiny_models --only llama t5  # these types, or `type Class`
python -m benchmarks.tiny_models --write          # only the table, from the rows that are there

Rows of other code or other packages do not count, and the table is written when none is missing.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks import install
from benchmarks.spend import Unmeasured
from relaunch.tiny.models import start
from relaunch.tiny.models.kinds import FAMILIES
from relaunch.tiny.models.rows import passed, read_rows, why

ROWS = install.ROOT / "tiny-models.jsonl"
RESULTS = Path(__file__).parent / "RESULTS-tiny-models.md"
TARGETS = dict.fromkeys(("decoder", "encoder", "encoder-decoder", "MoE", "vision"), 0.9)


def main() -> int:
    """Make the rows that are missing, print the table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="with torch and transformers")
    parser.add_argument("--rows", default=str(ROWS), help="the file of rows, added to")
    parser.add_argument("--seconds", type=float, default=12.0, help="of CPU for one architecture")
    parser.add_argument("--jobs", type=int, default=2, help="architectures at a time")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--failed", action="store_true")
    parser.add_argument("--write", action="store_true", help="no row is made")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    args = parser.parse_args()
    try:
        python = args.python or install.with_torch()
    except Unmeasured as why_not:
        parser.error(str(why_not))
    Path(args.rows).parent.mkdir(parents=True, exist_ok=True)
    if not args.write:
        request = {"file": args.rows, "seconds": args.seconds, "only": args.only,
                   "failed": args.failed, "jobs": args.jobs}  # fmt: skip
        subprocess.run(
            [python, start.__file__, "rows"], input=json.dumps(request), text=True, check=True
        )
    now = stamp(python)
    rows = dict(sorted(read_rows(args.rows, now["made_with"]).items()))
    text = report(rows, now["made_with"])
    sys.stdout.write(text.partition("\n## Which")[0] + "\n")
    missing = set(now["installed"]) - set(rows)
    if missing:
        count = f"{len(missing)} of {len(now['installed'])} architectures have no row"
        sys.stderr.write(f"{count} of this code and these packages: {RESULTS.name} stays\n")
    else:
        RESULTS.write_text(text)
    missed = [name for name, target in TARGETS.items() if share(rows, name) < target]
    return 1 if args.check and (missed or missing) else 0


def stamp(python: str) -> dict[str, Any]:
    """Return what rows must have been made with, and the names of all that there should be."""
    done = subprocess.run(
        [python, start.__file__, "stamp"], input="{}", capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def of(rows: dict[str, dict[str, Any]], family: str) -> list[dict[str, Any]]:
    """Return the rows of a family."""
    return [row for row in rows.values() if family in row["families"]]


def share(rows: dict[str, dict[str, Any]], family: str) -> float:
    """Return which part of a family passes."""
    found = of(rows, family)
    return sum(map(passed, found)) / len(found) if found else 0.0


def report(rows: dict[str, dict[str, Any]], made_with: dict[str, str]) -> str:
    """Return the page: the table, then every row that does not pass and why."""
    good = [row for row in rows.values() if passed(row)]
    sizes = sorted(row["bytes"] for row in good) or [0]
    repaired = sum(row.get("tries", 0) > 1 for row in good)
    lines = [
        "# Tiny models",
        "",
        f"transformers {made_with['transformers']} and torch {made_with['torch']}: {len(rows)}",
        "architectures (a model type with the class that stands for it in a family),",
        f"{len(good)} of them tiny: at most 1 MB of weights; forward, backward and generate",
        f"run; saved and loaded they give the same. Median {sizes[len(sizes) // 2] // 1000} kB;",
        f"{repaired} needed a repair. By `make tiny-table`.",
        "",
        "Families follow transformers' own tables of classes (`relaunch/tiny/models/kinds.py` has",
        "the rule); MoE is counted besides: a decoder with experts is in both. None is left out:",
        "what needs a package that is not installed, or whose default configuration does not work",
        "by itself and could not be filled in, counts as not passed.",
        "",
        "| family | models | pass | | target | too big | forward | checks | not built | late |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for family in FAMILIES:
        found = of(rows, family)
        if not found:
            continue
        reasons = collections.Counter(reason(row) for row in found if not passed(row))
        target = f"{TARGETS[family]:.0%}" if family in TARGETS else ""
        told = [str(reasons.get(one, 0)) for one in ("big", "forward", "checks", "built", "time")]
        counted = [
            family,
            len(found),
            sum(map(passed, found)),
            f"{share(rows, family):.0%}",
            target,
        ]
        lines.append(_line([*counted, *told]))
    lines += ["", "## Which did not pass, and why", ""]
    lines += ["| type | class | family | why |", "| --- | --- | --- | --- |"]
    for row in rows.values():
        if not passed(row):
            text = f"{row['stage']}: {why(row)}" if row["stage"] != "ok" else why(row)
            clean = " ".join(text.split()).replace("|", "/")[:150]
            lines.append(_line([row["type"], row["class"], ", ".join(row["families"]), clean]))
    return "\n".join(lines) + "\n"


def _line(cells: list[Any]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def reason(row: dict[str, Any]) -> str:
    """Return in which column a row that did not pass is counted."""
    if row["stage"] == "ok":
        return "checks" if any(one != "ok" for one in row["checks"].values()) else "big"
    return {"forward": "forward", "big": "big", "out of time": "time", "crashed": "time"}.get(
        row["stage"], "built"
    )


if __name__ == "__main__":
    raise SystemExit(main())
