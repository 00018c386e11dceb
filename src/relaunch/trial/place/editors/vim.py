"""vim and neovim keep the swap file open, and a byte of it says whether the text is saved."""

from __future__ import annotations

import os

from relaunch.proc.tree import is_running
from relaunch.trial.place.editors.traces import (
    DIRTY_AT,
    NAME_AT,
    VIM,
    Unsaved,
    dirty_block,
    environment,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def edits(pid: int, home: str) -> Iterator[Unsaved]:
    """Yield what one vim has not saved."""
    pane = None
    for swap in _open_swaps(pid):
        block = dirty_block(swap)
        if block is None:
            continue
        if pane is None:
            pane = environment(pid).get("TMUX_PANE", "")
        path = _swapped_file(block, swap, home)
        yield Unsaved(path=path, editor=VIM, pid=pid, where=pane, trace=swap)


def _open_swaps(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            target = os.readlink(f"{folder}/{name}")
        except OSError:
            continue
        # .swp, then .swo down to .saa when several sessions edit files of one name
        if target[:1] == "/" and target[-4:-2] in (".s", ".r", ".q"):
            yield target


def _swapped_file(block: bytes, swap: str, home: str) -> str:
    """Return the file behind a swap: vim writes `~user/path`; else the swap's own name tells."""
    name = os.fsdecode(block[NAME_AT : DIRTY_AT - 1].split(b"\0")[0])
    if name.startswith("/"):
        return name
    folder, base = os.path.split(swap)
    stem = base[:-4]
    beside = stem.replace("%", "/") if "%" in stem else os.path.join(folder, stem.removeprefix("."))
    if name.startswith("~"):
        # Ours first: vim writes the user's name even where HOME is not what the system says.
        for path in (os.path.join(home, name.partition("/")[2]), os.path.expanduser(name)):
            if os.path.exists(path):
                return path
    return beside


def is_still_unsaved(edit: Unsaved) -> bool:
    """Tell whether the swap file still says so, and its vim lives."""
    return is_running(edit.pid) and dirty_block(edit.trace) is not None
