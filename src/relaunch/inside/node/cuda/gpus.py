"""The GPUs that a rank seems to have: how many, how large, which is the current one."""

from __future__ import annotations

import os
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UNLIMITED_BYTES = 80 << 30
"""What each seems to have where nobody limits the rank."""
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Gpus(threading.local):
    """What is told of them; the current one is each thread's own, as with CUDA."""

    count = 1
    memory_bytes = 0
    """The limit of this rank; 0: none."""
    began_bytes = 0
    """What the process had when the rank began, of the kind that the limit counts."""
    began_resident = 0
    current = 0

    def visible(self) -> int:
        """Count those that the program lets itself see."""
        told = os.environ.get(_VISIBLE)
        if told is None:
            return Gpus.count
        words = [word.strip() for word in told.split(",")]
        return min(Gpus.count, len([word for word in words if word and word != "-1"]))


here = Gpus()


def begin(count: int, memory_bytes: int) -> None:
    """A rank begins: count what it takes from now on."""
    Gpus.count, Gpus.memory_bytes = count, memory_bytes
    Gpus.began_bytes, Gpus.began_resident = data_bytes(), resident_bytes()


def total_bytes() -> int:
    """Say how much memory each has."""
    return Gpus.memory_bytes or UNLIMITED_BYTES


def taken_bytes() -> int:
    """Say what this rank has taken since it began, of what the limit counts."""
    return max(0, data_bytes() - Gpus.began_bytes)


def data_bytes() -> int:
    """Return the private memory that may be written, of which RLIMIT_DATA is the limit."""
    return _status("VmData")


def resident_bytes() -> int:
    """Return the memory that is really there."""
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def peak_bytes() -> int:
    """Return the most that was there, since the start or the last `forget_peak`."""
    return _status("VmHWM")


def forget_peak() -> None:
    """Let the peak be counted anew."""
    try:
        with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")
    except OSError:  # a kernel without it: the peak stays what it was
        pass


def _status(name: str) -> int:
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
    return 0


def number_of(device: Any, torch: Any) -> int | None:
    """Return which GPU a script means by `cuda:3`, 3 or a device; -1: the CPU; None: another."""
    if isinstance(device, bool) or device is None:
        return None
    if isinstance(device, int):
        return device if device >= 0 else here.current
    if isinstance(device, str):
        device = torch.device(device)
    if not isinstance(device, torch.device):
        return None
    if device.type == "cpu":
        return -1
    if device.type != "cuda":
        return None
    return here.current if device.index is None else device.index
