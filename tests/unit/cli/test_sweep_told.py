"""How what came of a sweep is shown: few rows, the failing ones first and marked."""

from __future__ import annotations

import pytest

from relaunch.cli import draw
from relaunch.cli.sweep_told import rows_of, table, verdict
from relaunch.outcome import Outcome, Signature
from relaunch.search.factors import explain
from relaunch.session.sweeping.judge import judge
from relaunch.session.sweeping.told import Factor, Found, Kind, Request, Run

PLAIN = draw.Pen(utf8=False)
FAILED = Outcome(exit_code=1, signature=Signature(kind="exit", title="exit 1", key=("exit 1",)))
PASSED = Outcome(exit_code=0)
UNSTARTED = Outcome(exit_code=125, not_started="the set is gone")


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def found_of(outcomes):
    """What a sweep over `x` and two seeds found: an outcome for each."""
    runs = [
        Run(settings={"x": x, "seed": str(seed)}, trial_id=f"{x}{seed}", outcome=outcome)
        for x, pair in outcomes.items()
        for seed, outcome in enumerate(pair)
    ]
    request = Request(
        argv=("run", "{x}"),
        cwd="/",
        factors=(
            Factor(name="x", kind=Kind.ARG, values=tuple(outcomes)),
            Factor(name="seed", kind=Kind.SEED, values=("0", "1")),
        ),
    )
    judged = judge(runs)
    found = Found(
        runs=tuple(runs), before=0, explanation=explain(judged.cases), hunted=judged.hunted,
        titles=judged.titles, examples=judged.examples, untestable=judged.untestable,
    )  # fmt: skip
    return request, found


def test_failing_rows_come_first_and_each_kind_has_its_mark():
    request, found = found_of(
        {
            "a": (PASSED, PASSED),
            "b": (PASSED, FAILED),
            "c": (UNSTARTED, UNSTARTED),
            "d": (FAILED, FAILED),
        }
    )
    lines = [line.split() for line in table(rows_of(request, found), [], PLAIN)]
    shown = [(line[0], line[1], line[2]) for line in lines[1:4]]
    assert shown == [("~", "b", "1/2"), ("x", "d", "0/2"), ("?", "c", "0/2")]
    assert lines[1][5:7] == ["#b1", "#b0"]  # the failing trial first
    assert lines[4][:2] == ["a", "2/2"]
    assert "not tested: 2 runs: the set is gone" in verdict(found, PLAIN)


def test_of_many_rows_the_first_are_shown_and_the_rest_is_counted():
    many = {f"{n:03}": (FAILED if n < 3 else PASSED, PASSED) for n in range(300)}
    request, found = found_of(many)
    lines = table(rows_of(request, found), [], PLAIN)
    assert len(lines) == 42
    assert lines[-1].startswith("... 260 more rows, 260 of them passed: ")
    assert max(map(len, lines)) <= 80


def test_where_only_seeds_vary_each_has_its_row():
    request, found = found_of({"a": (PASSED, FAILED)})
    rows = rows_of(request, found)
    assert [dict(row.settings) for row in rows] == [{"seed": "1"}, {"seed": "0"}]
    assert "  fails exactly when seed=1 (1 of 2)" in verdict(found, PLAIN)
