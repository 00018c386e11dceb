"""What the ranks of a trial share so that their lines stay whole: a lock, which goes with it."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.store import Trial

RANKED = "RELAUNCH_RANKED"
"""Environment of a program whose prints are kept in whole lines."""


def let_go_of_lines(trial: Trial) -> None:
    """Take the lock away once nobody writes any more."""
    from relaunch.inside.ranked import lock_path

    try:
        os.unlink(lock_path(trial.path))
    except OSError:
        pass
