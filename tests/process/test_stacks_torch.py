"""rl stacks on a real hang: four gloo ranks of torch, one of which skips an all_reduce."""

from __future__ import annotations

import json
import re
import socket
import sys
from typing import Any

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch
from tests.stuck import Stuck
from tests.watching import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="read from /proc")

TRAIN = """
import torch
import torch.distributed as dist

def train_step(rank, step):
    gradient = torch.ones(4)
    if rank == 2 and step == 3:
        dist.barrier()
    dist.all_reduce(gradient)
    return gradient

def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    for step in range(10):
        if step == 3:
            print("ready", flush=True)
        train_step(rank, step)

main()
"""


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@takes_turns
def test_the_rank_that_skips_an_all_reduce_is_named_with_its_step_and_in_c_code_too(world):
    python = python_with_torch()
    world.write("train.py", TRAIN)
    env = {
        **world.env, "WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(),
        "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
    }  # fmt: skip
    each = [{"RANK": str(n)} for n in range(4)]
    with Stuck([[python, "train.py"]] * 4, cwd=world.project, env=env, each=each) as stuck:
        pids = [*map(str, stuck.pids)]

        def places() -> list[str]:
            found: dict[str, Any] = json.loads(world.rl("stacks", *pids, "--json").stdout)
            mains = (t for p in found["processes"] for t in p["threads"] if t["id"] == p["pid"])
            return sorted(f["function"] for t in mains for f in t["frames"] if f["function"] in
                          ("all_reduce", "barrier"))  # fmt: skip

        wait_for(lambda: places() == ["all_reduce"] * 3 + ["barrier"], "the hang")
        done = world.rl("stacks", *pids, "--locals")
        native = world.rl("stacks", *pids, "--native", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.strip() for line in done.stdout.splitlines()]
    (most,) = [line for line in lines if line.startswith("[3/4]")]
    (odd,) = [line for line in lines if line.startswith("[1/4]")]
    assert re.match(r"\[3/4\] ranks 0-1,3  train_step > all_reduce\b", most)
    assert re.match(r"\[1/4\] rank 2  train_step > barrier\b.*<- odd one out$", odd)
    assert "step = 3" in lines
    assert "rank = its own rank, in each" in lines
    assert "train.py:18 main" in lines
    (group,) = json.loads(native.stdout)["merged"]
    assert {one["read_by"] for one in json.loads(native.stdout)["processes"]} == {"py-spy"}
    stacks = [one for one in _ends(group["main"]) if "all_reduce" in one["functions"]]
    # Libraries lie at other addresses in every process, and still the three are one.
    assert [one["ranks"] for one in stacks] == [[0, 1, 3]]
    assert any("c10d" in name for name in stacks[0]["functions"])
    names = [re.sub("<module>|<locals>", "", name) for name in stacks[0]["functions"]]
    assert [name for name in names if re.search(r"0x[0-9a-f]+|[<>]", name)] == []


def _ends(branches: list[dict[str, Any]], before: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    found = []
    for one in branches:
        names = (*before, *(frame["function"] for frame in one["frames"]))
        found += [{**one, "functions": names}] if one["ends"] else []
        found += _ends(one["below"], names)
    return found
