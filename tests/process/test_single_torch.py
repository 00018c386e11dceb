"""`rl run --single` and torch: loaders give the same batches, ranks are a world of one.

Torch starts slowly, so few programs do much.
"""

import json

from tests.depth import takes_turns
from tests.needs import python_with_torch

LOADERS = '''\
"""Prints what loaders with workers give, drawn at random in the workers and in the program."""
import os, random
import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

class Noisy(Dataset):
    def __init__(self, fails_at=None):
        self.fails_at, self.seen = fails_at, 0

    def __len__(self):
        return 22

    def __getitem__(self, index):
        if index == self.fails_at:
            raise ValueError(f"row {index} is bad")
        info = get_worker_info()
        self.seen += 1
        note()
        return torch.tensor([index, info.id, info.num_workers, self.seen, self.base,
                             torch.rand(()), random.random(), np.random.rand()])

class Shards(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id, 13, info.num_workers):
            yield torch.tensor([number, info.id, torch.rand(())])

class Stateful(IterableDataset):
    """As in torch's own documentation: each worker sets its part of its copy."""
    start, end = 0, 11

    def __iter__(self):
        return iter(range(self.start, self.end))

def part(worker_id):
    info = get_worker_info()
    each = -(-info.dataset.end // info.num_workers)
    info.dataset.start = worker_id * each
    info.dataset.end = min(info.dataset.start + each, info.dataset.end)

def base(worker_id):
    get_worker_info().dataset.base = worker_id * 10

def note():
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")

class Drawing(torch.utils.data.Sampler):
    """Draws each index from the program's own random numbers, ahead of time."""
    def __iter__(self):
        for _ in range(9):
            yield int(torch.randint(22, ()))

    def __len__(self):
        return 9

def show(name, loader):
    for batch in loader:
        print(name, np.round(np.asarray(batch, dtype=float), 6).tolist(), float(torch.rand(())))

if __name__ == "__main__":
    torch.manual_seed(3); random.seed(3); np.random.seed(3)
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=3, worker_init_fn=base,
                        prefetch_factor=3, timeout=300, multiprocessing_context="fork")
    show("plain", loader)
    show("again", loader)
    print(loader.num_workers, loader.prefetch_factor, len(loader), get_worker_info())
    loader = DataLoader(Noisy(), 5, num_workers=2, worker_init_fn=base, persistent_workers=True)
    show("stays", loader)
    show("stays", loader)
    show("shards", DataLoader(Shards(), batch_size=2, num_workers=3))
    show("parts", DataLoader(Stateful(), batch_size=2, num_workers=3, worker_init_fn=part))
    show("drawn", DataLoader(Noisy(), 2, sampler=Drawing(), num_workers=2, worker_init_fn=base))
    print("after", torch.rand(()), random.random(), np.random.rand(), flush=True)
    show("fails", DataLoader(Noisy(fails_at=9), 4, num_workers=2, worker_init_fn=base))
'''
TRAIN = '''\
"""An ordinary script for eight GPUs."""
import argparse, os, time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

def note():
    with open(os.environ["PIDS"], "a") as file:
        file.write(f"{os.getpid()}\\n")

def square(x):
    note()
    return x * x

def train(workers):
    note()
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.arange(32.0)[:, None])
    loader = DataLoader(data, 8, sampler=DistributedSampler(data), num_workers=workers,
                        persistent_workers=True, prefetch_factor=4)
    model = DDP(torch.nn.Linear(1, 1))
    for epoch in range(2):
        for (batch,) in loader:
            loss = model(batch).mean()
            loss.backward()
    dist.all_reduce(loss)
    dist.barrier()
    with mp.Pool(4) as pool:
        print("pool", pool.map(square, range(4)))
    print("rank", rank, "of", size, os.environ["WORLD_SIZE"], dist.get_backend(), len(loader))
    dist.destroy_process_group()

def ranked(rank, size, port):
    """Spawned as examples have it: with a world of its own in mind."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "localhost", str(port)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    mine = torch.full((2,), float(rank))
    all_of_them = [torch.zeros(2) for _ in range(size)]
    dist.all_gather(all_of_them, mine)
    objects = [None] * size
    dist.all_gather_object(objects, rank)
    mesh = dist.device_mesh.init_device_mesh("cuda", (2, 4), mesh_dim_names=("a", "b"))
    assert mesh.shape == (1, 1), mesh
    group = dist.new_group([0, 1])
    dist.all_reduce(mine, group=group)
    print("ranked", rank, dist.get_world_size(), len(all_of_them), objects)

def sharded(number, results):
    results.append(number)
    print("sharded", number)

def met(number, queue, barrier):
    barrier.wait()
    queue.put(number)

def fails(rank, size):
    raise ValueError(f"rank {rank} is bad")

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int)
    train(parser.parse_args().workers)
    mp.spawn(ranked, args=(8, 29811), nprocs=8)
    print("port in the program:", os.environ["MASTER_PORT"], dist.is_initialized())
    for rank in range(4):  # ranks by hand
        process = mp.Process(target=ranked, args=(rank, 4, 29812))
        process.start()
        process.join()
        print("by hand", rank, process.exitcode, dist.is_initialized())
    mp.spawn(sharded, args=([],), nprocs=3)
    queue, barrier = mp.get_context("spawn").Queue(), mp.get_context("spawn").Barrier(3)
    mp.spawn(met, args=(queue, barrier), nprocs=3)
    print("met", sorted(queue.get(timeout=300) for _ in range(3)))
    mp.spawn(fails, args=(8,), nprocs=8)

if __name__ == "__main__":
    main()
'''


@takes_turns
def test_loaders_give_the_same_batches_without_workers_and_fail_at_the_same_one(world):
    python = python_with_torch()
    world.write("loaders.py", LOADERS)
    pids = world.root / "pids"
    env = {"PIDS": str(pids), "TMPDIR": "/tmp"}  # names of sockets are short
    real = world.rl("--", python, "loaders.py", env=env)
    assert "after" in real.stdout, real.stderr
    assert len(set(pids.read_text().split())) > 5
    pids.unlink()
    done = world.rl("run", "--single", "--", python, "loaders.py", env=env)
    assert done.stdout == real.stdout
    assert len(set(pids.read_text().split())) == 1
    assert real.returncode == done.returncode == 1
    assert "same failure as #1" in done.stderr
    assert "ValueError: row 9 is bad" in done.stderr
    assert "Original Traceback" in real.stderr
    assert "Original Traceback" not in done.stderr
    assert {(one["what"][:25], one["times"]) for one in _collapsed(world)} == {
        ("DataLoader with 3 workers", 4),
        ("DataLoader with 2 workers", 3),
    }
    assert "in turn (4 times)   loaders.py:" in done.stderr


@takes_turns
def test_eight_ranks_of_torchrun_with_workers_pools_and_spawns_are_one_process(world):
    python = python_with_torch()
    world.write("train.py", TRAIN)
    pids = world.root / "pids"
    folder = python.rpartition("/")[0]
    env = {"PIDS": str(pids), "TMPDIR": "/tmp", "PATH": f"{folder}:{world.env['PATH']}"}
    command = ["torchrun", "--nproc-per-node", "8", "train.py", "--workers", "8"]
    done = world.rl("run", "--single", "--", *command, env=env)
    assert done.stdout.splitlines() == [
        "pool [0, 1, 4, 9]",
        "rank 0 of 1 1 gloo 4",
        "ranked 0 1 8 [0, 0, 0, 0, 0, 0, 0, 0]",
        "port in the program: 29500 False",
        "ranked 0 1 4 [0, 0, 0, 0]",
        *[f"by hand {rank} 0 False" for rank in range(4)],
        *[f"sharded {number}" for number in range(3)],
        "met [0, 1, 2]",
    ], done.stderr
    assert done.returncode == 1
    assert f"{_at('is bad')} ValueError: rank 0 is bad" in done.stderr
    assert len(set(pids.read_text().split())) == 1
    told = [(one["what"], one["where"]) for one in _collapsed(world)]
    assert ("torchrun: 8 processes -> 1, a world of one", "the command") in told
    assert (
        "init_process_group by nccl -> by gloo, as it is not here",
        _at('group("nccl")'),
    ) in told
    assert ("DataLoader with 8 workers -> this process, in turn", _at("in loader")) in told
    assert ("Pool of 4 processes -> this one", _at("mp.Pool(4)")) in told
    assert ("spawn of 8 ranks -> rank 0 only, called here", _at("spawn(ranked")) in told
    assert any("rank 3 of 4 -> not run" in what for what, _ in told)
    failed = "spawn of 8 processes -> called here; number 0 failed"
    assert (failed, _at("spawn(fails")) in told
    kept = json.loads(world.rl("show", "--json").stdout)
    assert kept["start"]["command"] == command


def test_a_launcher_in_a_script_of_a_shell_becomes_the_one_program(world):
    python = python_with_torch()
    world.write("run.sh", f"exec {python} -m torch.distributed.run --nproc-per-node 4 one.py a\n")
    world.write("one.py", "import os, sys\nprint(os.environ['WORLD_SIZE'], sys.argv)\n")
    done = world.rl("run", "--single", "--", "sh", "run.sh")
    assert done.stdout == "1 ['one.py', 'a']\n", done.stderr
    assert "a launcher of 4 processes -> 1, a world of one   in the program" in done.stderr


def test_sync_alone_takes_the_workers_of_loaders_away_and_nothing_else(world):
    python = python_with_torch()
    world.write(
        "p.py",
        "import multiprocessing as mp, os, torch\n"
        "from torch.utils.data import DataLoader\n"
        "class Pids(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, index): return os.getpid()\n"
        "if __name__ == '__main__':\n"
        "    print({int(x) for x in DataLoader(Pids(), num_workers=2)} == {os.getpid()})\n"
        "    with mp.Pool(1) as pool: print(pool.apply(os.getpid) == os.getpid())\n",
    )
    done = world.rl("run", "--sync", "--", python, "p.py")
    assert done.stdout == "True\nFalse\n", done.stderr
    assert "single: DataLoader with 2 workers -> this process, in turn   p.py:7" in done.stderr


def _at(words):
    """Name the line of the script with these words."""
    lines = TRAIN.splitlines()
    return f"train.py:{next(n for n, line in enumerate(lines, 1) if words in line)}"


def _collapsed(world):
    kept = json.loads(world.rl("show", "--json").stdout)
    return kept["collapsed"]
