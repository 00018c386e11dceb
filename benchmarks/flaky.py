"""Commands that fail at times: how many runs a search takes, and whether it is as sure as it says.

Both searches are asked what to run next, and told what a made-up command did, seed by seed alike.
The commits are those of made-up repositories, and rl weighs them as it does in a real search.
"""

from __future__ import annotations

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from statistics import mean
from typing import Any, NamedTuple

from benchmarks import install
from benchmarks.commits import PAUSE_S, weights_of
from benchmarks.histories import make
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

PEER = ("git-bayesect==1.2",)
SIZE = 300
RANGES, SEEDS = 12, 25
"""So many repositories, and so many times each."""
MODELS: dict[str, tuple[float, float, dict[str, Any]]] = {
    "fails 30% before, always after": (0.3, 1.0, {"after": 1.0}),
    "never before, fails 30% after": (0.0, 0.3, {"before": 0.0}),
    "30% before, 70% after": (0.3, 0.7, {}),
}
_COMMON = """\
import json, random, sys
size, worlds, before, after, known = json.load(sys.stdin)
def world(seed, culprit):
    rng = random.Random(seed)
    return lambda place: rng.random() < (after if place >= culprit else before)
"""
_PEER = (
    _COMMON
    + """\
from git_bayesect import Bisector
found = []
for seed, (culprit, _) in enumerate(worlds):
    shows = world(seed, culprit)
    search = Bisector([1.0] * size)  # its index 0 is the newest commit
    runs = 0
    while True:
        chances = search.distribution
        best = int(chances.argmax())
        if chances[best] >= 0.95 or runs >= 2000:
            break
        index = search.select()
        search.record(index, bool(shows(size - index)))
        runs += 1
    found.append((runs, runs, size - best == culprit, float(chances[best])))
print(json.dumps(found))
"""
)
_OURS = (
    _COMMON
    + """\
from relaunch.search.line import LineSearch, Side
from relaunch.search.posterior import Rates
found = []
for seed, (culprit, weights) in enumerate(worlds):
    shows = world(seed, culprit)
    search = LineSearch(weights, rates=Rates(**known), confirmations=1)
    tried = []
    def run(place):
        if place not in (0, size, *tried) or not search.is_steady:
            tried.append(place)  # else it is an end, or run again to be sure
        search.learn(place, Side.NEW if shows(place) else Side.OLD)
    run(0); run(size)
    while True:
        wanted = search.propose(1)
        if not wanted or search.runs >= 2000:
            break
        run(wanted[0])
    answer = search.answer()
    found.append((len(tried), search.runs, answer.place == culprit, answer.suspects[0].chance))
print(json.dumps(found))
"""
)


class World(NamedTuple):
    """Where the culprit is, and what rl gives to each commit."""

    culprit: int
    weights: list[float]


class Searched(NamedTuple):
    """What one search took, and what came of it."""

    runs: int
    every: int
    """With both ends, and those runs that only confirm a steady answer."""
    is_right: bool
    said: float


def deterministic(run: Run) -> Table:
    """Search ranges in which nothing is left to chance."""
    table = Table(
        name="deterministic",
        title=f"Nothing left to chance, {SIZE} commits: rl and git-bayesect",
        columns=(
            "command", "searches", "bayesect", "right", "rl alike", "right", "rl", "right",
            "rl, every start",
        ),
    )  # fmt: skip
    worlds = _worlds(run)
    theirs, alike, ours = _searched(run, worlds, (0.0, 1.0, {"steady": True}))
    every = f"{mean(one.every for one in ours):.1f}"
    these = (*_cells(theirs), *_cells(alike), *_cells(ours), every)
    cells = ("never, then always", str(len(worlds)), *these)
    ratio = _runs(ours) / _runs(theirs)
    table.rows.append(Row(cells=cells, ratio=ratio, at_most=0.5))
    table.rows.append(Row(cells=("rl: right",), ratio=_right(ours), at_least=1.0))
    table.notes = [
        *_NOTES,
        "runs of the search itself; `every start` has both ends, and the answer and its parent "
        "once more, which git-bayesect does not run",
    ]
    return table


_NOTES = [
    "runs on average; of git-bayesect until it is 95% sure, of rl until it is 98% sure",
    "alike: rl with all commits weighed alike, as git-bayesect does unless it is told otherwise",
]


def three_models(run: Run) -> Table:
    """Search with three kinds of noise."""
    table = Table(
        name="flaky",
        title=f"Commands that fail at times, {SIZE} commits: rl and git-bayesect",
        columns=(
            "command", "searches", "bayesect", "right", "rl alike", "right", "rl", "right",
            "rl says",
        ),
    )  # fmt: skip
    worlds = _worlds(run)
    for name, model in MODELS.items():
        theirs, alike, ours = _searched(run, worlds, model)
        says = f"{100 * _said(ours):.1f}%"
        cells = (name, str(len(worlds)), *_cells(theirs), *_cells(alike), *_cells(ours), says)
        most = 0.6 if model[2] else None
        table.rows.append(Row(cells=cells, ratio=_runs(ours) / _runs(theirs), at_most=most))
        if model[2]:
            right = _right(ours) / _right(theirs)
            table.rows.append(Row(cells=("  as often right",), ratio=right, at_least=1.0))
        for label, found in (("alike", alike), ("rl", ours)):
            points = 100 * abs(_said(found) - _right(found))
            row = Row(cells=(f"  {label}: points off",), ratio=points, at_most=3.0)
            table.rows.append(row)
    table.notes = [
        *_NOTES,
        "every run counts, those of both ends too",
        "rl is told the side that is known; of the last it is told nothing",
        "points off: between how sure it says it is and how often it is right",
    ]
    return table


_made: dict[tuple[str, int], list[World]] = {}


def _worlds(run: Run) -> list[World]:
    """Make the repositories and have rl weigh their commits, once for all tables."""
    ranges, seeds = (4, 5) if run.quick else (RANGES, SEEDS)
    key = (str(run.work), ranges)
    if key not in _made:
        _made[key] = []
        for number in range(ranges):
            folder = run.work / f"weighed-{number}"
            case = make(folder, "plain", SIZE, 100 + number, run.python, pause_s=PAUSE_S)
            _made[key] += [World(case.place, weights_of(run, case))] * seeds
    return _made[key]


def _searched(
    run: Run, worlds: list[World], model: tuple[float, float, dict[str, Any]]
) -> tuple[list[Searched], list[Searched], list[Searched]]:
    """Search all of them with the peer, with rl that weighs alike, and with rl."""
    peer = install.venv("bisect-peers", run.python, PEER) / "python"
    before, after, known = model
    even = [World(one.culprit, [1.0] * SIZE) for one in worlds]
    asked = ((str(peer), _PEER, even), (run.rl_python, _OURS, even), (run.rl_python, _OURS, worlds))
    specs = [json.dumps([SIZE, these, before, after, known]) for _, _, these in asked]
    with ThreadPoolExecutor() as pool:
        theirs, alike, ours = pool.map(lambda one, spec: _asked(one[0], one[1], spec), asked, specs)
    return theirs, alike, ours


def _asked(python: str, program: str, spec: str) -> list[Searched]:
    done = subprocess.run([python, "-c", program], input=spec, capture_output=True, text=True)
    if done.returncode:
        raise Unmeasured(done.stderr[-300:])
    return [Searched(*one) for one in json.loads(done.stdout)]


def _cells(found: list[Searched]) -> tuple[str, str]:
    return f"{_runs(found):.1f}", f"{100 * _right(found):.1f}%"


def _runs(found: list[Searched]) -> float:
    return mean(one.runs for one in found)


def _right(found: list[Searched]) -> float:
    return mean(one.is_right for one in found)


def _said(found: list[Searched]) -> float:
    return mean(one.said for one in found)
