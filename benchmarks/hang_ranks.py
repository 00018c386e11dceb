"""An 8-GPU script without a GPU: how soon it has run, with which loss and memory; 256 ranks."""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import install
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

RANKS = 8
MANY = 256
COLD, WARM = 5.0, 20.0
"""How many times sooner than as many cold processes it is to be done."""
NAMED_S = 5.0
_LONGEST_S = 600.0

TRAIN = """\
import os, torch, torch.distributed as dist, torch.nn as nn
from torch.nn.parallel import DistributedDataParallel as DDP
has = torch.cuda.is_available()
rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank) if has else torch.device("cpu")
if has:
    torch.cuda.set_device(device)
dist.init_process_group("nccl" if has else "gloo")
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.Linear(64, 1))
model = DDP(model.to(device), device_ids=[rank] if has else None)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
draw = torch.Generator().manual_seed(rank)
for step in range(10):
    x = torch.randn(32, 64, generator=draw).to(device)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
total = loss.detach().clone()
dist.all_reduce(total)
with open("/proc/self/smaps_rollup") as file:
    facts = dict(line.split()[:2] for line in file if line.startswith(("Pss:", "Rss:")))
print(f"loss {total.item():.9f} pss {facts['Pss:']} rss {facts['Rss:']}", flush=True)
dist.barrier()
dist.destroy_process_group()
"""
MISMATCH = """\
import torch, torch.distributed as dist
dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
x = torch.ones(4, device="cuda")
for step in range(3):
    if (rank, step) == (77, 2):
        dist.barrier()
    else:
        dist.all_reduce(x)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """One run of all ranks: seconds, the losses that were told, and the memory of each."""

    took_s: float
    losses: frozenset[str]
    pss_mb: float
    rss_mb: float


def tables(run: Run) -> list[Table]:
    """Measure both tables."""
    python = install.with_torch()
    folder = run.work / "ranks"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "mismatch.py").write_text(MISMATCH)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    runtime = run.work / "runtime"
    runtime.mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(runtime), "OMP_NUM_THREADS": "1"}
    env["PATH"] = f"{os.path.dirname(python)}{os.pathsep}{env['PATH']}"
    try:
        return [_ranks(run, folder, env), _threads(run, folder, env)]
    finally:
        _stop(run, folder, env)


def _ranks(run: Run, folder: Path, env: Mapping[str, str]) -> Table:
    table = Table(
        name="ranks",
        title=f"A script of {RANKS} ranks, 10 steps of DDP, without a GPU",
        columns=("how", "median s", "least s", "loss", "PSS of a rank", "RSS of a rank"),
        figure="times sooner",
    )
    cold: list[Ended] = []
    first: list[Ended] = []
    warm: list[Ended] = []
    for _ in range(run.rounds):
        cold.append(_as_processes(folder, env))
        _stop(run, folder, env)
        first.append(_as_ranks(run, folder, env))
        warm.append(_as_ranks(run, folder, env))
    best = statistics.median(one.took_s for one in cold)
    every = frozenset().union(*(one.losses for one in (*cold, *first, *warm)))
    right = cold[0].losses
    for name, found, at_least in (
        (f"{RANKS} cold processes, gloo", cold, None),
        (f"rl run --ranks {RANKS}, the first time", first, COLD),
        (f"rl run --ranks {RANKS}, again", warm, WARM),
    ):
        took = [one.took_s for one in found]
        losses = frozenset().union(*(one.losses for one in found))
        table.rows.append(
            Row(
                cells=(
                    name,
                    f"{statistics.median(took):.2f}",
                    f"{min(took):.2f}",
                    ", ".join(sorted(losses)),
                    f"{statistics.median(one.pss_mb for one in found):.0f} MB",
                    f"{statistics.median(one.rss_mb for one in found):.0f} MB",
                ),
                # Another loss is another computation: however quick it was, that is a miss.
                ratio=best / statistics.median(took)
                if losses == right and len(right) == 1
                else 0.0,
                at_least=at_least,
            )
        )
    word = "the same loss" if len(every) == 1 else "NOT the same loss"
    table.notes.append(f"all ranks of all runs told {word}: {', '.join(sorted(every))}")
    table.notes.append("wall clock to the end of the command, on one core; all take turns")
    return table


def _threads(run: Run, folder: Path, env: Mapping[str, str]) -> Table:
    table = Table(
        name="mismatch",
        title=f"One of {MANY} ranks calls another collective",
        columns=("how", "median s", "named"),
        figure="s to the name",
    )
    for name, is_cold in (("the first time", True), ("again", False)):
        took, named = [], 0
        for _ in range(run.rounds):
            if is_cold:
                _stop(run, folder, env)
            words = ["run", "--ranks", str(MANY), "--threads", "--", "python", "mismatch.py"]
            began = time.monotonic()
            done = _rl(run, words, folder, env)
            took.append(time.monotonic() - began)
            said = done.stderr
            named += "[1/256] rank 77: barrier" in said and "[255/256]" in said
        median = statistics.median(took)
        cells = (f"rl run --ranks {MANY} --threads, {name}", f"{median:.2f}",
                 f"{named} of {len(took)}")  # fmt: skip
        # Only a run that names the odd rank counts as one that does so in time.
        ratio = median if named == len(took) else float("inf")
        table.rows.append(Row(cells=cells, ratio=ratio, at_most=NAMED_S))
    return table


def _as_processes(folder: Path, env: Mapping[str, str]) -> Ended:
    """Start all ranks as torchrun does, each with an import of its own."""
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        port = link.getsockname()[1]
    began = time.monotonic()
    ranks = []
    for rank in range(RANKS):
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(RANKS),
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
               "GLOO_SOCKET_IFNAME": "lo"}  # fmt: skip
        ranks.append(
            subprocess.Popen(["python", "train.py"], cwd=folder, env={**env, **own},
                             stdout=subprocess.PIPE, text=True, preexec_fn=_on_one_core)
        )  # fmt: skip
    said = "".join(one.communicate(timeout=_LONGEST_S)[0] for one in ranks)
    return _read(said, time.monotonic() - began)


def _as_ranks(run: Run, folder: Path, env: Mapping[str, str]) -> Ended:
    began = time.monotonic()
    words = ["run", "--ranks", str(RANKS), "--", "python", "train.py"]
    done = _rl(run, words, folder, env, _on_one_core)
    if done.returncode:
        raise Unmeasured(f"rl run --ranks ended with {done.returncode}: {done.stderr[-300:]}")
    return _read(done.stdout, time.monotonic() - began)


def _rl(
    run: Run,
    words: Sequence[str],
    folder: Path,
    env: Mapping[str, str],
    before: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*run.rl, *words], cwd=folder, env=env, capture_output=True, text=True,
        stdin=subprocess.DEVNULL, timeout=_LONGEST_S, check=False, preexec_fn=before,
    )  # fmt: skip


def _on_one_core() -> None:
    """Have the same for all: with as many cores as ranks, cold processes only waste them."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def _stop(run: Run, folder: Path, env: Mapping[str, str]) -> None:
    _rl(run, ["warm", "stop", "--all"], folder, env)


def _read(said: str, took_s: float) -> Ended:
    found = re.findall(r"loss (\S+) pss (\d+) rss (\d+)", said)
    if len(found) != RANKS:
        raise Unmeasured(f"{len(found)} of {RANKS} ranks told a loss: {said[-300:]}")
    return Ended(
        took_s=took_s,
        losses=frozenset(loss for loss, _, _ in found),
        pss_mb=statistics.median(int(pss) / 1024 for _, pss, _ in found),
        rss_mb=statistics.median(int(rss) / 1024 for _, _, rss in found),
    )
