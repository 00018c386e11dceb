"""Ends all processes of a tree: asks first, so that who cleans up after others can do so."""

from __future__ import annotations

import time

from relaunch.proc.tree import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable, Iterable
else:
    import _signal

_ASKED_S, _END_S, _PAUSE_S = 1.0, 5.0, 0.01


def end(members: Callable[[], Iterable[int]]) -> None:
    """Ask all to end, and kill who does not; including who is born meanwhile."""
    for pid in members():
        send(pid, _signal.SIGTERM)
        send(pid, _signal.SIGCONT)
    asked_until = time.monotonic() + _ASKED_S
    until = asked_until + _END_S
    while (pids := list(members())) and time.monotonic() < until:
        if time.monotonic() > asked_until:
            for pid in pids:
                send(pid, _signal.SIGKILL)
        time.sleep(_PAUSE_S)
