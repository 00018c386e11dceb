"""Where a project's journal lives: the git common directory, else `.relaunch/`, else the state.

Found by reading `.git` ourselves: asking git for it would cost a process on every relaunch.
"""

from __future__ import annotations

import os

from relaunch.record import Record
from relaunch.textfile import IN_TREE, read_start
from relaunch.trust import foreign, owner_if_root, state_folder

_SHARED = 0o1002  # sticky, and writable by everybody
_TRUE = ("1", "true", "yes", "on")


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
    foreign: str = ""
    """What is neither read nor written: it belongs to another user, or came with a clone."""
    allow: str = ""
    """The folder that the user would have to trust, for that to be used."""
    untold: str = ""
    """Why it is not known whether that came with a clone."""


def find_home(cwd: str) -> Home:
    """Find the project around `cwd`; never fails, and writes nothing."""
    searched = _searched(cwd)
    top = _first_with(searched, ".git")
    marked = _first_with(searched, IN_TREE)
    if top and len(top) >= len(marked):
        git_dir = _git_dir(os.path.join(top, ".git"))
        if git_dir:
            common = _common_dir(git_dir)
            journal = os.path.join(common, "relaunch")
            theirs = foreign(top, os.path.join(top, ".git"), git_dir, common, journal)
            if theirs:
                return _apart(cwd, theirs, top)
            journal, unwritable = _writable(journal, top)
            return Home(
                project=top,
                journal=journal,
                git_dir=git_dir,
                common_dir=common,
                unwritable=unwritable,
            )
    project = marked or cwd
    if not marked and (_is_wide(project) or _leads_nowhere(top)):
        return _apart(cwd, "", "")
    if theirs := foreign(project, os.path.join(project, IN_TREE)):
        return _apart(cwd, theirs, project)
    came, untold = _came_along(project, top)
    if came:
        return _apart(cwd, came, project).but(untold=untold)
    journal, unwritable = _writable(os.path.join(project, IN_TREE), project)
    return Home(project=project, journal=journal, unwritable=unwritable)


def _apart(cwd: str, theirs: str, allow: str) -> Home:
    """Take the folder for itself, and keep its trials among what is the user's own."""
    return Home(
        project=cwd,
        journal=_state_folder(cwd),
        too_wide=_is_wide(cwd),
        foreign=theirs,
        allow=allow,
    )


def _came_along(project: str, top: str) -> tuple[str, str]:
    """Return the journal below a repository that is among its files: others wrote what it holds.

    Also where git cannot tell, with what it says. A repository of another user is not asked: what
    is ours in it did not come with it.
    """
    marker, dot_git = os.path.join(project, IN_TREE), os.path.join(top, ".git")
    if not top or not os.path.lexists(marker) or foreign(top, dot_git):
        return "", ""
    if not _git_dir(dot_git):
        return (marker, f"{dot_git} leads nowhere") if _leads_nowhere(top) else ("", "")
    from relaunch.proc.capture import capture, complaint
    from relaunch.proc.git import git_env

    # At the top: below it git may find a bare repository that is among the files of a clone.
    at_top = ("git", "-c", "safe.directory=*", "-C", top)
    listed = ("ls-files", "-z", "--", os.path.relpath(marker, top))
    done = capture((*at_top, *listed), env=git_env())
    if done.code:
        return marker, "git cannot be started" if done.code == 127 else complaint(done)
    return (marker if done.out else ""), ""


def _leads_nowhere(top: str) -> bool:
    """Tell whether a `.git` of ours names a repository that is not here, as in a container.

    Nobody can say then which files came with it. A folder that is none is none for git too.
    """
    dot_git = os.path.join(top, ".git")
    is_none = bool(top) and not os.path.isdir(dot_git) and not _git_dir(dot_git)
    return is_none and not foreign(top, dot_git)


def _is_wide(project: str) -> bool:
    return project in ("/", "/tmp", "/var/tmp", os.path.expanduser("~"))


def _searched(path: str) -> list[str]:
    """List the folders that may be the project's, the nearest first.

    As for git, those of another file system are none of them; nor is one above in which everybody
    may put something, as `/tmp`.
    """
    found = [path]
    across = os.environ.get("GIT_DISCOVERY_ACROSS_FILESYSTEM", "").lower() in _TRUE
    try:
        device = os.stat(path).st_dev
        while (parent := os.path.dirname(path)) != path:
            info = os.stat(parent)
            if info.st_mode & _SHARED == _SHARED or (info.st_dev != device and not across):
                break
            found.append(parent)
            path = parent
    except OSError:
        pass  # what cannot be looked at holds no project
    return found


def _first_with(folders: list[str], name: str) -> str:
    return next((one for one in folders if os.path.lexists(os.path.join(one, name))), "")


def _git_dir(dot_git: str) -> str:
    """Follow the `gitdir: PATH` file of a linked worktree or submodule; empty if there is none."""
    if os.path.isdir(dot_git):
        found = dot_git
    else:
        try:
            text = read_start(dot_git)
        except OSError:
            return ""
        if not text.startswith("gitdir:"):
            return ""
        found = os.path.normpath(os.path.join(os.path.dirname(dot_git), text[7:].strip()))
    return found if os.path.exists(os.path.join(found, "HEAD")) else ""


def _common_dir(git_dir: str) -> str:
    try:
        shared = read_start(os.path.join(git_dir, "commondir")).partition("\0")[0].strip()
        return os.path.normpath(os.path.join(git_dir, shared))
    except OSError:
        return git_dir


def _writable(journal: str, project: str) -> tuple[str, str]:
    """Return the folder to use, and the one that it stands in for when that cannot be written."""
    there = journal if os.path.lexists(journal) else os.path.dirname(journal)
    return (journal, "") if may_write(there) else (_state_folder(project), journal)


def may_write(folder: str) -> bool:
    """Tell whether we can write there, and may.

    As root we leave nothing in the folder of another: its owner could not read or remove it, and
    their git would break on a reference of ours.
    """
    return os.access(folder, os.W_OK | os.X_OK) and owner_if_root(folder) == 0


def _state_folder(project: str) -> str:
    from _blake2 import blake2b

    digest = blake2b(os.fsencode(project), digest_size=6).hexdigest()
    return os.path.join(state_folder(), f"{os.path.basename(project) or 'root'}-{digest}")


def limited_runs() -> str:
    """Return where runs that are no trials note what they would leave if they were killed."""
    return os.path.join(state_folder(), "limited-runs")
