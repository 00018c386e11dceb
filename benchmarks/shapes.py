"""What it costs a program that the shapes of all its arrays are looked at: a small GPT trains."""

from __future__ import annotations

import subprocess
from pathlib import Path
from statistics import median

from benchmarks import install, peeks
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

MODEL = """\
import math
import torch
import torch.nn.functional as F
from torch import nn
{head}

class Attention(nn.Module):
    def __init__(self, n_head, width):
        super().__init__()
        self.n_head = n_head
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
    {decorator}
    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.qkv(x).split(C, dim=2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        mask = torch.ones(T, T, dtype=torch.bool).tril()
        att = att.masked_fill(~mask, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = att @ v
        y = y.transpose(1, 2).reshape(B, T, C)
        return self.out(y)

class Block(nn.Module):
    def __init__(self, n_head, width):
        super().__init__()
        self.attn = Attention(n_head, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    {decorator}
    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        h = F.gelu(self.up(self.norm2(x)))
        x = x + self.down(h)
        return x

class GPT(nn.Module):
    def __init__(self, layers, n_head, width, vocab, length):
        super().__init__()
        self.token, self.place = nn.Embedding(vocab, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(n_head, width) for _ in range(layers))
        self.head = nn.Linear(width, vocab)
    {decorator}
    def forward(self, tokens, targets):
        B, T = tokens.shape
        x = self.token(tokens) + self.place(torch.arange(T))
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)
        loss = F.cross_entropy(logits.view(B * T, -1), targets.reshape(B * T))
        return loss
"""
TRAIN = """\
import sys, time
import torch
from {model} import GPT
torch.manual_seed(0)
torch.set_num_threads(1)
model = GPT(4, 4, 128, 65, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
tokens = torch.randint(0, 65, (8, 65))
steps = int(sys.argv[1])
def step():
    optimizer.zero_grad()
    loss = model(tokens[:, :-1], tokens[:, 1:])
    loss.backward()
    optimizer.step()
began = time.process_time()
for _ in range(steps):
    step()
ended = time.process_time()
print("took", (ended - began) / steps, ended)
"""
STEPS = 60
FEW = 2
"""Steps of what takes a second for each."""
NAMES = {
    "plain": "plain python",
    "shapes": "rl shapes, the whole model",
    "torchsnooper": "TorchSnooper on its forward methods",
    "pysnooper": "PySnooper on its forward methods",
}
SHOWS = {"shapes": "(B, n_head, T, T)", "torchsnooper": "tensor<(8, 4, 64, 64)", "pysnooper": "att"}
"""What says that a contestant looked at all."""
MOST = {"shapes": 1.2}


def of_a_model(run: Run) -> Table:
    """Time steps of a training, from the first one on, in processes that take turns."""
    peers = install.venv("probe-peers", run.python, peeks.NEEDS)
    folder = run.work / "shapes"
    folder.mkdir(exist_ok=True)
    for way, head in (("model", ""), ("torchsnooper", "import torchsnooper"),
                      ("pysnooper", "import pysnooper")):  # fmt: skip
        decorator = f"@{way}.snoop()" if head else ""
        name = f"{way}_model" if head else way
        (folder / f"{name}.py").write_text(MODEL.format(head=head, decorator=decorator))
        (folder / f"train_{name}.py").write_text(TRAIN.format(model=name))
    python, steps, few = str(peers / "python"), str(STEPS), str(FEW)
    plain = [python, "train_model.py", steps]
    commands = {
        "plain": plain,
        "shapes": [*run.rl, "shapes", "-q", "--dry-run", "model.py", "--", *plain],
        "torchsnooper": [python, "train_torchsnooper_model.py", few],
        "pysnooper": [python, "train_pysnooper_model.py", few],
    }
    took: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(run.rounds):
        for name, command in commands.items():
            took[name].append(_step_s(run, folder, name, command))
    run.samples["shapes"] = {
        name: [{"step_s": one, "whole_s": whole} for one, whole in times]
        for name, times in took.items()
    }
    return _table(took)


def _table(took: dict[str, list[tuple[float, float]]]) -> Table:
    table = Table(
        name="shapes",
        title="A model whose shapes are all looked at",
        columns=("way", "least ms a step", "median ms", "whole program s"),
        figure="times plain",
        notes=[
            f"CPU time of a step, forward, backward and update, on the average of {STEPS} from the "
            f"first one on ({FEW} of the snoopers'); one thread of torch; processes in turns. The "
            "whole program has its imports in it."
        ],
    )
    plain = min(took["plain"])[0]
    whole_plain = min(whole for _, whole in took["plain"])
    for name, times in took.items():
        steps, wholes = [one for one, _ in times], [whole for _, whole in times]
        cells = (NAMES[name], f"{min(steps) * 1e3:.1f}", f"{median(steps) * 1e3:.1f}",
                 f"{min(wholes):.2f}")  # fmt: skip
        ratio = min(steps) / plain if name != "plain" else None
        table.rows.append(Row(cells=cells, ratio=ratio, at_most=MOST.get(name)))
    ratio = min(whole for _, whole in took["shapes"]) / whole_plain
    table.rows.append(Row(cells=("rl shapes, the whole program",), ratio=ratio, at_most=1.2))
    return table


def _step_s(run: Run, folder: Path, name: str, command: list[str]) -> tuple[float, float]:
    """Return the CPU time of a step, and of the whole program."""
    env = install.plain_environment(run.work)
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    for line in done.stdout.splitlines():
        if line.startswith("took ") and SHOWS.get(name, "took") in said:
            step_s, whole_s = map(float, line.split()[1:])
            return step_s, whole_s
    raise Unmeasured(f"{NAMES[name]}: {said[-300:]}")
