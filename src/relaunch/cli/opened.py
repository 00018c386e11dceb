"""Opens the project around the current directory, and says what of it is another user's."""

from __future__ import annotations

import os

from relaunch.cli import draw
from relaunch.events import Warned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.events import Event
    from relaunch.journal.home import Home
    from relaunch.journal.store import Journal
    from relaunch.session.project import Project


def open_project(tell: Callable[[Event], object] | None = None) -> Project:
    """Open the project; `tell` is for those that speak in events."""
    from relaunch.session.project import open_project as find

    found = find()
    home, theirs = found.home, found.settings.foreign
    for event in (_journal_apart(home), _settings_apart(theirs) if not home.foreign else None):
        if event is not None:
            (tell or _say)(event)
    return found


def here() -> tuple[Home, Journal]:
    """Find the journal alone."""
    from relaunch.session import look_back

    home, journal = look_back.here()
    if (event := _journal_apart(home)) is not None:
        _say(event)
    return home, journal


def _journal_apart(home: Home) -> Warned | None:
    if not home.foreign:
        return None
    from relaunch.trust import foreign, whose

    why, hint = "came with the repository", f"git rm -r --cached {draw.quote(home.foreign)}"
    if home.untold:
        why = f"may have come with the repository: {home.untold}"
        hint = f"git -C {draw.quote(home.project)} status"
    elif foreign(home.foreign) or foreign(home.allow):
        why, hint = f"belongs to {whose(home.foreign)}", f"rl trust {draw.quote(home.allow)}"
    text = f"{home.foreign} {why}: nothing of it is used, and trials are kept in {home.journal}"
    return Warned(text=text, hint=hint)


def _settings_apart(theirs: str) -> Warned | None:
    if not theirs:
        return None
    from relaunch.trust import whose

    text = f"{theirs} is not used: it belongs to {whose(theirs)}"
    return Warned(text=text, hint=f"rl trust {draw.quote(os.path.dirname(theirs))}")


def _say(event: Event) -> None:
    if isinstance(event, Warned):
        draw.remark(f"rl: {draw.clean(event.text)}   try: {draw.clean(event.hint)}")
