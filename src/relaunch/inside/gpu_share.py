"""Lets torch's own allocator have only so much of each GPU, in this process.

Weaker than held memory: other libraries, and other processes, take what they like.
"""

from __future__ import annotations

import os
import sys

from relaunch.inside.awaited import when_loaded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_open, _write, _close, _getpid = os.open, os.write, os.close, os.getpid


def begin() -> None:
    """Wait for torch.cuda."""
    shares, _, folder = os.environ.get("RELAUNCH_GPU", "").partition(":")
    asked = dict(share.split("=", 1) for share in shares.split(",") if "=" in share)
    if asked:
        when_loaded("torch.cuda", lambda cuda: _wait(cuda, asked, folder))


def _wait(cuda: ModuleType | Any, asked: dict[str, str], folder: str) -> None:
    """Act when the program begins with CUDA: not sooner, as it may want to fork before."""
    cuda._lazy_call(lambda: _limit(cuda, asked, folder))


def _limit(cuda: Any, asked: dict[str, str], folder: str) -> None:
    try:
        given = []
        for number in range(cuda.device_count()):
            bytes_ = asked.get(str(number), asked.get("*"))
            if bytes_ is not None:
                total = cuda.get_device_properties(number).total_memory
                cuda.set_per_process_memory_fraction(min(1.0, int(bytes_) / total), number)
                given.append(f"{number}={bytes_}")
        name = f"{folder}/gpu.{_getpid()}"
        file = _open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        _write(file, ",".join(given).encode("ascii"))
        _close(file)
    except Exception as error:
        sys.stderr.write(f"rl: GPU memory is not limited here: {error}\n")
