"""A kept call made smaller is replayed by the real `rl replay`, and fails the same way."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import World
from tests.needs import python_with_torch
from tests.unit.search.shrink.formats.searched import shrink

from relaunch.errors import UsageError
from relaunch.search.shrink.formats import captured

PROGRAM = """\
import numpy as np

class Settings:
    def __init__(self):
        self.rate, self.names = 0.5, ["a", "b", "c"]

def loss(x, y, names, settings):
    if len(x) != len(y):
        raise TypeError("lengths differ")
    if np.isnan(x).any() and settings.rate is not None:
        raise ValueError("loss is nan")

def main():
    x, y = np.ones((90, 30)), np.zeros(90, dtype=np.int64)
    x[33, 7] = np.nan
    loss(x, y, [f"n{i}" for i in range(200)], Settings())

if __name__ == "__main__":
    main()
"""
WITH_TORCH = PROGRAM.replace("import numpy as np", "import torch as np").replace(
    "np.zeros(90, dtype=np.int64)", "np.zeros(90, dtype=np.bfloat16)"
)


class Replayed:
    """Replays what a model writes in the place of what a trial kept."""

    def __init__(self, world: World) -> None:
        self.world = world
        (self.folder,) = (world.journal / "trials" / "1" / "capture").iterdir()
        self.original = self.folder.parent.parent / "original"
        shutil.copytree(self.folder, self.original)

    def fails(self, model: Any) -> bool:
        shutil.rmtree(self.folder)
        model.write(str(self.folder))
        done = self.world.rl("replay", "--trust")
        return done.returncode == 1 and "still fails" in done.stderr


def failed(warm: World, python: str, program: str) -> Replayed:
    warm.write("train.py", program)
    done = warm.rl("--", python, "train.py")
    assert done.returncode == 1, done.stderr
    assert "loss is nan" in done.stderr
    assert warm.rl("replay").returncode == 1
    return Replayed(warm)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_kept_call_becomes_one_row_and_still_fails(warm: World) -> None:
    replayed = failed(warm, sys.executable, PROGRAM)
    before = contents(replayed.original)
    model = captured.read(str(replayed.original))
    assert replayed.fails(model)

    done = shrink(model, replayed.fails, most=60)

    assert replayed.fails(done.model)
    shapes = sorted(array.shape for array in done.model.arrays.values())
    assert shapes == [(1,), (1, 1)]
    assert done.model.bytes * 50 < model.bytes
    assert (replayed.folder / "memory").stat().st_size <= 128
    assert contents(replayed.original) == before


def test_tensors_of_a_kept_call_are_cut_together(warm: World) -> None:
    replayed = failed(warm, python_with_torch(), WITH_TORCH)
    model = captured.read(str(replayed.original))
    row = {name: array.taking(0, (33,)) for name, array in model.arrays.items()}
    assert {array.dtype for array in row.values()} == {"f4", "bf"}
    wide = next(name for name, array in row.items() if array.dtype == "f4")
    assert replayed.fails(model.with_arrays(row))
    assert not replayed.fails(model.with_arrays({wide: row[wide]}))
    assert not replayed.fails(model.with_arrays({**row, wide: row[wide].taking(1, (3, 4))}))


def test_what_is_no_kept_call_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no kept call"):
        captured.read(str(tmp_path))
