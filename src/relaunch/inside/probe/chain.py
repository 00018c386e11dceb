"""Who called: the frames above a line as short lines of text, the program's own first."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_MOST = 40


def callers() -> list[str]:
    """Return where the program is and who called, `file:line function`, nearest first."""
    frame: FrameType | None = program_frame()
    found: list[str] = []
    while frame is not None and len(found) < _MOST:
        code = frame.f_code
        if not code.co_filename.startswith("<frozen importlib"):
            found.append(f"{shortened(code.co_filename)}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return found


def program_frame() -> FrameType:
    """Return the frame of the program that came to a probe."""
    frame = sys._getframe()
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).startswith("relaunch.inside.")


def shortened(file: str) -> str:
    """Return a file as a person would name it: from here, or from the folder of packages."""
    here = os.getcwd() + os.sep
    if file.startswith(here):
        return file[len(here) :]
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in file:
            return file.rpartition(folder)[2]
    return file
