"""What tests of the real command may ask for: `warm`, a world that has snapshots of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import World
from tests.slurming import cluster, slurm, slurm_alone, slurm_quiet
from tests.warming import end_all

__all__ = ["cluster", "slurm", "slurm_alone", "slurm_quiet", "warm"]


@pytest.fixture
def warm(world: World) -> Iterator[World]:
    """A world with a run folder of its own; no process may be left in it at the end."""
    run = world.root / "run"
    run.mkdir(mode=0o700)
    world.env["XDG_RUNTIME_DIR"] = str(run)
    yield world
    end_all(world)
