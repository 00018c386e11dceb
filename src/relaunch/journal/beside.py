"""Trials that go elsewhere because their journal cannot be written, in one list with its own.

The journal that is used then has links to the trials, searches and lists of the other, so that
numbers go on and all that reads a trial finds both; code is borrowed from it.
"""

from __future__ import annotations

import os

from relaunch.journal.store import Journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from relaunch.journal.home import Home

_LINKED = ("trials", "searches", "packages")
_GITS = ("git", "git-sha256")
_BORROWED = "objects/info/alternates"


def journal_of(home: Home) -> Journal:
    """Open the journal to write into, with what is in the one that it stands in for."""
    try:
        if home.unwritable:
            _link(home.unwritable, home.journal)
        elif home.foreign:  # once trusted, and not any more
            _unlink(home.journal)
    except OSError:
        pass  # the new trials are found all the same
    return Journal(home.journal)


def is_of_another(path: str) -> bool:
    """Tell whether a trial is in a journal that we cannot or may not write."""
    return os.path.islink(path)


def _link(other: str, own: str) -> None:
    for kind in _LINKED:
        theirs, mine = _names(os.path.join(other, kind)), _names(os.path.join(own, kind))
        if theirs and not mine:
            os.makedirs(os.path.join(own, kind), mode=0o700, exist_ok=True)
        for name in theirs - mine:
            os.symlink(os.path.join(other, kind, name), os.path.join(own, kind, name))
        for name in mine - theirs:
            path = os.path.join(own, kind, name)
            if os.path.islink(path) and not os.path.exists(path):  # it was forgotten there
                os.unlink(path)
    for git in _GITS:
        objects = os.path.join(other, git, "objects")
        borrowed = os.path.join(own, git, _BORROWED)
        if os.path.isdir(objects) and not os.path.exists(borrowed):
            os.makedirs(os.path.dirname(borrowed), mode=0o700, exist_ok=True)
            with open(borrowed, "w", encoding="utf-8", errors="surrogateescape") as file:
                file.write(f"{objects}\n")


def _unlink(own: str) -> None:
    for kind in _LINKED:
        for name in _names(os.path.join(own, kind)):
            if os.path.islink(path := os.path.join(own, kind, name)):
                os.unlink(path)
    for git in _GITS:
        if os.path.exists(path := os.path.join(own, git, _BORROWED)):
            os.unlink(path)


def _names(folder: str) -> set[str]:
    try:
        return {name for name in os.listdir(folder) if name[0] != "."}
    except OSError:
        return set()
