"""Has a process of ours run as soon as it wakes, on a machine whose cores are all taken."""

from __future__ import annotations

import os
import struct

_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
_SLICE_NS = 100_000
_SIZE, _OTHER = 56, 0


def run_soon() -> None:
    """Go before all others where that is allowed; else ask for short turns, which come sooner."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except (OSError, AttributeError):
        _ask_for_short_turns()


def _ask_for_short_turns() -> None:
    """Since Linux 6.12 anybody may: who wants less at a time waits less for it."""
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is None:
        return
    import ctypes

    # size, policy, flags, nice, priority, runtime, deadline, period, least and most utilization
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    wish = struct.pack("IIQiIQQQII", _SIZE, _OTHER, 0, nice, 0, _SLICE_NS, 0, 0, 0, 0)
    ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, ctypes.c_char_p(wish), 0)
