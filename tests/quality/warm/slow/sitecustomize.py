"""Holds one side of each fork, and of each start of a thread, back: the other one is first."""

import os
import threading
import time

_SIDE = os.environ.pop("SLOW_SIDE", "")
_WAIT_S = {side: 0.1 if side == _SIDE else 0.0 for side in ("parent", "child")}
_start, _run = threading.Thread.start, threading.Thread.run


def _start_slowly(self: threading.Thread) -> None:
    _start(self)
    time.sleep(_WAIT_S["parent"])


def _run_slowly(self: threading.Thread) -> None:
    time.sleep(_WAIT_S["child"])
    _run(self)


if _SIDE:
    os.register_at_fork(
        after_in_parent=lambda: time.sleep(_WAIT_S["parent"]),
        after_in_child=lambda: time.sleep(_WAIT_S["child"]),
    )
    # Both on both sides: so that tracebacks are alike.
    threading.Thread.start = _start_slowly  # type: ignore[method-assign]
    threading.Thread.run = _run_slowly  # type: ignore[method-assign]
