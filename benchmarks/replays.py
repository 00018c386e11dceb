"""How long a replay of the failed call takes beside the program that failed."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from statistics import median

from benchmarks import install, peeks
from benchmarks.run import Run
from benchmarks.spend import Unmeasured
from benchmarks.table import Row, Table

PROGRAM = """\
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(256, 512), nn.Linear(500, 4)

    def forward(self, x):
        hidden = self.up(x).relu()
        return self.down(hidden)

def prepare():
    torch.manual_seed(0)
    return torch.empty({rows}, 256).normal_()

def main():
    table = prepare()
    model = Head()
    print("prepared", flush=True)
    for step in range(10):
        model(table[step * 8 : step * 8 + 8])

if __name__ == "__main__":
    main()
"""
ROWS = 1_000_000
LEAST = 10.0
FAILS = 1


def of_a_model(run: Run) -> Table:
    """Fail once, then take turns: the program, and the call that failed, alone."""
    python = str(install.venv("probe-peers", run.python, peeks.NEEDS) / "python")
    folder = run.work / "replays"
    folder.mkdir(exist_ok=True)
    (folder / "train.py").write_text(PROGRAM.format(rows=ROWS // (10 if run.quick else 1)))
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    commands = {
        "program": [python, "train.py"],
        "fresh": [*run.rl, "replay", "--fresh"],
        "warm": [*run.rl, "replay"],
    }
    names = {
        "program": "the program, to its failure",
        "fresh": "rl replay --fresh: imports everything itself",
        "warm": "rl replay: beside imports that are there",
    }
    _spent(run, folder, [*run.rl, "-q", "--", python, "train.py"])
    for name in ("fresh", "warm", "warm"):  # the search for the call, and the imports
        _spent(run, folder, commands[name])
    took: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(max(3, run.rounds // 3)):
        for name, command in commands.items():
            took[name].append(_spent(run, folder, command))
    run.samples["replay"] = {name: [{"s": one} for one in times] for name, times in took.items()}
    table = Table(
        name="replay",
        title="The call that failed, alone",
        columns=("way", "median s"),
        figure="times sooner",
        notes=["Wall time of the whole command. A program that imports torch and makes 1 GB."],
    )
    whole = median(took["program"])
    for name, times in took.items():
        ratio = whole / median(times) if name != "program" else None
        at_least = LEAST if name == "warm" else None
        cells = (names[name], f"{median(times):.2f}")
        table.rows.append(Row(cells=cells, ratio=ratio, at_least=at_least))
    return table


def _spent(run: Run, folder: Path, command: list[str]) -> float:
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env=install.plain_environment(run.work),
        capture_output=True,
        text=True,
        check=False,
    )
    spent = time.monotonic() - began
    if done.returncode != FAILS or not re.search("shapes cannot be multiplied", done.stderr):
        raise Unmeasured(f"{' '.join(command)}: {(done.stdout + done.stderr)[-300:]}")
    return spent
