"""GPU memory that torch has given out in this process; torch is never imported nor begun here."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALL_EVERY = 64
"""Devices that hold nothing are asked only each so many times."""


class Gpu:
    """`now` and `high`, the most since the last `read`, in bytes over all devices; 0 without any.

    torch's own record is left alone, for the program may print it: so `high` is exact where it is a
    new record, and else what there was when it was read.
    """

    def __init__(self) -> None:
        """Begin without a device."""
        self.now = self.high = 0
        self._cuda: Any = None
        self._records: dict[int, int] = {}
        self._reads = 0

    def read(self) -> None:
        """Find what is given out, where the program has begun to use CUDA."""
        if self._cuda is None and self._find() is None:
            return
        try:
            self.now, self.high = self._measure()
        except Exception:  # as after a fork, where CUDA cannot be used
            self._cuda = None

    def wait(self) -> None:
        """Let the GPU finish what it was given, where one is used."""
        cuda = self._cuda or self._find()
        if cuda is not None:
            try:
                cuda.synchronize()
            except Exception:  # the program's own next call fails with it
                pass

    def _measure(self) -> tuple[int, int]:
        is_whole = self._reads % _ALL_EVERY == 0
        self._reads += 1
        devices = range(self._count) if is_whole else {*self._records, self._current()}
        now = high = 0
        for device in devices:
            stats = self._stats(device)["allocated_bytes"]["all"]
            held, record = stats["current"], stats["peak"]
            if record:
                now += held
                high += held if self._records.get(device) == record else max(held, record)
                self._records[device] = record
        return now, high

    def _find(self) -> Any:
        torch: Any = sys.modules.get("torch")
        cuda = getattr(torch, "cuda", None)
        try:
            if cuda is None or not cuda.is_initialized():
                return None
            self._stats = torch._C._cuda_memoryStats
            self._current = torch._C._cuda_getDevice
            self._count = int(cuda.device_count())
        except Exception:
            return None
        self._cuda = cuda
        return cuda
