"""Subject 2: how long `rl --help` and `rl log` take to start, against bare Python."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks import install
from benchmarks.added import repository
from benchmarks.peers import BARE
from benchmarks.run import Run
from benchmarks.spend import Contestant, Costs, Stdout, compete, spend
from benchmarks.table import Row, Table

FAILS = "raise ValueError('loss is nan')\n"
AT_MOST = {"help": 1.5, "few": 3.0, "many": 5.0}


def measure(run: Run) -> Table:
    """Run each beside `python -c pass` of the same environment."""
    few, many = 100, 1_000 if run.quick else 10_000
    table = Table(
        name="start",
        title="Start-up against `python -c pass`",
        columns=("measured", "CPU ms", "median", "wall ms"),
        notes=[
            "Both on the interpreter that rl is installed for; minima; output to a file, which rl "
            "treats as it treats a pipe, and to an 80-column terminal.",
            "The journals are real trials, copied.",
        ],
    )
    contestants = [_bare(run), *_help(run), *_logs(run, "few", few), *_logs(run, "many", many)]
    costs = compete(contestants, run.rounds * 2)
    run.keep("start", costs)
    _fill(table, costs, few, many)
    return table


def _fill(table: Table, costs: dict[str, Costs], few: int, many: int) -> None:
    bare = costs["bare"]
    table.rows.append(_row("python -c pass", bare, bare, None))
    for key, what in (
        ("help", "rl --help"),
        ("few", f"rl log, {few:,} trials"),
        ("many", f"rl log, {many:,} trials"),
    ):
        table.rows.append(_row(what, costs[key], bare, AT_MOST[key]))
        table.rows.append(
            _row(f"{what}, in a terminal", costs[f"{key}-terminal"], bare, AT_MOST[key])
        )


def _row(what: str, cost: Costs, bare: Costs, at_most: float | None) -> Row:
    cells = (what, f"{cost.cpu_ms:.1f}", f"{cost.median_ms:.1f}", f"{cost.wall_ms:.1f}")
    return Row(cells=cells, ratio=cost.cpu_ms / bare.cpu_ms, at_most=at_most)


def _bare(run: Run) -> Contestant:
    env = install.plain_environment(run.work)
    return Contestant(name="bare", argv=(run.rl_python, "-c", "pass"), cwd=run.work, env=env)


def _help(run: Run) -> list[Contestant]:
    cwd, env = repository(run, "help", BARE, install.bare(run.python))
    return _both("help", (*run.rl, "--help"), cwd, env, "rl")


def _logs(run: Run, name: str, count: int) -> list[Contestant]:
    cwd, env = repository(run, name, BARE, install.bare(run.python))
    for script in (BARE, FAILS):
        (cwd / "train.py").write_text(script)
        first = Contestant(
            name=name,
            argv=("sh", "-c", f"{run.rl[0]} -- python train.py || true"),
            cwd=cwd,
            env=env,
        )
        spend(first)
    inside = Path(__file__).with_name("inside.py")
    journal = cwd / ".git" / "relaunch"
    print(f"filling a journal with {count:,} trials ...", file=sys.stderr, flush=True)
    install.command(cwd, env, run.rl_python, str(inside), "fill", str(journal), str(count))
    return _both(name, (*run.rl, "log"), cwd, env, str(count))


def _both(
    name: str, argv: tuple[str, ...], cwd: Path, env: dict[str, str], expect: str
) -> list[Contestant]:
    return [
        Contestant(name=key, argv=argv, cwd=cwd, env=env, stdout=stdout, expect=expect)
        for key, stdout in ((name, Stdout.FILE), (f"{name}-terminal", Stdout.TERMINAL))
    ]
