"""Ranks that wait for each other in collectives that do not match."""

from __future__ import annotations

from tests.needs import python_with_torch

RANKS = """\
import socket
import sys
import time
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, port):
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    total = torch.ones(1)
    dist.all_reduce(total)
    if rank == 0:
        step_of_first(total)
    else:
        step_of_other(total)


def step_of_first(total):
    dist.all_reduce(total)


def step_of_other(total):
    if sys.argv[1:] == ["slow"]:
        time.sleep(6)
        dist.all_reduce(total)
    else:
        dist.recv(total, src=0)


if __name__ == "__main__":
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    mp.start_processes(work, args=(port,), nprocs=2, start_method="fork")
"""


def test_a_mismatch_of_collectives_is_certain_though_gloo_polls_and_has_a_time_limit(world):
    world.write("ranks.py", RANKS)
    done = world.rl("run", "--hang", "60", "--", python_with_torch(), "ranks.py")
    assert "hung (certain): 3 processes wait for each other (" in done.stderr
    for word in ("all_reduce", "recv", "until a time limit in ", "step_of_first", "step_of_other"):
        assert word in done.stderr


def test_a_rank_that_is_only_slow_is_waited_for(world):
    world.write("ranks.py", RANKS)
    python = python_with_torch()
    done = world.rl("run", "--hang", "60", "--", python, "ranks.py", "slow")
    assert done.returncode == 0, done.stderr


LOADER = """\
import threading
from torch.utils.data import DataLoader, Dataset

lock = threading.Lock()


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, row):
        with lock:
            return row


if __name__ == "__main__":
    with lock:
        for batch in DataLoader(Rows(), num_workers=2, multiprocessing_context="fork"):
            print(batch)
"""


def test_workers_that_were_forked_with_a_lock_are_certain_though_the_loader_looks_for_them(world):
    world.write("load.py", LOADER)
    done = world.rl("run", "--hang", "60", "--", python_with_torch(), "load.py")
    assert "hung (certain): 3 processes wait for each other (" in done.stderr
    assert "load.py:12 Rows.__getitem__" in done.stderr
