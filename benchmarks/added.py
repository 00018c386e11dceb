"""Subject 1: the CPU time added to a one-line program, beside each peer on the same program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from benchmarks import install
from benchmarks.peers import BARE, PEERS, SAID, Peer
from benchmarks.run import Run
from benchmarks.spend import Contestant, Costs, Stdout, Unmeasured, compete, spend
from benchmarks.table import Row, Table

OURS = {
    "rl": "rl -- python train.py",
    "rl-edited": "the same after an edit",
    "rl-terminal": "the same in a terminal",
}
TIMES_LESS = {"dvc": 20.0, "guild": 20.0, "wandb": 20.0, "sacred": 1.0, "hydra": 1.0}


def measure(run: Run) -> Table:
    """Run all contestants in turn and set each added cost against ours."""
    table = Table(
        name="added",
        title="CPU added to a one-line `train.py`",
        columns=("measured", "CPU ms", "median", "bare", "added", "wall ms", "unedited"),
        notes=[
            "CPU is user + system of the whole tree, daemons included: minimum of the runs, median "
            "beside it. `bare` is `python train.py` in the same environment; ratios are of "
            "the added minima, peer / rl: how many times less rl adds.",
            "In a small git repository; output goes to a file, and once more for rl to a terminal. "
            "For the peers, and in rl's second row, `train.py` is edited a moment before every "
            "run: rl then also stores the new code. The targets are held against that row; "
            "`unedited` is the ratio against rl's first.",
        ],
    )
    contestants = _ours(run)
    failed: dict[str, str] = {}
    for peer in PEERS:
        try:
            contestants += _theirs(run, peer)
        except Unmeasured as reason:
            failed[peer.name] = str(reason)
    costs = compete(contestants, run.rounds)
    _fill(table, costs, failed)
    run.keep("added", costs)
    return table


def _fill(table: Table, costs: dict[str, Costs], failed: dict[str, str]) -> None:
    ours, edited = _added(costs, "rl"), _added(costs, "rl-edited")
    for name, what in OURS.items():
        table.rows.append(Row(cells=_cells(what, costs, name)))
    for peer in PEERS:
        if peer.name in failed:
            row = Row(
                cells=(peer.what,), at_least=TIMES_LESS[peer.name], unmeasured=failed[peer.name]
            )
        else:
            unedited = f"{_added(costs, peer.name) / ours:.2f}"
            row = Row(
                cells=(*_cells(peer.what, costs, peer.name), unedited),
                ratio=_added(costs, peer.name) / edited,
                at_least=TIMES_LESS[peer.name],
            )
        table.rows.append(row)


def _added(costs: dict[str, Costs], name: str) -> float:
    bare = costs[f"{name}-bare"] if f"{name}-bare" in costs else costs["rl-bare"]
    return costs[name].cpu_ms - bare.cpu_ms


def _cells(what: str, costs: dict[str, Costs], name: str) -> tuple[str, ...]:
    cost = costs[name]
    bare = costs[f"{name}-bare"] if f"{name}-bare" in costs else costs["rl-bare"]
    return (
        what,
        f"{cost.cpu_ms:.1f}",
        f"{cost.median_ms:.1f}",
        f"{bare.cpu_ms:.1f}",
        f"{cost.cpu_ms - bare.cpu_ms:.1f}",
        f"{cost.wall_ms - bare.wall_ms:.0f}",
    )


def _ours(run: Run) -> list[Contestant]:
    # The program runs in an environment of its own, as a user's does; rl is installed elsewhere.
    bare = install.bare(run.python)
    found = []
    for name in OURS:
        cwd, env = repository(run, name, BARE, bare)
        argv = (*run.rl, "--", "python", "train.py")
        stdout = Stdout.TERMINAL if name == "rl-terminal" else Stdout.FILE
        ours = _contestant(name, argv, cwd, env, BARE, stdout)
        found.append(ours if name == "rl-edited" else replace(ours, prepare=_nothing))
    cwd, env = repository(run, "rl-bare", BARE, bare)
    found.append(_contestant("rl-bare", ("python", "train.py"), cwd, env, BARE))
    return found


def _theirs(run: Run, peer: Peer) -> list[Contestant]:
    where = install.peer(peer.name, run.python)
    cwd, env = repository(run, peer.name, peer.script, where)
    peer.set_up(cwd, env)
    install.git(cwd, env, "add", "--all")
    install.git(cwd, env, "commit", "--quiet", "--allow-empty", "-m", "set up")
    measured = _contestant(peer.name, peer.argv, cwd, env, peer.script)
    measured.prepare(-1)
    spend(measured)
    if not list(cwd.glob(peer.leaves)):
        raise Unmeasured(f"it ran but left no {peer.leaves}")
    bare_cwd, bare_env = repository(run, f"{peer.name}-bare", BARE, where)
    return [
        measured,
        _contestant(f"{peer.name}-bare", ("python", "train.py"), bare_cwd, bare_env, BARE),
    ]


def _contestant(
    name: str,
    argv: tuple[str, ...],
    cwd: Path,
    env: dict[str, str],
    script: str,
    stdout: Stdout = Stdout.FILE,
) -> Contestant:
    return Contestant(
        name=name,
        argv=argv,
        cwd=cwd,
        env=env,
        stdout=stdout,
        prepare=_edit(cwd / "train.py", script),
        expect=SAID,
    )


def _nothing(_: int) -> None:
    """Leave the code as it is."""


def _edit(path: Path, script: str) -> Callable[[int], None]:
    return lambda number: _write(path, f"{script}# edit {number}\n")


def _write(path: Path, text: str) -> None:
    path.write_text(text)


def repository(run: Run, name: str, script: str, where: Path) -> tuple[Path, dict[str, str]]:
    """Make a small git repository with the program, and an environment with a home of its own."""
    home = run.work / f"home-{name}"
    home.mkdir()
    env = install.plain_environment(home, where)
    cwd = run.work / name
    cwd.mkdir()
    (cwd / "train.py").write_text(script)
    (cwd / "README.md").write_text("# One line\n")
    (cwd / ".gitignore").write_text("__pycache__/\nwandb/\nruns/\noutputs/\n")
    install.git(cwd, env, "init", "--quiet", "--initial-branch=main")
    install.git(cwd, env, "add", "--all")
    install.git(cwd, env, "commit", "--quiet", "-m", "one line")
    return cwd, env
