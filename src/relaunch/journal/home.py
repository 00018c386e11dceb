"""Where a project's journal lives: the git common directory, else `.relaunch/`, else the state.

Found by reading `.git` ourselves: asking git for it would cost a process on every relaunch.
"""

from __future__ import annotations

import os

from relaunch.record import Record
from relaunch.textfile import IN_TREE, read_text


class Home(Record):
    """The project around a directory and the folder that remembers its trials."""

    project: str
    """The top of the work tree, or the directory itself outside git."""
    journal: str
    """The folder of the journal; it need not exist yet."""
    git_dir: str = ""
    """The work tree's own git directory; empty outside git."""
    common_dir: str = ""
    """The git directory that linked worktrees share."""
    unwritable: str = ""
    """Where the journal belongs, when it cannot be written there."""
    too_wide: bool = False
    """The directory is a home or a root: far too much to take a snapshot of."""


def find_home(cwd: str) -> Home:
    """Find the project around `cwd`; never fails, and writes nothing."""
    top = _ancestor_with(cwd, ".git")
    marked = _ancestor_with(cwd, IN_TREE)
    if top and len(top) >= len(marked):
        git_dir = _git_dir(os.path.join(top, ".git"))
        if git_dir:
            common = _common_dir(git_dir)
            journal, unwritable = _writable(os.path.join(common, "relaunch"), top)
            return Home(
                project=top,
                journal=journal,
                git_dir=git_dir,
                common_dir=common,
                unwritable=unwritable,
            )
    project = marked or cwd
    wide = not marked and project in ("/", "/tmp", "/var/tmp", os.path.expanduser("~"))
    if wide:
        return Home(project=project, journal=_state_folder(project), too_wide=True)
    journal, unwritable = _writable(os.path.join(project, IN_TREE), project)
    return Home(project=project, journal=journal, unwritable=unwritable)


def _ancestor_with(path: str, name: str) -> str:
    while not os.path.lexists(os.path.join(path, name)):
        parent = os.path.dirname(path)
        if parent == path:
            return ""
        path = parent
    return path


def _git_dir(dot_git: str) -> str:
    """Follow the `gitdir: PATH` file of a linked worktree or submodule; empty if there is none."""
    if os.path.isdir(dot_git):
        found = dot_git
    else:
        try:
            text = read_text(dot_git)
        except OSError:
            return ""
        if not text.startswith("gitdir:"):
            return ""
        found = os.path.normpath(os.path.join(os.path.dirname(dot_git), text[7:].strip()))
    return found if os.path.exists(os.path.join(found, "HEAD")) else ""


def _common_dir(git_dir: str) -> str:
    try:
        shared = read_text(os.path.join(git_dir, "commondir")).strip()
        return os.path.normpath(os.path.join(git_dir, shared))
    except OSError:
        return git_dir


def _writable(journal: str, project: str) -> tuple[str, str]:
    """Return the folder to use, and the one that it stands in for when that cannot be written."""
    if os.access(journal, os.W_OK | os.X_OK) or (
        not os.path.lexists(journal) and os.access(os.path.dirname(journal), os.W_OK | os.X_OK)
    ):
        return journal, ""
    return _state_folder(project), journal


def _state_folder(project: str) -> str:
    from _blake2 import blake2b

    digest = blake2b(os.fsencode(project), digest_size=6).hexdigest()
    return os.path.join(state_folder(), f"{os.path.basename(project) or 'root'}-{digest}")


def limited_runs() -> str:
    """Return where runs that are no trials note what they would leave if they were killed."""
    return os.path.join(state_folder(), "limited-runs")


def state_folder() -> str:
    """Return the folder for what this user's runs of rl remember, outside of any project."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "relaunch")
