"""Whether the GPU was touched: what a process has of it does not survive a fork.

Only the driver's own word counts, for any library may have initialised it. NVML, by which devices
can be counted, leaves a process able to fork.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MODULE = "torch.cuda"
FILES = "/dev/nvidia"
"""How the names of the driver's files begin."""
_DRIVER = "libcuda.so.1"
_IF_LOADED = 4 | 2  # RTLD_NOLOAD, RTLD_NOW
_NOT_INITIALISED = 3


def is_initialised() -> bool:
    """Tell whether the driver was initialised in this process."""
    torch: Any = sys.modules.get(MODULE)
    if torch is not None and getattr(torch, "_initialized", False):
        return True
    import ctypes

    try:
        driver = ctypes.CDLL(_DRIVER, mode=_IF_LOADED)
    except OSError:  # nobody has loaded it
        return False
    count = ctypes.c_int()
    return int(driver.cuDeviceGetCount(ctypes.byref(count))) != _NOT_INITIALISED


def count_gently(torch: Any) -> None:
    """Let `torch.cuda.is_available()` ask NVML: else it initialises the driver just to answer."""
    if hasattr(torch, "_nvml_based_avail"):
        torch._nvml_based_avail = lambda: True
