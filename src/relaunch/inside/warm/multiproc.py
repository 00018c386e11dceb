"""The books of `multiprocessing`: whose process made what, by a number that is another one now."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def rename(old: int) -> None:
    """Write our own number where that of the process stands that we were forked from."""
    new = os.getpid()
    process: Any = sys.modules.get("multiprocessing.process")
    for one in [*process._dangling] if process else ():
        if one._parent_pid == old:
            one._parent_pid = new
    util: Any = sys.modules.get("multiprocessing.util")
    for one in [*util._finalizer_registry.values()] if util else ():
        if one._pid == old:
            one._pid = new
    heap: Any = sys.modules.get("multiprocessing.heap")
    if heap and heap.BufferWrapper._heap._lastpid == old:
        heap.BufferWrapper._heap._lastpid = new
