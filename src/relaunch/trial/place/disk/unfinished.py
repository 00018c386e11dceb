"""Names what was on its way to a folder when the process that kept it was killed."""

from __future__ import annotations

import os

from relaunch.trial.place.disk.words import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_PREFIX = ".relaunch-"


def new_name(number: int) -> str:
    """Return a name for what has not its own yet; it says which process makes it."""
    return f"{_PREFIX}{os.getpid()}-{number}"


def tell_unfinished(folders: Sequence[str], tell: Callable[[str], object]) -> None:
    """Say what is there under such names; it stays, as it may be the only one of its kind."""
    found = [path for folder in folders for path in _find(folder)]
    if found:
        more = f", and {len(found) - 1} more" if found[1:] else ""
        tell(f"killed while it kept: {shown(found[0])}{more} has not its name; it stays so")


def _find(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            pid, _, number = name.removeprefix(_PREFIX).partition("-")
            is_ours = name.startswith(_PREFIX) and pid.isdecimal() and number.isdecimal()
            if is_ours and not os.path.exists(f"/proc/{pid}"):
                yield os.path.join(place, name)
