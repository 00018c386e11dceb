"""Real repositories, searched by `git bisect run` and by rl: runs and right answers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.histories import ENV, KINDS, OTHERWISE, Range, git, make
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

SIZES = (60, 250)
PAUSE_S = 0.25
"""What the command waits: one that takes no time at all is never worth weighing commits for."""
SLOW_S = 2.0
ALIKE = "--no-prior"


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """What one search took."""

    runs: int
    """Of the search itself."""
    every: int
    """Each time the command was started: also both ends, and the last check."""
    is_right: bool


def of_all_kinds(run: Run) -> Table:
    """Search the same ranges by git, by rl with all commits alike, and by rl with its prior."""
    table = Table(
        name="commits",
        title="Commits of made-up repositories: runs, and right answers",
        columns=(
            "kind", "ranges", "git", "right", "git told", "right", "rl alike", "right", "rl",
            "right", "rl, every start", "alike/git", "worst",
        ),
        figure="rl/git",
    )  # fmt: skip
    every: dict[str, list[Taken]] = {}
    by_kind: list[float] = []
    for kind in KINDS:
        taken = _of_kind(run, kind)
        table.rows.append(_row(kind, taken))
        if pairs := _against(taken, "alike"):
            by_kind.append(_ratio(pairs))
        for name, those in taken.items():
            every.setdefault(name, []).extend(those)
    ranges = str(len(every["rl"]))
    for name in ("alike", "rl"):
        right = mean(one.is_right for one in every[name])
        table.rows.append(Row(cells=(f"{name}: right", ranges), ratio=right, at_least=1.0))
    alike, rl = _against(every, "alike"), _against(every, "rl")
    count = str(len(rl))
    table.rows.append(Row(cells=("rl, on average", count), ratio=_ratio(rl), at_most=0.75))
    table.rows.append(Row(cells=("alike, on average", count), ratio=_ratio(alike), at_most=1.15))
    worst = Row(cells=("alike, worst kind", str(len(by_kind))), ratio=max(by_kind), at_most=1.15)
    table.rows.append(worst)
    table.notes = [
        "runs of the search itself; `every start` has both ends, and the answer and its parent "
        "once more",
        "git told: the command exits with 125 for any error but the one looked for, as a person "
        "has to write it; in the other kinds there is no such error",
        "ratios are to git told, over the ranges that it got right: where it blames another "
        "commit or gives up, its runs tell nothing",
        "breakage: 30% of the commits fail with another error; eras: the commits need three "
        "versions of a package, none of which is installed",
        "git gets no bytecode, which it leaves stale, but for the kind that is about it: same size",
        "alike: all commits are weighed alike (`--no-prior`); worst: the range with the most of it",
    ]
    return table


def _of_kind(run: Run, kind: str) -> dict[str, list[Taken]]:
    taken: dict[str, list[Taken]] = {"git": [], "told": [], "alike": [], "rl": []}
    for size in SIZES:
        for seed in range(max(1, run.rounds // 2)):
            folder = run.work / f"{kind.replace(' ', '-')}-{size}-{seed}"
            case = make(folder, kind, size, seed, run.python, pause_s=PAUSE_S)
            taken["git"].append(by_git(case))
            told = by_git(case, "told") if kind in OTHERWISE else taken["git"][-1]
            taken["told"].append(told)
            taken["alike"].append(by_rl(run, case, ALIKE))
            taken["rl"].append(by_rl(run, case))
    return taken


def _against(taken: dict[str, list[Taken]], name: str) -> list[tuple[int, int]]:
    """Return the runs of a search and those of git, where git was right."""
    pairs = zip(taken[name], taken["told"], strict=True)
    return [(one.runs, git.runs) for one, git in pairs if git.is_right]


def _ratio(pairs: list[tuple[int, int]]) -> float:
    return sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)


def _row(kind: str, taken: dict[str, list[Taken]]) -> Row:
    cells = [kind, str(len(taken["git"]))]
    for name in ("git", "told", "alike", "rl"):
        right = mean(one.is_right for one in taken[name])
        cells += [f"{mean(one.runs for one in taken[name]):.1f}", f"{100 * right:.0f}%"]
    cells.append(f"{mean(one.every for one in taken['rl']):.1f}")
    alike = _against(taken, "alike")
    if not alike:
        return Row(cells=(*cells, "-", "-"))
    worst = max(ours / theirs for ours, theirs in alike)
    return Row(
        cells=(*cells, f"{_ratio(alike):.2f}", f"{worst:.2f}"), ratio=_ratio(_against(taken, "rl"))
    )


def by_git(case: Range, *words: str) -> Taken:
    """Let git search; `words` are added to the command."""
    case.count.write_text("")
    git(case.top, "bisect", "start", case.bad, case.good)
    command = [*case.command, *words]
    if case.kind == "reversed":
        command = ["sh", "-c", "! " + " ".join(command)]
    env = ENV if case.kind == "same size" else {**ENV, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        ["git", "bisect", "run", *command], cwd=case.top, env=env, capture_output=True, text=True
    )
    git(case.top, "bisect", "reset")
    runs = len(case.count.read_text())
    is_right = f"{case.culprit} is the first bad commit" in done.stdout
    return Taken(runs=runs, every=runs, is_right=is_right)


def by_rl(run: Run, case: Range, *options: str) -> Taken:
    """Let rl search."""
    case.count.write_text("")
    found = searched(run, case, *options)
    return Taken(
        runs=found["search_runs"],
        every=len(case.count.read_text()),
        is_right=found["commit"] == case.culprit and found["found"],
    )


def searched(run: Run, case: Range, *options: str) -> dict[str, Any]:
    """Return what rl says of a range."""
    words = [*run.rl, "bisect", "--good", case.good, "--bad", case.bad, "--json", *options]
    env = {**ENV, **case.env, "HOME": str(run.work), "PATH": os.environ["PATH"]}
    done = subprocess.run(
        [*words, "--", *case.command], cwd=case.top, env=env, capture_output=True, text=True
    )
    if done.returncode not in (0, 1):
        raise Unmeasured(f"rl bisect: {done.stderr[-300:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def of_two_workers(run: Run) -> Table:
    """Search with a command that takes two seconds, one at a time and two at once."""
    table = Table(
        name="workers",
        title="Two at once, with a command of 2 s",
        columns=("range", "one at a time", "two at once"),
    )
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for seed in range(1 if run.quick else 2):
        folder = run.work / f"slow-{seed}"
        case = make(folder, "plain", 120, seed, run.python, pause_s=SLOW_S)
        for jobs in (1, 2):
            began = time.perf_counter()
            searched(run, case, "-j", str(jobs), ALIKE)
            seconds[jobs].append(time.perf_counter() - began)
    cells = (
        f"{len(seconds[1])} of 120 commits",
        f"{mean(seconds[1]):.1f} s",
        f"{mean(seconds[2]):.1f} s",
    )
    ratio = mean(seconds[1]) / mean(seconds[2])
    table.rows.append(Row(cells=cells, ratio=ratio, at_least=1.5))
    return table


def weights_of(run: Run, case: Range) -> list[float]:
    """Return how rl weighs the commits of a range, by a search that really weighs them."""
    searched(run, case)
    kept = case.top / ".git/relaunch"
    found: list[Path] = sorted(kept.rglob("weights.json"))
    if not found:
        raise Unmeasured(f"{case.top.name}: the commits were not weighed")
    weights: list[float] = json.loads(found[-1].read_text())["weights"]
    return weights
