"""`python -m benchmarks.cycle`: what a relaunch costs, beside its peers, as ratios from one run."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import added, install, machine, snapshot, start, throughput
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Met, Row, Table

SUBJECTS: dict[str, Callable[[Run], Table]] = {
    "added": added.measure,
    "start": start.measure,
    "snapshot": snapshot.measure,
    "throughput": throughput.measure,
}
RESULTS = Path(__file__).parent / "RESULTS.md"
MISSED, UNMEASURED = 1, 3


def main() -> int:
    """Measure, print, and say by the exit code whether all could be measured."""
    options = _options()
    install.ROOT.mkdir(exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="work-", dir=install.ROOT))
    try:
        run = _prepare(options, work)
        facts = machine.facts(run.python)
        print("\n".join(f"- {fact}" for fact in facts) + "\n", flush=True)
        tables = [_measure(name, run) for name in options.only or SUBJECTS]
        facts[-1] = machine.facts(run.python)[-1]
    except Unmeasured as reason:
        print(f"nothing was measured: {reason}", file=sys.stderr)
        return UNMEASURED
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if options.json:
        _write_json(Path(options.json), facts, tables, run)
    if options.write:
        RESULTS.write_text(_results(facts, tables, quick=run.quick))
    met = [row.met for table in tables for row in table.rows]
    print(_summary(met))
    if Met.UNMEASURED in met:
        return UNMEASURED
    return MISSED if options.check and Met.NO in met else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cycle", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller amounts")
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="just this subject")
    parser.add_argument("--json", metavar="FILE", help="write every sample there")
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    parser.add_argument("--rounds", type=int, help="how often each command runs")
    parser.add_argument(
        "--python", default=sys.executable, help="makes the environments (default: this one)"
    )
    parser.add_argument(
        "--rl", metavar="PATH", help="measure this rl, not one installed from the checkout"
    )
    options = parser.parse_args()
    if options.write and (options.only or options.rl):
        parser.error("--write takes a whole run of the checkout")
    return options


def _prepare(options: argparse.Namespace, work: Path) -> Run:
    rl = options.rl or str(install.relaunch(options.python) / "rl")
    return Run(
        python=options.python,
        rl=(rl,),
        rl_python=str(Path(rl).parent / "python"),
        work=work,
        rounds=options.rounds or (5 if options.quick else 15),
        quick=options.quick,
    )


def _measure(name: str, run: Run) -> Table:
    try:
        table = SUBJECTS[name](run)
    except Unmeasured as reason:
        rows = [Row(cells=(name,), unmeasured=str(reason))]
        table = Table(name=name, title=name, columns=("measured",), rows=rows)
    print(table.text(), flush=True)
    return table


def _summary(met: list[Met]) -> str:
    counts = {state: met.count(state) for state in Met}
    said = f"{counts[Met.YES]} targets met, {counts[Met.NO]} not met"
    return said + (f", {counts[Met.UNMEASURED]} not measured" if counts[Met.UNMEASURED] else "")


def _results(facts: list[str], tables: list[Table], *, quick: bool) -> str:
    how = "python -m benchmarks.cycle --write" + (" --quick" if quick else "")
    head = f"# What a relaunch costs\n\nWritten by `{how}`; do not edit.\n\n"
    met = [row.met for table in tables for row in table.rows]
    lines = "".join(f"- {fact}\n" for fact in facts)
    return head + lines + f"\n{_summary(met)}.\n\n" + "\n".join(table.text() for table in tables)


def _write_json(path: Path, facts: list[str], tables: list[Table], run: Run) -> None:
    found: dict[str, Any] = {"version": 1, "machine": facts, "subjects": []}
    for table in tables:
        rows = [
            {
                "measured": row.cells[0],
                "cells": dict(zip(table.columns[1:], row.cells[1:], strict=False)),
                "ratio": row.ratio,
                "target": row.target,
                "result": row.met.name.lower(),
            }
            for row in table.rows
        ]
        found["subjects"].append({"name": table.name, "rows": rows})
    found["samples"] = run.samples
    path.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    raise SystemExit(main())
