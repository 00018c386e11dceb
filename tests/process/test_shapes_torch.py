"""`rl shapes` and torch: it sees arrays of every kind, and torch sees nothing of it."""

from __future__ import annotations

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch

MODEL = """\
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, n_head, width):
        super().__init__()
        self.n_head = n_head
        self.lin = nn.Linear(width, width)

    def forward(self, x):
        B, T, C = x.shape
        y = self.lin(x)
        y = y.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = y @ y.transpose(-2, -1)
        return y.sum(-1)


def helper(x):
    y = x * 2
    return y + 1
"""
NUMBERS = """\
import numpy as np


def numbers(n, m):
    a = np.zeros((n, m))
    b = a.T @ a
    return b.sum(0)
"""
TRACED = """\
import threading
import torch
from torch.utils.checkpoint import checkpoint
from model import Part, helper
torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(2, 8, 32, requires_grad=True)
whole = torch.compile(Part(4, 32), fullgraph=True, backend="eager")
print(whole(x).shape, whole(torch.randn(3, 8, 32)).shape)
print(torch.compile(helper, fullgraph=True, backend="eager")(torch.ones(3)).tolist())
import torch._dynamo.utils as utils
print(dict(utils.counters["stats"]), dict(utils.counters["graph_break"]))
print(str(torch.jit.trace(Part(4, 32), x).graph).count("aten::size"))
print([node.op for node in torch.fx.symbolic_trace(helper).graph.nodes])
print(torch.jit.script(helper)(torch.ones(2)).tolist())
print(len(list(torch.export.export(Part(4, 32), (x,)).graph.nodes)))
print(torch.vmap(helper)(torch.ones(3, 4)).shape)
print(torch.func.grad(lambda v: helper(v).sum())(x).shape)
with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
    print(Part(4, 32)(x).dtype)
checkpoint(Part(4, 32), x, use_reentrant=False).sum().backward()
print(x.grad.shape)
with torch.device("meta"):
    print(helper(torch.empty(5)).device)
threads = [threading.Thread(target=Part(4, 32), args=(torch.randn(n, 8, 32),)) for n in (5, 6, 7)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.fixture
def torch_python(world):
    python = python_with_torch()
    world.write("model.py", MODEL)
    world.write("traced.py", TRACED)
    world.commit()
    return python


@takes_turns
def test_torch_compiles_traces_and_exports_the_same(world, torch_python):
    plain = world.shell(f"{torch_python} traced.py")
    assert plain.returncode == 0, plain.stderr
    done = world.rl("shapes", "model.py", "--", torch_python, "traced.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == plain.stdout
    text = (world.project / "model.py").read_text()
    assert "y = y @ y.transpose(-2, -1)  # (B, n_head, T, T)\n" in text
    assert (
        "y = y.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)  # (B, n_head, T, C//n"
        in (text)
    )


@takes_turns
def test_what_is_only_compiled_is_told(world, torch_python):
    world.write("only.py", "import torch\nfrom model import helper\n"
                "print(torch.compile(helper, backend='eager')(torch.ones(3)))\n")  # fmt: skip
    done = world.rl("shapes", "model.py:helper", "--", torch_python, "only.py")
    assert done.returncode == 1
    assert "model.py: helper not seen: what torch.compile compiles is not looked at" in done.stderr
    again = world.rl("shapes", "--env", "TORCH_COMPILE_DISABLE=1", "model.py:helper")
    assert again.returncode == 0
    assert "y = x * 2  # (3,)" in (world.project / "model.py").read_text()


def test_arrays_of_numpy(world):
    world.write("rows.py", NUMBERS)
    world.write("np.py", "from rows import numbers\nnumbers(3, 5)\nnumbers(4, 7)\n")
    done = world.rl("shapes", "rows.py:numbers", "--", python_with_torch(), "np.py")
    assert done.returncode == 0, done.stderr
    text = (world.project / "rows.py").read_text()
    assert "a = np.zeros((n, m))  # (n, m)\n" in text
    assert "b = a.T @ a  # (m, m)\n" in text
    assert "return b.sum(0)  # (m,)\n" in text
