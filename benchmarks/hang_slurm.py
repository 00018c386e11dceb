"""Relaunches in a held allocation beside sbatch and plain srun; stacks of ranks on two nodes.

A real Slurm of four emulated nodes is started for it and stopped again; all are idle otherwise.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

_ROOT = Path(__file__).parent.parent
_NODES, _CPUS = 4, 16
_SBATCH, _SRUN = 10.0, 1 / 1.3
"""How much longer than rl they take at least."""
_WHO = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
_THEN = "import os, sys; os.execvp(sys.argv[1], sys.argv[1:])"
_RANKS = """\
import os, time
open(f"there-{os.environ['SLURM_PROCID']}", "w").close()
def all_reduce(): time.sleep(600)
def barrier(): time.sleep(600)
barrier() if os.environ["SLURM_PROCID"] == "5" else all_reduce()
"""


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slurm_script", _ROOT / "scripts" / "slurm.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tables(run: Run, rounds: int) -> list[Table]:
    """Measure both."""
    relaunching, training = (
        Table(
            name=name,
            title=f"A program that {does} in a Slurm allocation, from typing to its end",
            columns=("way", "seconds, median", "best"),
            figure="times as long as rl",
        )
        for name, does in (("slurm", "prints a line"), ("slurm-torch", "imports torch"))
    )
    stacks = Table(
        name="slurm-stacks",
        title="Stacks of 8 ranks on 2 nodes of Slurm, merged",
        columns=("way", "seconds, median", "best"),
        figure="seconds",
    )
    slurm = _script()
    folder = Path(tempfile.gettempdir()) / f"rl-slurm-bench-{os.getpid()}"
    why = slurm.up(folder, nodes=_NODES, cpus=_CPUS, while_pid=os.getpid())
    if why:
        for table in (relaunching, training, stacks):
            way = "rl stacks --slurm" if table is stacks else "rl run --slurm"
            table.rows.append(Row(cells=(way,), unmeasured=why.splitlines()[0]))
        return [relaunching, training, stacks]
    try:
        state = slurm.running(folder)
        sbin = f"{os.environ['PATH']}:/usr/sbin:/sbin"
        env = {**os.environ, "SLURM_CONF": state["conf"], "PATH": sbin}
        project = run.work / "slurm"
        project.mkdir()
        _relaunching(run, relaunching, env, project, max(15, rounds))
        _training(run, training, env, project, max(5, rounds))
        _stacks(run, stacks, env, project, rounds)
    finally:
        slurm.down(folder)
    return [relaunching, training, stacks]


def _relaunching(
    run: Run, table: Table, env: Mapping[str, str], project: Path, rounds: int
) -> None:
    (project / "job.sbatch").write_text(
        f"#!/bin/sh\n#SBATCH -n1 -t 9 -o /dev/null\n{run.rl_python} prog.py\n"
    )
    (project / "prog.py").write_text("print('there')\n")
    program = [run.rl_python, "prog.py"]
    for words in (["init", "-q"], ["add", "-A"], [*_WHO, "commit", "-q", "-m", "start"]):
        subprocess.run(["git", "-C", str(project), *words], check=True)
    _do([*run.rl, "alloc", "job.sbatch"], env, project)
    ways: dict[str, Callable[[], float]] = {
        "rl run --slurm": lambda: _do([*run.rl, "run", "--slurm", "--", *program], env, project),
        "srun": lambda: _do(["srun", "-n1", *program], env, project),
        "python -c pass, then srun": lambda: _do(
            [run.rl_python, "-c", _THEN, "srun", "-n1", *program], env, project
        ),
        "rl run, here": lambda: _do([*run.rl, "run", "--", *program], env, project),
        "sbatch --wait": lambda: _do(["sbatch", "--wait", "-Q", "job.sbatch"], env, project),
    }
    _in_turns(table, ways, rounds)
    _do([*run.rl, "alloc", "--release"], env, project)
    table.notes += [
        "srun has an allocation of its own each time; rl keeps a journal besides",
        "python -c pass, then srun: what a tool in Python that does nothing at all would take",
    ]


def _training(run: Run, table: Table, env: Mapping[str, str], project: Path, rounds: int) -> None:
    """Launch what people launch there: a program that is on its way for a second."""
    try:
        program = [install.with_torch(), "-c", "import torch"]
    except Unmeasured as why:
        table.rows.append(Row(cells=("rl run --slurm",), unmeasured=str(why)))
        return
    _do([*run.rl, "alloc", "--", "-n1", "-t9"], env, project)
    ways: dict[str, Callable[[], float]] = {
        "rl run --slurm": lambda: _do([*run.rl, "run", "--slurm", "--", *program], env, project),
        "srun": lambda: _do(["srun", "-n1", *program], env, project),
    }
    _in_turns(table, ways, rounds)
    _do([*run.rl, "alloc", "--release"], env, project)


def _in_turns(table: Table, ways: Mapping[str, Callable[[], float]], rounds: int) -> None:
    """Go each way in turns: what else the machine does meets all of them."""
    for way in ways.values():
        way()
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(way())
    ours = statistics.median(found["rl run --slurm"])
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        cells = (name, f"{middle:.3f}", f"{min(seconds):.3f}")
        least = {"sbatch --wait": _SBATCH, "srun": _SRUN}.get(name)
        ratio = middle / ours if name != "rl run --slurm" else None
        table.rows.append(Row(cells=cells, ratio=ratio, at_least=least))


def _stacks(run: Run, table: Table, env: Mapping[str, str], project: Path, rounds: int) -> None:
    (project / "ranks.py").write_text(_RANKS)
    _do([*run.rl, "alloc", "--", "-N2", "-n8", "-t9"], env, project)
    running = subprocess.Popen(
        [*run.rl, "run", "--slurm", "-q", "--", run.rl_python, "ranks.py"],
        env=env, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while len([*project.glob("there-*")]) < 8 and time.monotonic() < until:
            time.sleep(0.05)
        for name, more in (("rl stacks --slurm", ()), ("... with variables", ("--locals",))):
            words = [*run.rl, "stacks", "--slurm", *more]
            seconds = [_do(words, env, project, _saw_all) for _ in range(max(3, rounds))]
            middle = statistics.median(seconds)
            cells = (name, f"{middle:.2f}", f"{min(seconds):.2f}")
            table.rows.append(Row(cells=cells, ratio=middle, at_most=2.0))
    finally:
        running.terminate()
        running.wait(30)
        _do([*run.rl, "alloc", "--release"], env, project)


def _saw_all(text: str) -> bool:
    """Tell whether stacks are of all ranks: seven in one place, and the odd one out."""
    return "7/8" in text and "1/8" in text and "all_reduce" in text and "barrier" in text


def _do(
    words: list[str],
    env: Mapping[str, str],
    cwd: Path,
    is_right: Callable[[str], bool] = lambda _: True,
) -> float:
    """Run it to its end; returns what that took. What it says must be right."""
    began = time.perf_counter()
    done = subprocess.run(words, env=env, cwd=cwd, capture_output=True, check=False, timeout=120)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr.decode(errors='replace')}")
    if not is_right(said := done.stdout.decode(errors="replace")):
        raise RuntimeError(f"{words} does not say what it should: {said}")
    return took
