"""Commands that fail at times: how many runs a search takes, and whether it is as sure as it says.

Both searches are asked what to run next, and told what a made-up command did, seed by seed alike.
"""

from __future__ import annotations

import json
import subprocess
from statistics import mean
from typing import Any

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

PEER = ("git-bayesect==1.2",)
SIZE = 300
Model = tuple[float, float, dict[str, Any]]
MODELS: dict[str, Model] = {
    "fails 30% before, always after": (0.3, 1.0, {"after": 1.0}),
    "never before, fails 30% after": (0.0, 0.3, {"before": 0.0}),
    "30% before, 70% after": (0.3, 0.7, {}),
}
_COMMON = """\
import json, random, sys
size, seeds, before, after, known = json.loads(sys.argv[1])
def world(seed):
    rng = random.Random(seed)
    culprit = rng.randint(1, size)
    return culprit, lambda place: rng.random() < (after if place >= culprit else before)
"""
_PEER = (
    _COMMON
    + """\
from git_bayesect import Bisector
found = []
for seed in range(seeds):
    culprit, shows = world(seed)
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
    found.append((runs, size - best == culprit, float(chances[best])))
print(json.dumps(found))
"""
)
_OURS = (
    _COMMON
    + """\
from relaunch.search.line import LineSearch, Side
from relaunch.search.posterior import Rates
found = []
for seed in range(seeds):
    culprit, shows = world(seed)
    steady = bool(known.pop("steady", False)) if seed == 0 else steady
    search = LineSearch([1.0] * size, rates=Rates(steady=steady, **known))
    def run(place):
        search.learn(place, Side.NEW if shows(place) else Side.OLD)
    run(0); run(size)
    while True:
        wanted = search.propose(1)
        if not wanted or search.runs >= 2000:
            break
        run(wanted[0])
    answer = search.answer()
    found.append((search.runs, answer.place == culprit, answer.suspects[0].chance))
print(json.dumps(found))
"""
)


def deterministic(run: Run) -> Table:
    """Search ranges in which nothing is left to chance."""
    table = Table(
        name="deterministic",
        title=f"Nothing left to chance, {SIZE} commits: rl and git-bayesect",
        columns=("command", "seeds", "bayesect runs", "right", "rl runs", "right", "rl says"),
    )
    table.rows.append(_compared(run, "never, then always", (0.0, 1.0, {"steady": True}), 0.5))
    table.notes = ["runs of rl with both its ends, of git-bayesect all it asks for"]
    return table


def three_models(run: Run) -> Table:
    """Search with three kinds of noise."""
    table = Table(
        name="flaky",
        title=f"Commands that fail at times, {SIZE} commits: rl and git-bayesect",
        columns=("command", "seeds", "bayesect runs", "right", "rl runs", "right", "rl says"),
    )
    for name, model in MODELS.items():
        table.rows.append(_compared(run, name, model, 0.6 if model[2] else None))
    table.notes = ["rl is told the side that is known; what it says is to be as often right"]
    return table


def _compared(run: Run, name: str, model: Model, at_most: float | None) -> Row:
    seeds = 20 if run.quick else 300
    before, after, known = model
    peer = install.venv("bisect-peers", run.python, PEER) / "python"
    spec = json.dumps([SIZE, seeds, before, after, known])
    theirs, ours = _asked(str(peer), _PEER, spec), _asked(run.rl_python, _OURS, spec)
    cells = (
        name, str(seeds), f"{_runs(theirs):.0f}", f"{100 * _right(theirs):.1f}%",
        f"{_runs(ours):.0f}", f"{100 * _right(ours):.1f}%", f"{100 * _said(ours):.1f}%",
    )  # fmt: skip
    return Row(cells=cells, ratio=_runs(ours) / _runs(theirs), at_most=at_most)


def _asked(python: str, program: str, spec: str) -> list[tuple[int, bool, float]]:
    done = subprocess.run([python, "-c", program, spec], capture_output=True, text=True)
    if done.returncode:
        raise Unmeasured(done.stderr[-300:])
    return [(runs, right, chance) for runs, right, chance in json.loads(done.stdout)]


def _runs(found: list[tuple[int, bool, float]]) -> float:
    return mean(runs for runs, _, _ in found)


def _right(found: list[tuple[int, bool, float]]) -> float:
    return mean(is_right for _, is_right, _ in found)


def _said(found: list[tuple[int, bool, float]]) -> float:
    return mean(chance for _, _, chance in found)
