"""Asks before a kept call is loaded that this user did not record: what it holds can run code."""

from __future__ import annotations

import sys

from relaunch.cli import draw
from relaunch.session.replay import Foreign

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    Made = TypeVar("Made")


def with_consent(act: Callable[[], Made], *, given: bool = False) -> Made:
    """Do what loads a kept call; where that has to be asked, ask, and seal what was agreed to.

    Without a terminal nothing is loaded that was not agreed to on the command line.
    """
    asked: set[str] = set()
    while True:
        try:
            return act()
        except Foreign as foreign:
            path = foreign.capture.path
            if path in asked or not (given or _agreed(foreign)):
                raise
            asked.add(path)
            foreign.trust()


def _agreed(foreign: Foreign) -> bool:
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    draw.remark(f"rl: {draw.clean(foreign.message)}")
    draw.put(sys.stderr, "load it? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
