"""Puts right what an rl that was killed left behind: processes of its trial, a set swapped in."""

from __future__ import annotations

import os

from relaunch.errors import JournalError
from relaunch.events import Warned
from relaunch.journal.home import limited_runs
from relaunch.journal.store import is_here
from relaunch.trial.place.sets import STATE as SETS_STATE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from relaunch.events import Event
    from relaunch.session.project import Project


_STEPS = ("allocation", "steps")
"""Where what runs on other machines is noted; most projects have nothing there."""


def repair(project: Project, *, tell: Callable[[Event], object]) -> None:
    """Look at trials that began and never finished; usually none, and this is one listing."""
    journal = project.journal
    if os.path.isdir(limited_runs()):
        from relaunch.session.left import take_away

        take_away(lambda text: tell(Warned(text=text)))
    if os.path.exists(os.path.join(journal.home, SETS_STATE)):
        from relaunch.trial.place.hold import repair_sets

        repair_sets(journal.home)
    if _lists(os.path.join(journal.home, *_STEPS)):
        from relaunch.session.elsewhere import end_left

        end_left(journal.home)
    for trial_id in journal.unfinished():
        try:
            trial = journal.load(trial_id)
        except JournalError:
            _forget(journal.home, trial_id)
            continue
        rl = trial.start.get("rl")
        if not isinstance(rl, dict):  # damaged: which process to look for is not known
            _forget(journal.home, trial_id)
            continue
        if trial.end is None and (trial.running or not is_here(rl)):
            continue
        if trial.end is None:
            from relaunch.proc.tree import end_all, leftovers

            pids = [] if trial.start.get("let_live") else leftovers(trial.path)
            end_all(pids)
            if (trial.start.get("limits") or {}).get("memory_bytes"):
                from relaunch.trial.place.memory.groups import sweep_all

                sweep_all()
            if trial.start.get("elsewhere"):
                from relaunch.session.elsewhere import end_left_behind

                end_left_behind(trial)
            ended = f", ended {len(pids)} of its processes" if pids else ""
            tell(Warned(text=f"the rl of #{trial_id} was killed; its record is kept{ended}"))
            from relaunch.session.sweep_secrets import sweep_killed

            sweep_killed(trial.path, project.settings.record.redact)
            _announce_copies(trial.path, tell)
            _announce_unfinished(trial.path, trial.start.get("limits") or {}, tell)
        _forget(journal.home, trial_id)


def _lists(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def _announce_copies(folder: str, tell: Callable[[Event], object]) -> None:
    if os.path.isdir(os.path.join(folder, "undo")):
        from relaunch.session.saved_copies import announce

        announce(folder, lambda text: tell(Warned(text=text)))


def _announce_unfinished(
    folder: str, limits: Mapping[str, Any], tell: Callable[[Event], object]
) -> None:
    if limits.get("keep"):
        from relaunch.trial.place.disk.unfinished import NOT_YET, tell_unfinished

        if os.path.exists(os.path.join(folder, NOT_YET)):
            return
        folders = [disk["path"] for disk in limits.get("disks", ())]
        tell_unfinished(folders, lambda text: tell(Warned(text=text)))


def _forget(home: str, trial_id: str) -> None:
    try:
        os.unlink(os.path.join(home, "running", trial_id))
    except OSError:
        pass
