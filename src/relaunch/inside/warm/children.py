"""Keeps snapshots apart from the children that the program knows of.

A snapshot is forked by the program, so it is its child: who waits for any child would meet it. A
program whose sources speak of that has snapshots that are forked twice, and so are nobody's child.
Twice takes three times as long; for all others it is enough to end the snapshots when a library
waits for any child after all.
"""

from __future__ import annotations

import os
import signal

from . import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_WORDS = ("os.wait", "import wait", "waitpid", "waitid", "wait3", "wait4", "SIGCHLD", "children(",
          "num_workers")  # fmt: skip
"""Words of programs that may meet a child that they did not make."""
_waitpid = os.waitpid


def are_spoken_of(text: str) -> bool:
    """Tell whether a source looks as if it cared for children that it does not name."""
    return any(word in text for word in _WORDS)


def end(pids: set[int]) -> None:
    """End snapshots of ours, so that nobody meets them."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
            _waitpid(pid, 0)
        except (ChildProcessError, ProcessLookupError):
            pass
    pids.clear()


def watch(before: Callable[[], object]) -> None:
    """Have `before` called when the program is about to wait for any child, or to hear of one."""
    _wrap(os, "wait", lambda *_: True, before)
    _wrap(os, "wait3", lambda *_: True, before)
    _wrap(os, "wait4", lambda pid=-1, *_: pid <= 0, before)
    _wrap(os, "waitpid", lambda pid=-1, *_: pid <= 0, before)
    _wrap(os, "waitid", lambda kind=os.P_ALL, *_: kind in (os.P_ALL, os.P_PGID), before)
    _wrap(signal, "signal", lambda number=0, *_: number == signal.SIGCHLD, before)


def _holds(is_any: Callable[..., bool], args: tuple[Any, ...]) -> bool:
    try:
        return is_any(*args)
    except TypeError:  # the function itself will say so
        return False


def _wrap(
    module: Any, name: str, is_any: Callable[..., bool], before: Callable[[], object]
) -> None:
    real = getattr(module, name)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs or _holds(is_any, args):
            held.apart(before)
        return real(*args, **kwargs)

    call.__name__ = call.__qualname__ = name
    call.__doc__, call.__module__ = real.__doc__, module.__name__
    call.__annotations__ = {}
    setattr(module, name, call)
