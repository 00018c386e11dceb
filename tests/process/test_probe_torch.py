"""Probes in programs of torch: compiled, scripted, in several ranks, in workers of a loader."""

from __future__ import annotations

import tempfile

from tests.depth import takes_turns
from tests.needs import python_with_torch

NET = """\
import sys, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 3, bias=False)
        torch.nn.init.ones_(self.lin.weight)
    def forward(self, x):
        h = self.lin(x)
        return h.sum()
for how in sys.argv[1:]:
    net, x = Net(), torch.ones(2, 4)
    if how == "script":
        net = torch.jit.script(net)
    elif how != "plain":
        torch._dynamo.reset()
        net = torch.compile(net, backend="eager", fullgraph=how == "fullgraph")
    print(net(x).item())
"""
LOADER = """\
import torch
class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, n):
        row = torch.full((2,), n)
        return row
if __name__ == "__main__":
    for batch in torch.utils.data.DataLoader(Rows(), num_workers=1):
        print(batch.sum().item())
"""


def values(done):
    return sorted(line.partition(" ")[2] for line in done.stderr.splitlines() if "=" in line)


@takes_turns
def test_a_tensor_is_shown_in_compiled_functions_too(world):
    python = python_with_torch()
    world.write("net.py", NET)
    ways = ("plain", "compile", "fullgraph")  # in one process: torch takes seconds to begin
    done = world.rl("probe", "net.py:8", "h", "--", python, "net.py", *ways)
    assert (done.returncode, done.stdout) == (0, "24.0\n" * 3), done.stderr
    assert done.stderr.count("net.py:8 h=(2, 3) float32 cpu grad") == 3
    assert "rl: net.py:8 hit 3 times" in done.stderr


@takes_turns
def test_what_a_full_graph_cannot_hold_is_said(world):
    python = python_with_torch()
    world.write("net.py", NET)
    done = world.rl("probe", "net.py:8", "self", "--", python, "net.py", "fullgraph")
    assert done.returncode == 1
    said = "rl: torch.compile(fullgraph=True) lets a probe show tensors and numbers only"
    assert done.stderr.splitlines()[-1] == said


def test_a_script_of_torch_runs_without_python(world):
    python = python_with_torch()
    world.write("net.py", NET)
    done = world.rl("where", "-q", "net.py:Net.forward", "--", python, "net.py", "script")
    assert "NOT CALLED: Net.forward was compiled by torch.jit from its source" in done.stdout


def test_workers_of_a_loader_are_probed(world):
    python = python_with_torch()
    world.write("rows.py", LOADER)
    # Workers pass tensors on by a socket there, whose path may have 107 characters.
    env = {"TMPDIR": tempfile.gettempdir()}
    done = world.rl("probe", "rows.py:6", "row", "--", python, "rows.py", env=env)
    assert done.stdout == "0\n2\n"
    lines = [line for line in done.stderr.splitlines() if "row=" in line]
    assert len(lines) == 2
    assert all(line.startswith("[") for line in lines)


def test_ranks_say_who_they_are(world):
    python = python_with_torch()
    world.write("rank.py", "import os\nrank = int(os.environ['RANK'])\nprint(rank)\n")
    torchrun = [python, "-m", "torch.distributed.run", "--nproc-per-node", "2", "rank.py"]
    env = {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1"}
    done = world.rl("probe", "rank.py:2", "rank", "--", *torchrun, env=env)
    said = sorted(line for line in done.stderr.splitlines() if "rank=" in line)
    assert said == ["[rank 0] rank.py:2 rank=0", "[rank 1] rank.py:2 rank=1"], done.stderr
    assert "rl: rank.py:2 hit 2 times in 2 processes" in done.stderr
