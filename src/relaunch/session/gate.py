"""Stops a launch that would test old code: editor buffers of the project that were not written."""

from __future__ import annotations

import os
import time

from relaunch.errors import PlaceError
from relaunch.events import Warned
from relaunch.trial.place.unsaved import still_unsaved, unsaved_buffers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from relaunch.events import Event
    from relaunch.session.project import Project
    from relaunch.trial.place.unsaved import Unsaved

WAIT, RUN, QUIT = "wait", "run", "quit"


def pass_unsaved(
    project: Project,
    mode: str,
    *,
    ask: Callable[[Sequence[Unsaved]], str] | None,
    tell: Callable[[Event], object],
) -> tuple[str, ...]:
    """Return the files run in their old state on purpose; raises PlaceError when it must not run.

    Without a person to ask, `ask` is `warn`: nothing ever waits for an answer that cannot come.
    """
    mode = mode or project.settings.run.unsaved
    if mode == "off" or project.home.too_wide:
        return ()
    home = os.path.expanduser("~")
    found = unsaved_buffers(project.home.project, home=home, env=os.environ)
    if not found:
        return ()
    names = ", ".join(describe(project, buffer) for buffer in found)
    if mode == "refuse":
        raise PlaceError(
            f"unsaved changes: {names}. You would test the OLD code", hint="rl --unsaved warn"
        )
    answer = RUN
    if mode == "ask" and ask is not None:
        answer = ask(found)
    else:
        tell(Warned(text=f"{names}. You would test the OLD code"))
    if answer == QUIT:
        raise PlaceError("not launched: there are unsaved changes", hint="rl")
    if answer == WAIT:
        wait_until_saved(found)
        return ()
    return tuple(buffer.path for buffer in found)


def wait_until_saved(buffers: Sequence[Unsaved]) -> None:
    """Wait for the editors; Ctrl-C ends it."""
    while any(still_unsaved(buffer) for buffer in buffers):
        time.sleep(0.1)


def describe(project: Project, buffer: Unsaved) -> str:
    """Name a buffer for people: `train.py has unsaved changes in vim (pid 4121, pane %3)`."""
    path = os.path.relpath(buffer.path, project.home.project)
    parts = [f"pid {buffer.pid}" if buffer.pid else "", buffer.where and f"pane {buffer.where}"]
    where = ", ".join(part for part in parts if part)
    return f"{path} has unsaved changes in {buffer.editor}" + (f" ({where})" if where else "")
