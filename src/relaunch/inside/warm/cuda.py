"""Whether the GPU was touched: what a process has of it does not survive a fork.

Only the driver's own word counts, for any library may have initialised it. NVML, which tells about
devices, leaves a process able to fork.
"""

from __future__ import annotations

import os
import sys

from . import held, spine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

MODULE = "torch.cuda"
FILES = "/dev/nvidia"
"""How the names of the driver's files begin."""
_DRIVER = "libcuda.so.1"
_IF_LOADED = 4 | 2  # RTLD_NOLOAD, RTLD_NOW
_NOT_INITIALISED = 3
_COUNT, _BEGIN = "_cuda_getDeviceCount", "_cuda_init"


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


def watch(torch: Any, first_use: Callable[[FrameType], object]) -> None:
    """Let `first_use` know which frame initialises the driver; till then a child counts devices.

    To answer `is_available()`, torch would initialise the driver. `torch` is the module
    `torch.cuda`, just loaded.
    """
    core = vars(sys.modules["torch._C"])
    if _COUNT not in core:  # built without CUDA
        return
    count, begin = core[_COUNT], core[_BEGIN]
    known: list[int] = []

    def count_apart() -> int:
        if not is_initialised() and not known and not torch._is_in_bad_fork():
            known.extend(_from_child(count))
        return known[0] if known else int(count())

    def notice() -> None:
        held.apart(first_use, sys._getframe(1))
        begin()

    for name, new in ((_COUNT, count_apart), (_BEGIN, notice)):
        new.__name__ = new.__qualname__ = name
        core[name] = new
    torch._device_count_nvml = lambda: -1  # it asks the other one then


def _from_child(count: Callable[[], int]) -> list[int]:
    """Return what a child counted; nothing if it could not."""
    near, far = os.pipe()
    pid = spine.fork()
    if pid == 0:
        try:
            os.write(far, b"%d" % count())
        finally:
            os._exit(0)
    os.close(far)
    with open(near, "rb") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return [int(text)] if text else []
