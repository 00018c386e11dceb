"""Names the copies that an earlier version of rl saved before a program changed them.

It meant to put folders back from them. What is in the folders since may be another program's, so
both stay: the files of now, and the copies, which nothing here changes or removes.
"""

from __future__ import annotations

import os

from relaunch.jsontext import loads
from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER, _LIST = "undo", "list"


def announce(folder: str, tell: Callable[[str], object]) -> bool:
    """Say in one line which copies are in a folder of a killed rl; False when there are none."""
    notes = os.path.join(folder, _FOLDER)
    try:
        copies = [name for name in os.listdir(notes) if name.startswith(("copy-", "held-"))]
    except OSError:
        return False
    if not copies:
        return False
    tell(
        f"a killed rl left {_folders(notes)} as its program had changed it, and so it stays; "
        f"what rl had saved before ({len(copies)}) stays too, in {notes}: `{_LIST}` has the names"
    )
    return True


def _folders(notes: str) -> str:
    try:
        head = loads(read_if_there(os.path.join(notes, _LIST)).partition("\n")[0])
        return ", ".join(str(one) for one in head["folders"])
    except (ValueError, KeyError, TypeError, OSError):
        return "a folder"
