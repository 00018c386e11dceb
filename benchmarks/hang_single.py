"""One process instead of many: a script of several ranks with loader workers, by both ways."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Contestant, Cost, Unmeasured, spend
from benchmarks.table import Row, Table

RANKS, WORKERS = 8, 8
TRAIN = """
import os, sys
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

def note():
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")

class Rows(Dataset):
    def __len__(self):
        return 256
    def __getitem__(self, index):
        note()
        return torch.full((16,), float(index))

if __name__ == "__main__":
    note()
    dist.init_process_group("gloo")
    data = Rows()
    loader = DataLoader(data, 8, sampler=DistributedSampler(data), num_workers=int(sys.argv[1]),
                        persistent_workers=True, prefetch_factor=4)
    model = DDP(torch.nn.Linear(16, 1))
    for epoch in range(2):
        for batch in loader:
            loss = model(batch).mean()
            loss.backward()
    dist.barrier()
    print("trained", dist.get_rank())
    dist.destroy_process_group()
"""
POOL = """
import multiprocessing as mp, os
from concurrent.futures import ProcessPoolExecutor

def work(x):
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")
    return sum(range(x))

if __name__ == "__main__":
    context = mp.get_context("spawn")
    with context.Pool(8) as pool:
        pool.map(work, range(64))
    with ProcessPoolExecutor(8, mp_context=context) as executor:
        list(executor.map(work, range(64)))
    print("trained")
"""


def tables(run: Run) -> list[Table]:
    """Measure wall and CPU time and the number of processes, with and without."""
    rows = []
    try:
        launcher = str(Path(install.with_torch()).parent / "torchrun")
        (run.work / "train.py").write_text(TRAIN)
        words = ("--nproc-per-node", str(RANKS), "train.py", str(WORKERS))
        name = f"torchrun, {RANKS} ranks of {WORKERS} loader workers each"
        rows += _both(run, name, (launcher, *words), rounds=1, at_least=5)
    except Unmeasured as why:
        rows.append(Row(cells=("torchrun",), unmeasured=str(why)))
    (run.work / "pool.py").write_text(POOL)
    rows += _both(run, "Pool and ProcessPoolExecutor of 8, spawned", (sys.executable, "pool.py"),
                  rounds=min(run.rounds, 3), at_least=5)  # fmt: skip
    return [
        Table(
            name="single",
            title="rl run --single beside the processes it stands for",
            columns=("program", "way", "wall s", "CPU s", "processes"),
            rows=rows,
            figure="CPU, times less",
            notes=["The least of the runs; processes are those in which code of the program ran."],
        )
    ]


def _both(
    run: Run, name: str, command: tuple[str, ...], *, rounds: int, at_least: float
) -> list[Row]:
    as_ever, count = _least(run, "as ever", command, rounds)
    single = (*run.rl, "run", "--single", "-q", "--", *command)
    one, left = _least(run, "rl run --single", single, rounds)
    return [
        Row(cells=_cells(name, "as ever", as_ever, count)),
        Row(
            cells=_cells("", "rl run --single", one, left),
            ratio=as_ever.cpu_s / one.cpu_s,
            at_least=at_least,
        ),
    ]


def _cells(name: str, way: str, cost: Cost, count: int) -> tuple[str, ...]:
    return (name, way, f"{cost.wall_s:.1f}", f"{cost.cpu_s:.1f}", str(count))


def _least(run: Run, name: str, argv: tuple[str, ...], rounds: int) -> tuple[Cost, int]:
    """Run it so often; return the run with the least CPU time, and in how many processes it was."""
    pids = run.work / "pids"
    home = run.work / "home"
    home.mkdir(exist_ok=True)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PIDS": str(pids),
        "LC_ALL": "C.UTF-8",
    }
    found: list[tuple[Cost, int]] = []
    for _ in range(rounds):
        pids.write_text("")
        one = Contestant(name=name, argv=argv, cwd=run.work, env=env, expect="trained")
        cost = spend(one)
        found.append((cost, len(set(pids.read_text().split()))))
    if not found:
        raise Unmeasured("no round")
    return min(found, key=lambda pair: pair[0].cpu_s)
