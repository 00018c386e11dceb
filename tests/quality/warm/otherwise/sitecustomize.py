"""Holds one side of each fork, and of each start of a thread, back: the other one is first.

Or, as `SLOW_SIDE` says, neither: then both wait before each write, so that their lines alternate.
Or the first ones: of functions that threads call, the first wait longest, and the last overtake.
With `SPARE_LISTS`, Python has so many objects more, and collects cycles at other moments.
"""

import io
import itertools
import os
import sys
import threading
import time
from types import FrameType

_SIDE = os.environ.pop("SLOW_SIDE", "")
_SPARE: list[list[int]] = [[] for _ in range(int(os.environ.pop("SPARE_LISTS", "0")))]
_WAIT_S = {side: 0.1 if side == _SIDE else 0.0 for side in ("parent", "child")}
_start, _run = threading.Thread.start, threading.Thread.run
_calls = itertools.count()
_write_wait_s = 0.0


class _Stream(io.FileIO):
    def write(self, data):
        time.sleep(_write_wait_s)
        return super().write(data)


def _slow(stream: io.TextIOWrapper, fd: int) -> io.TextIOWrapper:
    raw = _Stream(fd, "wb", closefd=False)
    raw.name = stream.name
    new = io.TextIOWrapper(
        raw if stream.write_through else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        newline="\n",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    new.mode = "w"  # type: ignore[misc]
    return new


def _start_slowly(self: threading.Thread) -> None:
    _start(self)
    time.sleep(_WAIT_S["parent"])


def _run_slowly(self: threading.Thread) -> None:
    time.sleep(_WAIT_S["child"])
    _run(self)


def _forked(side: str) -> None:
    global _write_wait_s
    time.sleep(_WAIT_S[side])
    _write_wait_s = 0.02 if _SIDE == "neither" else 0.0


def _overtake(frame: FrameType, *_: object) -> None:
    """Hold back who calls a function of the program, in a thread, the less the more have."""
    if frame.f_code.co_filename.startswith(os.getcwd()):
        time.sleep(max(0.0, 0.1 - 0.03 * next(_calls)))


if _SIDE == "first":
    threading.settrace(_overtake)
if _SIDE:
    os.register_at_fork(
        after_in_parent=lambda: _forked("parent"), after_in_child=lambda: _forked("child")
    )
    # All on every side: so that tracebacks are alike.
    threading.Thread.start = _start_slowly  # type: ignore[method-assign]
    threading.Thread.run = _run_slowly  # type: ignore[method-assign]
    sys.stdout = sys.__stdout__ = _slow(sys.stdout, 1)  # type: ignore
    sys.stderr = sys.__stderr__ = _slow(sys.stderr, 2)  # type: ignore
