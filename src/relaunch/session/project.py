"""The project a command is given in: where it is, how it is configured, what it remembers."""

from __future__ import annotations

import os

from relaunch.errors import UsageError
from relaunch.journal.beside import journal_of
from relaunch.journal.home import Home, find_home
from relaunch.record import Record
from relaunch.settings import Settings, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.store import Journal


class Project(Record):
    """Opened once per command, handed down to whatever needs it."""

    cwd: str
    home: Home
    settings: Settings
    journal: Journal


def open_project() -> Project:
    """Open the project around the current directory."""
    try:
        cwd = os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current directory is gone", hint="cd ~") from None
    home = find_home(cwd)
    return Project(
        cwd=cwd,
        home=home,
        settings=load(home.project, cache_dir=home.journal),
        journal=journal_of(home),
    )
