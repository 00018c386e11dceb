"""Emacs leaves a lock, a dangling link `.#name -> user@host.pid:boot`, beside the file."""

from __future__ import annotations

import os
import time

from relaunch.proc.tree import is_running
from relaunch.trial.place.editors.traces import (
    EMACS,
    Unsaved,
    arguments,
    cwd_of,
    environment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WALK_BUDGET_S = 0.015
_NEVER_ENTERED = frozenset(
    ("node_modules", "__pycache__", "site-packages", "venv", "build", "dist", "wandb", "mlruns")
)


def edits(pids: list[int], project: str) -> Iterator[Unsaved]:
    """Yield what the living emacs processes have not saved inside the project."""
    panes: dict[int, str] = {}
    since = min(_started_at(pid) for pid in pids)
    for folder, names in _folders(pids, project):
        for name in names:
            if name.startswith(".#"):
                pid, path = _lock_owner(os.path.join(folder, name)), name[2:]
                if pid not in pids:
                    continue
            elif _auto_save_is_newer(folder, name, since):
                pid, path = _likeliest(pids, folder), name[1:-1]
            else:
                continue
            if pid not in panes:
                panes[pid] = environment(pid).get("TMUX_PANE", "")
            yield Unsaved(
                path=os.path.join(folder, path),
                editor=EMACS,
                pid=pid,
                where=panes[pid],
                trace=os.path.join(folder, name),
            )


def _lock_owner(lock: str) -> int:
    try:
        target = os.readlink(lock)
    except OSError:
        return 0
    pid = target.rpartition("@")[2].rpartition(".")[2].partition(":")[0]
    return int(pid) if pid.isdigit() else 0


def _auto_save_is_newer(folder: str, name: str, since: float) -> bool:
    """Tell whether `#name#` is an auto-save of this session: all there is without locks."""
    if len(name) < 3 or name[-1] != "#":
        return False
    try:
        saved = os.stat(os.path.join(folder, name)).st_mtime
        return saved >= since and saved > os.stat(os.path.join(folder, name[1:-1])).st_mtime
    except OSError:
        return False


def _likeliest(pids: list[int], folder: str) -> int:
    """Return the editor that was started on this folder; an auto-save does not name its writer."""
    for pid in pids:
        cwd = cwd_of(pid)
        if any(os.path.dirname(path) == folder for path in arguments(pid, cwd)):
            return pid
    return max(pids, key=_started_at)


def _started_at(pid: int) -> float:
    try:
        return os.stat(f"/proc/{pid}").st_mtime
    except OSError:
        return time.time()


def _folders(pids: list[int], project: str) -> Iterator[tuple[str, list[str]]]:
    """Yield folders with the names that start with `.#` or `#`: those the editor was given first.

    The walk is breadth first and ends when its CPU budget does: a lock deep inside a giant tree may
    be missed, a relaunch is never slowed.
    """
    first = []
    for pid in pids:
        cwd = cwd_of(pid)
        first += [os.path.dirname(path) for path in arguments(pid, cwd)]
        first.append(cwd)
    inside = (project, project.rstrip("/") + "/")
    queue = [path for path in first if path == inside[0] or path.startswith(inside[1])]
    queue.append(project)
    seen = set()
    end = time.thread_time() + _WALK_BUDGET_S
    for folder in queue:
        if folder in seen:
            continue
        seen.add(folder)
        names = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    name = entry.name
                    if name[0] == "#" or name.startswith(".#"):
                        names.append(name)
                    elif name[0] == "." or name in _NEVER_ENTERED:
                        continue
                    elif entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
        except OSError:
            continue
        if names:
            yield folder, names
        if time.thread_time() > end:
            return


def is_still_unsaved(edit: Unsaved) -> bool:
    """Tell whether the lock or auto-save is still there, and an emacs lives."""
    return is_running(edit.pid) and os.path.lexists(edit.trace)
