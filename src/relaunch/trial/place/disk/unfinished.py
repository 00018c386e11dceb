"""Names what was on its way to a folder when the process that kept it was killed."""

from __future__ import annotations

import os

from relaunch.proc.tree import is_running
from relaunch.trial.place.disk.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NOT_YET = "not-kept-yet"
"""File of a trial while nothing is on its way yet: no folder needs to be looked through."""
_PREFIX = ".relaunch-"


def new_name(number: int) -> str:
    """Return a name for what has not its own yet; it says which process makes it."""
    return f"{_PREFIX}{os.getpid()}-{number}"


def tell_unfinished(folders: Sequence[str], tell: Callable[[str], object]) -> None:
    """Say what is there under such names; it stays, as it may be the only one of its kind.

    A number is soon that of another process: what one may still keep is named, too.
    """
    left: list[str] = []
    for path, pid in sorted({one for folder in folders for one in _find(folder)}):
        if is_running(pid):
            tell(f"{shown(path)} has not its name yet: process {pid} keeps it, or it stays so")
        else:
            left.append(path)
    if left:
        more = f", and {len(left) - 1} more" if left[1:] else ""
        tell(f"killed while it kept: {shown(left[0])}{more} has not its name; it stays so")


def _find(folder: str) -> Iterator[tuple[str, int]]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            pid, _, number = name.removeprefix(_PREFIX).partition("-")
            if name.startswith(_PREFIX) and pid.isdecimal() and number.isdecimal():
                yield os.path.join(place, name), int(pid)
