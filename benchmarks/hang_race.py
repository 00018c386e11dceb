"""Subject `race`: races that plain runs do not show, how soon a schedule does, at what cost."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.racing import NAMES, path_of, plain_failures, raced

from benchmarks.table import Row, Table

if TYPE_CHECKING:
    from benchmarks.run import Run

_PLAIN, _SCHEDULES, _FIXED, _REPLAYS = 5000, 200, 500, 20
_QUICK = 10
"""So much less of all is done in a quick run."""


def tables(run: Run) -> list[Table]:
    """Race every program, and its corrected version."""
    share = _QUICK if run.quick else 1
    found = Table(
        name="found",
        title="Races: in plain runs, in schedules, and by their seed",
        columns=("program", "fails in plain runs", "first failing of schedules", "found in, s",
                 "switches that matter", "again by its seed"),
        figure="schedules",
    )  # fmt: skip
    fixed = Table(
        name="corrected",
        title="The same programs, corrected",
        columns=("program", "fails in schedules", "ms a schedule"),
        figure="failures",
    )
    for name in NAMES:
        found.rows.append(_found(run, name, share))
        fixed.rows.append(_fixed(run, name, share))
    found.notes.append("Plain runs are forked from one Python with its imports done.")
    return [found, fixed]


def _found(run: Run, name: str, share: int) -> Row:
    plain = plain_failures(name, _PLAIN // share, run.python)
    began = time.monotonic()
    answer = _raced(run, name, "-n", str(_SCHEDULES))
    took = time.monotonic() - began
    failing = answer["failing"]
    if failing is None:
        cells = (name, f"{plain} of {_PLAIN // share}", f"none of {_SCHEDULES}", "", "", "")
        return Row(cells=cells, ratio=float("inf"), at_most=_SCHEDULES)
    again = _raced(run, name, "--seed", str(failing["seed"]), "-n", str(_REPLAYS))["failing"]
    replayed = again["replayed"] if again is not None else 0
    is_good = plain == 0 and replayed == _REPLAYS
    return Row(
        cells=(
            name,
            f"{plain} of {_PLAIN // share}",
            str(failing["seed"]),
            f"{took:.1f}",
            str(len(failing["matter"])),
            f"{replayed} of {_REPLAYS}",
        ),
        ratio=float(failing["seed"]) if is_good else float("inf"),
        at_most=_SCHEDULES,
    )


def _fixed(run: Run, name: str, share: int) -> Row:
    count = _FIXED // share
    began = time.monotonic()
    answer = _raced(run, f"{name}_fixed", "-n", str(count), "--all", "-j", "1")
    each = 1000 * (time.monotonic() - began) / count
    failed = sum(one["schedules"] for one in answer["failures"])
    missing = count - answer["schedules"]
    return Row(
        cells=(name, f"{failed} of {answer['schedules']}", f"{each:.0f}"),
        ratio=float(failed + missing),
        at_most=0,
    )


def _raced(run: Run, name: str, *words: str) -> dict[str, Any]:
    folder = run.work / "races"
    home = run.work / "home"
    for path in (folder, home):
        path.mkdir(exist_ok=True)
    source: Path = folder / f"{name}.py"
    source.write_text(path_of(name).read_text())
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
    return raced(run.rl, (*words, "--", run.python, source.name), cwd=folder, env=env)
