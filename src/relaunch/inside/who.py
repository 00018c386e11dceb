"""Who speaks, where that is not plain: a rank, a worker of pytest, a child process."""

from __future__ import annotations

import os
import sys

from relaunch.inside.ranks import rank

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_first = os.getpid()
_getpid = os.getpid


def who() -> str:
    """Return `rank 1`, `gw0`, or the number of a child process; empty for a program alone."""
    number = rank()
    if number is not None:
        return f"rank {number}"
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker:
        return worker
    pid = _getpid()
    return str(pid) if pid != _first or _is_worker() else ""


def _is_worker() -> bool:
    processes: Any = sys.modules.get("multiprocessing.process")
    return processes is not None and processes.parent_process() is not None
