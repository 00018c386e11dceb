"""Which of several processes that run the same program this one is."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LAUNCHERS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
"""What launchers tell: torchrun and accelerate, Open MPI, other MPIs, srun."""


def rank() -> int | None:
    """Return the rank of this process; None where there is one process only."""
    env = os.environ
    for name, count in _LAUNCHERS:
        number = env.get(name)
        if number is not None and number.isdecimal() and env.get(count, "1") not in ("1", ""):
            return int(number)
    return _told_to_torch()


def _told_to_torch() -> int | None:
    """Ask torch, where it was told in another way."""
    distributed: Any = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_initialized():
            return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    except Exception:
        pass
    return None
