"""What searches that were killed left: the places in which they ran."""

from __future__ import annotations

import os
import shutil

from relaunch.errors import JournalError
from relaunch.journal import searches

KIND = "shrink"
SCRATCH = "work"
"""The folder of a search that has its places, while it runs."""


def sweep(home: str) -> None:
    """Remove them."""
    for number in searches.numbers(home):
        try:
            search = searches.load(home, number)
        except JournalError:
            continue
        scratch = os.path.join(search.path, SCRATCH)
        if search.start.get("kind") != KIND or not os.path.isdir(scratch):
            continue
        try:
            search.hold()
        except JournalError:  # it runs
            continue
        shutil.rmtree(scratch, ignore_errors=True)
        search.release()
