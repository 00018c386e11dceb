"""Real repositories, searched by `git bisect run` and by rl: runs and right answers."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.histories import ENV, KINDS, Range, git, make
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

SIZES = (60, 250)
SLOW_S = 2.0


def of_all_kinds(run: Run) -> Table:
    """Search the same ranges by git, by rl with all commits alike, and by rl with its prior."""
    table = Table(
        name="commits",
        title="Commits of made-up repositories: runs, and right answers",
        columns=("kind", "ranges", "git", "right", "rl alike", "right", "rl", "right", "alike/git"),
        figure="rl/git",
    )
    every: dict[str, list[float]] = {"git": [], "alike": [], "rl": []}
    for kind in KINDS:
        taken: dict[str, list[tuple[int, bool]]] = {"git": [], "alike": [], "rl": []}
        for size in SIZES:
            for seed in range(max(1, run.rounds // 2)):
                folder = run.work / f"{kind.replace(' ', '-')}-{size}-{seed}"
                case = make(folder, kind, size, seed, run.python)
                taken["git"].append(_by_git(case))
                taken["alike"].append(_by_rl(run, case, "--no-prior"))
                taken["rl"].append(_by_rl(run, case))
        table.rows.append(_row(kind, taken))
        for name, those in taken.items():
            every[name] += [runs for runs, _ in those]
    ratio = sum(every["rl"]) / sum(every["git"])
    alike = sum(every["alike"]) / sum(every["git"])
    cells = ("all", str(len(every["git"])), "", "", "", "", "", "", f"{alike:.2f}")
    table.rows.append(Row(cells=cells, ratio=ratio, at_most=0.75))
    table.rows.append(Row(cells=("all, weighed alike",), ratio=alike, at_most=1.15))
    table.notes = [
        "runs of the search itself; rl runs both ends before it, and the answer and its parent "
        "once more after it",
        "breakage: 30% of the commits fail with another error; git takes any failure for the one",
    ]
    return table


def _row(kind: str, taken: dict[str, list[tuple[int, bool]]]) -> Row:
    cells = [kind, str(len(taken["git"]))]
    means = {}
    for name in ("git", "alike", "rl"):
        means[name] = mean(runs for runs, _ in taken[name])
        right = sum(is_right for _, is_right in taken[name]) / len(taken[name])
        cells += [f"{means[name]:.1f}", f"{100 * right:.0f}%"]
    cells.append(f"{means['alike'] / means['git']:.2f}")
    return Row(cells=tuple(cells), ratio=means["rl"] / means["git"])


def _by_git(case: Range) -> tuple[int, bool]:
    case.count.write_text("")
    git(case.top, "bisect", "start", case.bad, case.good)
    words = list(case.command)
    if case.is_reversed:
        words = ["sh", "-c", "! " + " ".join(words)]
    env = {**ENV, "PYTHONDONTWRITEBYTECODE": "1"}  # else stale bytecode decides
    done = subprocess.run(
        ["git", "bisect", "run", *words], cwd=case.top, env=env, capture_output=True, text=True
    )
    git(case.top, "bisect", "reset")
    return len(case.count.read_text()), f"{case.culprit} is the first bad commit" in done.stdout


def _by_rl(run: Run, case: Range, *options: str, jobs: int = 1) -> tuple[int, bool]:
    found = _searched(run, case, *options, "-j", str(jobs))
    return found["search_runs"], found["commit"] == case.culprit and found["found"]


def _searched(run: Run, case: Range, *options: str) -> dict[str, Any]:
    words = [*run.rl, "bisect", "--good", case.good, "--bad", case.bad, "--json", *options]
    env = {**ENV, "HOME": str(run.work), "PATH": os.environ["PATH"]}
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
    for seed in range(1 if run.quick else 3):
        case = make(run.work / f"slow-{seed}", "plain", 120, seed, run.python)
        script = Path(case.command[1])
        script.write_text(f"import time\ntime.sleep({SLOW_S})\n" + script.read_text())
        for jobs in (1, 2):
            began = time.perf_counter()
            _searched(run, case, "-j", str(jobs), "--no-prior")
            seconds[jobs].append(time.perf_counter() - began)
    cells = (
        f"{len(seconds[1])} of 120 commits",
        f"{mean(seconds[1]):.1f} s",
        f"{mean(seconds[2]):.1f} s",
    )
    ratio = mean(seconds[1]) / mean(seconds[2])
    table.rows.append(Row(cells=cells, ratio=ratio, at_least=1.5))
    return table
