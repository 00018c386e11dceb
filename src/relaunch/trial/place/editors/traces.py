"""What all editors leave: an unsaved edit as we tell it, processes, and vim's first block."""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

VIM, EMACS, NANO, CODE = "vim", "emacs", "nano", "VS Code"

DIRTY_AT = 0x3EF  # vim's b0_dirty; nano writes the same block when it locks
PID_AT, NAME_AT = 24, 108


class Unsaved(Record):
    """One file of the project whose newest text is only in an editor."""

    path: str
    editor: str
    pid: int
    """0 when the editor keeps its backup without a process of its own (VS Code's hot exit)."""
    where: str = ""
    """The tmux pane of the editor, `%3`; empty when it is not in one or cannot be told."""
    trace: str = ""
    """The file that gives the edit away: swap, lock or backup; a tmux socket for a bare nano."""


def environment(pid: int) -> dict[str, str]:
    """Return the environment a process started with; empty when it may not be read."""
    pairs = (item.partition("=") for item in proc_text(pid, "environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}


def proc_text(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return os.fsdecode(file.read())
    except OSError:
        return ""


def cwd_of(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""


def arguments(pid: int, cwd: str) -> Iterator[str]:
    """Yield the files a process was started with, absolute."""
    for word in proc_text(pid, "cmdline").split("\0")[1:]:
        if word and word[0] not in "-+":
            yield os.path.normpath(os.path.join(cwd, word))


def dirty_block(swap: str) -> bytes | None:
    """Return the first block of a swap file that says its text is not saved."""
    try:
        with open(swap, "rb") as file:
            block = file.read(DIRTY_AT + 1)
    except OSError:
        return None
    if len(block) <= DIRTY_AT or block[:2] not in (b"b0", b"bc", b"bC", b"bd"):
        return None
    return block if block[DIRTY_AT] == 0x55 else None
