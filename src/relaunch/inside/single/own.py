"""What a process has for itself: its folder, environment, streams and random numbers.

A thread that stands for a process has its own, which are in place while it has its turn; what it
does to them does not reach the program, as it would not from another process.
"""

from __future__ import annotations

import os
import random
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_getcwd, _chdir = os.getcwd, os.chdir


_lock = threading.Lock()
_placed: list[Own] = []
"""Whose state is in place, the innermost last."""


class Own:
    """The state of one stand-in; `enter` puts it in place, `leave` the program's own back."""

    def __init__(self) -> None:
        """Begin with what the program has now, as a fork does."""
        self._mine = _taken()
        self._theirs: dict[str, Any] | None = None

    def enter(self, around: Own | None) -> None:
        """Put it in place, for what is `around` it; where others run at once, nothing is."""
        with _lock:
            if self._theirs is None and (_placed[-1] if _placed else None) is around:
                _placed.append(self)
                self._theirs = _taken()
                _put(self._mine, self._theirs)

    def leave(self) -> None:
        """Keep it for the next turn, and put back what was there."""
        with _lock:
            if self._theirs is not None:
                self._mine, theirs = _taken(), self._theirs
                self._theirs = None
                _placed.remove(self)
                _put(theirs, self._mine)


def _taken() -> dict[str, Any]:
    state: dict[str, Any] = {
        "environ": dict(os.environ._data),  # type: ignore[attr-defined]  # unread, so quick
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "random": random.getstate(),
    }
    try:
        state["cwd"] = _getcwd()
    except OSError:
        state["cwd"] = None
    for name, (get, _) in _generators().items():
        state[name] = get()
    return state


def _put(state: dict[str, Any], now: dict[str, Any]) -> None:
    if state["environ"] != now["environ"]:
        for name in now["environ"].keys() - state["environ"].keys():
            del os.environ[os.fsdecode(name)]
        for name, value in state["environ"].items():
            if now["environ"].get(name) != value:
                os.environ[os.fsdecode(name)] = os.fsdecode(value)
    sys.stdin, sys.stdout, sys.stderr = state["streams"]
    if state["random"] != now["random"]:
        random.setstate(state["random"])
    if state["cwd"] is not None and state["cwd"] != now["cwd"]:
        try:
            _chdir(state["cwd"])
        except OSError:
            pass
    for name, (_, put) in _generators().items():
        if name in state:
            put(state[name])


def _generators() -> dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Return how to read and set the random numbers of the libraries that are loaded."""
    found: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {}
    numbers = sys.modules.get("numpy.random")
    if numbers is not None and hasattr(numbers, "set_state"):
        found["numpy"] = (numbers.get_state, numbers.set_state)
    generators = sys.modules.get("torch.random")
    generator = getattr(generators, "default_generator", None)
    if generator is not None:
        found["torch"] = (generator.get_state, generator.set_state)
    return found
