"""Makes a program's threads meet more often: quick switches, and seeded sleeps between its lines.

Unlike a schedule, nothing is decided here: it only becomes more likely.
"""

from __future__ import annotations

import os
import sys
import threading
import time

from relaunch.inside.race.begin import own_files
from relaunch.inside.race.dice import Dice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

SWITCH, LINES, CORE = "switch", "lines", "core"
_SWITCH_S = 1e-6
_LONGEST_S = 0.0005
_SHARE = 0.1
_TOOL = 3
_sleep = time.sleep


def begin(modes: str, roots: list[str], folder: str) -> None:
    """Begin; `folder` is that of this run, whose number is the seed."""
    asked = modes.split(",")
    if SWITCH in asked:
        sys.setswitchinterval(_SWITCH_S)
    if CORE in asked:
        _one_core(folder)
    if LINES in asked:
        _between_lines(own_files(roots), Dice(seed_of(folder)))


def seed_of(folder: str) -> int:
    """Return the number of a run, from the name of its folder."""
    digits = [part for part in folder.split(os.sep) if part.isdecimal()]
    return int(digits[-1]) if digits else 0


def _one_core(folder: str) -> None:
    try:
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[seed_of(folder) % len(cores)]})
    except (AttributeError, OSError):
        pass


def _between_lines(own: Callable[[str], bool], dice: Dice) -> None:
    def rest() -> None:
        if dice.share() < _SHARE:
            _sleep(dice.share() * _LONGEST_S)

    if sys.version_info >= (3, 12):
        _monitor(own, rest)
    else:
        _trace(own, rest)


def _trace(own: Callable[[str], bool], rest: Callable[[], None]) -> None:
    def local(_: FrameType, event: str, __: object) -> Any:
        if event == "line":
            rest()
        return local

    def called(frame: FrameType, _: str, __: object) -> Any:
        return local if own(frame.f_code.co_filename) else None

    threading.settrace(called)
    sys.settrace(called)


def _monitor(own: Callable[[str], bool], rest: Callable[[], None]) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    try:
        monitoring.use_tool_id(_TOOL, "relaunch")
    except ValueError:  # somebody else has it
        return

    def line(code: CodeType, _: int) -> Any:
        if not own(code.co_filename):
            return monitoring.DISABLE
        rest()
        return None

    monitoring.register_callback(_TOOL, monitoring.events.LINE, line)
    monitoring.set_events(_TOOL, monitoring.events.LINE)
