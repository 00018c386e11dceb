"""What benchmarks of CPU time have in common as commands: options, rounds, tables, exit codes."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import install, machine
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Met, Row, Table

MISSED, UNMEASURED = 1, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Benchmark:
    """Several subjects that are measured in one run."""

    module: str
    """As in `python -m`."""
    about: str
    title: str
    results: Path
    subjects: Mapping[str, Callable[[Run], Table | list[Table]]]
    rounds: int
    quick_rounds: int
    takes_clones: bool = False
    """`--clones` names a folder with real projects."""
    takes_cases: bool = False
    """`--cases` names a folder with cases, `--limit` says how long each contestant may take."""

    def main(self) -> int:
        """Measure, print, and say by the exit code whether all could be measured."""
        options = self._options()
        install.ROOT.mkdir(exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix="work-", dir=install.ROOT))
        try:
            run = self._prepare(options, work)
            facts = machine.facts(run.python)
            print("\n".join(f"- {fact}" for fact in facts) + "\n", flush=True)
            names = options.only or self.subjects
            tables = [table for name in names for table in self._measure(name, run)]
            facts[-1] = machine.facts(run.python)[-1]
        except Unmeasured as reason:
            print(f"nothing was measured: {reason}", file=sys.stderr)
            return UNMEASURED
        finally:
            shutil.rmtree(work, ignore_errors=True)
        if options.json:
            _write_json(Path(options.json), facts, tables, run)
        if options.write:
            self.results.write_text(self._results(facts, tables, quick=run.quick))
        met = [row.met for table in tables for row in table.rows]
        print(_summary(met))
        if Met.UNMEASURED in met:
            return UNMEASURED
        return MISSED if options.check and Met.NO in met else 0

    def _options(self) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=f"python -m {self.module}", description=self.about)
        only = "just this subject"
        parser.add_argument("--quick", action="store_true", help="fewer rounds, smaller amounts")
        parser.add_argument("--only", action="append", choices=self.subjects, help=only)
        parser.add_argument("--json", metavar="FILE", help="write every sample there")
        parser.add_argument("--write", action="store_true", help=f"write {self.results.name}")
        parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
        parser.add_argument("--rounds", type=int, help="how often each command runs")
        parser.add_argument(
            "--python", default=sys.executable, help="makes the environments (default: this one)"
        )
        parser.add_argument(
            "--rl", metavar="PATH", help="measure this rl, not one installed from the checkout"
        )
        if self.takes_clones:
            parser.add_argument("--clones", metavar="FOLDER", help="with clones of real projects")
        if self.takes_cases:
            parser.add_argument("--cases", metavar="FOLDER", help="with real failures")
            parser.add_argument(
                "--limit", metavar="S", type=int, help="seconds for each contestant"
            )
        options = parser.parse_args()
        if options.write and (options.only or options.rl):
            parser.error("--write takes a whole run of the checkout")
        return options

    def _prepare(self, options: argparse.Namespace, work: Path) -> Run:
        rl = options.rl or str(install.relaunch(options.python) / "rl")
        return Run(
            python=options.python,
            rl=(rl,),
            rl_python=str(Path(rl).parent / "python"),
            work=work,
            rounds=options.rounds or (self.quick_rounds if options.quick else self.rounds),
            quick=options.quick,
            clones=_folder(options, "clones"),
            cases=_folder(options, "cases"),
            limit_s=getattr(options, "limit", None),
        )

    def _measure(self, name: str, run: Run) -> list[Table]:
        try:
            found = self.subjects[name](run)
        except Unmeasured as reason:
            rows = [Row(cells=(name,), unmeasured=str(reason))]
            found = Table(name=name, title=name, columns=("measured",), rows=rows)
        tables = found if isinstance(found, list) else [found]
        for table in tables:
            print(table.text(), flush=True)
        return tables

    def _results(self, facts: list[str], tables: list[Table], *, quick: bool) -> str:
        how = f"python -m {self.module} --write" + (" --quick" if quick else "")
        head = f"# {self.title}\n\nWritten by `{how}`; do not edit.\n\n"
        met = [row.met for table in tables for row in table.rows]
        lines = "".join(f"- {fact}\n" for fact in facts)
        texts = "\n".join(table.text() for table in tables)
        return f"{head}{lines}\n{_summary(met)}.\n\n{texts}"


def _folder(options: argparse.Namespace, name: str) -> Path | None:
    given = getattr(options, name, None)
    return Path(given).resolve() if given else None


def _summary(met: list[Met]) -> str:
    counts = {state: met.count(state) for state in Met}
    said = f"{counts[Met.YES]} targets met, {counts[Met.NO]} not met"
    return said + (f", {counts[Met.UNMEASURED]} not measured" if counts[Met.UNMEASURED] else "")


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
