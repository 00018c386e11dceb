"""A disk that is full: what is said of it, and which attempts only stumbled over it."""

from __future__ import annotations

import errno
import os
import tempfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.outcome import Outcome, Signature

_SAID = os.strerror(errno.ENOSPC)
_FULL = 1 << 16
"""A disk with less than this is full."""


def unwritten(error: OSError) -> str:
    """Say in one line what could not be written, and why."""
    what = error.filename if isinstance(error.filename, str) else "what this search keeps"
    return f"{what} cannot be written: {error.strerror or error}"


def what_helps(error: OSError) -> str:
    """Say what to do before the search goes on."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "make room"
    what = error.filename if isinstance(error.filename, str) else "."
    return f"ls -ld {os.path.dirname(what) or '.'}"


def check(outcome: Outcome, hunted: Signature | None, *folders: str) -> None:
    """Refuse what a run shows if it had no room: OSError, as if we had none ourselves."""
    title = outcome.signature.title if outcome.signature is not None else ""
    if _SAID not in title or (hunted is not None and _SAID in hunted.title):
        return
    for folder in (*folders, tempfile.gettempdir()):
        disk = os.statvfs(folder)
        if disk.f_bavail * disk.f_frsize < _FULL:
            raise OSError(errno.ENOSPC, _SAID, folder)
