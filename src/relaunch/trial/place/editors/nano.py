"""nano leaves a lock if it was told to, else only its title bar, which tmux can show us."""

from __future__ import annotations

import os

from relaunch.proc.tree import is_running
from relaunch.trial.place.editors.traces import (
    DIRTY_AT,
    NANO,
    PID_AT,
    Unsaved,
    arguments,
    cwd_of,
    dirty_block,
    environment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def edits(pid: int) -> Iterator[Unsaved]:
    """Yield what one nano has not saved."""
    cwd = cwd_of(pid)
    files = list(arguments(pid, cwd))
    surroundings = environment(pid)
    pane = surroundings.get("TMUX_PANE", "")
    locked = False
    for folder in sorted({cwd, *(os.path.dirname(path) for path in files)}):
        for lock in _nano_locks(folder, pid):
            locked = True
            path = os.path.join(folder, os.path.basename(lock)[1:-4])
            if _nano_lock_is_dirty(lock, path):
                yield Unsaved(path=path, editor=NANO, pid=pid, where=pane, trace=lock)
    if locked or not pane:
        return
    socket = surroundings.get("TMUX", "").partition(",")[0]
    for path in _modified_in_pane(socket, pane, cwd, files):
        yield Unsaved(path=path, editor=NANO, pid=pid, where=pane, trace=socket)


def _nano_locks(folder: str, pid: int) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        if name[0] == "." and name.endswith(".swp"):
            lock = os.path.join(folder, name)
            block = _any_block(lock)
            if (
                block[2:6] == b"nano"
                and int.from_bytes(block[PID_AT : PID_AT + 4], "little") == pid
            ):
                yield lock


def _any_block(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(DIRTY_AT + 1)
    except OSError:
        return b""


def _nano_lock_is_dirty(lock: str, path: str) -> bool:
    """Nano's `U` stays after a save; it writes the lock again at the first change after one."""
    try:
        newer = os.stat(lock).st_mtime_ns > os.stat(path).st_mtime_ns
    except FileNotFoundError:
        newer = os.path.exists(lock)  # a new file, never saved
    except OSError:
        return False
    return newer and dirty_block(lock) is not None


def _modified_in_pane(socket: str, pane: str, cwd: str, files: list[str]) -> list[str]:
    """Return the files that a nano in a tmux pane shows as modified."""
    from relaunch.proc.capture import capture

    if not socket or not os.path.exists(socket):
        return []
    screen = capture(("tmux", "-S", socket, "capture-pane", "-p", "-t", pane)).text
    found = []
    for name in names_shown_modified(screen):
        path = os.path.normpath(os.path.join(cwd, name))
        if name.startswith("...") and len(files) == 1:
            path = files[0]  # a narrow title bar cuts the beginning off
        if path in files or os.path.exists(path):
            found.append(path)
    return found


def names_shown_modified(screen: str) -> list[str]:
    """Read the names nano marks as modified: `name *` in its title bar, or in its minibar below.

    Before version 7 a word stood at the right end of the title bar, translated; any word there
    but those of the read-only modes counts.
    """
    lines = screen.rstrip("\n").split("\n")
    names = []
    for line in (lines[0], *lines[-4:]):
        names += [field[:-2] for field in _fields(line) if field.endswith(" *")]
    title = _fields(lines[0])
    if title and ("nano" in title[0] or title[0].startswith("[")):
        del title[0]  # the program and its version, or which of several files: room permitting
    if len(title) == 2 and title[1] not in ("View", "Restricted"):
        names.append(title[0])
    return names


def _fields(line: str) -> list[str]:
    return [field.strip() for field in line.split("  ") if field.strip()]


def is_still_unsaved(edit: Unsaved) -> bool:
    """Ask the lock, or the pane, again."""
    if not is_running(edit.pid):
        return False
    if edit.trace.endswith(".swp"):
        return _nano_lock_is_dirty(edit.trace, edit.path)
    cwd = cwd_of(edit.pid)
    shown = _modified_in_pane(edit.trace, edit.where, cwd, list(arguments(edit.pid, cwd)))
    return edit.path in map(os.path.realpath, shown)
