"""Calls that fail with torch: in workers of a data loader, and far sooner the second time."""

import json
import sys
import tempfile
import time

from tests.conftest import World
from tests.depth import takes_turns
from tests.needs import python_with_torch

LOADER = """\
import torch
from torch.utils.data import DataLoader, Dataset

class Rows(Dataset):
    def __init__(self, rows):
        self.rows = rows
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        return self.rows[index] @ self.rows[0]

def main():
    rows = Rows([torch.ones(3), torch.ones(3), torch.ones(4)])
    for batch in DataLoader(rows, num_workers=1, multiprocessing_context="spawn"):
        print(batch.sum().item())

if __name__ == "__main__":
    main()
"""


@takes_turns
def test_the_item_that_a_spawned_worker_failed_on_is_replayed(warm: World):
    python = python_with_torch()
    warm.write("load.py", LOADER)
    # Workers pass tensors on by a socket there, whose path may have 107 characters.
    warm.env["TMPDIR"] = tempfile.gettempdir()
    began = time.monotonic()
    done = warm.rl("--", python, "load.py")
    program_s = time.monotonic() - began
    assert done.returncode == 1
    assert "RuntimeError: Caught RuntimeError in DataLoader worker process 0." in done.stderr
    found = json.loads(warm.rl("replay", "--list", "--json").stdout)["captures"]
    assert [one["who"] for one in found] == ["SpawnProcess-1", ""]
    first = json.loads(warm.rl("replay", "--json").stdout)
    assert first["verdict"] == "same"
    assert first["frame"]["qualname"] == "Rows.__getitem__"
    began = time.monotonic()
    again = json.loads(warm.rl("replay", "--json").stdout)
    took_s = time.monotonic() - began
    assert (again["verdict"], again["warm"]) == ("same", True)
    print(f"program {program_s:.2f} s, replay {took_s:.2f} s", file=sys.stderr)
    warm.write("load.py", LOADER.replace("@ self.rows[0]", "@ torch.ones(len(self.rows[index]))"))
    assert warm.rl("replay").returncode == 0
