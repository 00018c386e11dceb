"""Makes and changes config sets: `new`, `use`, and a copy for a frozen run."""

from __future__ import annotations

import os
import shutil

from relaunch.errors import PlaceError
from relaunch.proc import renaming
from relaunch.proc.capture import capture
from relaunch.proc.file_system import sync_file_system
from relaunch.proc.git import git_env
from relaunch.trial.place.hold import Lock
from relaunch.trial.place.sets import (
    BASE,
    check_inside,
    check_new_inside,
    current_name,
    drop_state,
    point,
    remember_link,
    resting_targets,
    targets_for,
    temporary,
    write_state,
)
from relaunch.trust import owner_if_root, whose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.trial.place.sets import ConfigSets, SetLink

_FORBIDDEN = frozenset("/@,*?[]\\'\" \t\n\0")


def new_set(
    sets: ConfigSets, name: str, *, journal: str, tell: Callable[[str], object]
) -> list[str]:
    """Make set `name` for every link of `sets` as a copy of the one in place; return the copies."""
    check_name(name)
    for link in sets.links:
        check_inside(sets.project, link)
        check_new_inside(sets.project, link, name)
        _check_new(link, name)
    made = []
    lock = Lock(journal)
    try:
        # Nobody else makes or moves sets meanwhile; trials that hold one are not disturbed.
        if any(not current_name(link) for link in sets.links):
            lock.alone(tell)
        else:
            _wait_for_gate(lock)
        for link in sets.links:
            _sweep(link)
            if not current_name(link):
                convert(link, journal)
            remember_link(journal, sets.project, link.link)
            if name != BASE:
                _copy(_resting(link, sets, journal), link.variant(name))
                made.append(link.variant(name))
    finally:
        lock.close()
    return made


def _wait_for_gate(lock: Lock) -> None:
    import fcntl

    fcntl.flock(lock.gate, fcntl.LOCK_EX)


def check_name(name: str) -> None:
    """Refuse names that a path or `-s a,b` could not carry."""
    if not name or name[0] in ".-" or _FORBIDDEN & set(name):
        raise PlaceError(
            f"`{name}` cannot be the name of a set: letters, digits, `-`, `_`, `.` and `+` can",
            hint="rl set new bf16 --from conf",
        )


def _check_new(link: SetLink, name: str) -> None:
    check_owner(link)
    if not os.path.lexists(link.link):
        raise PlaceError(f"{link.link} does not exist", hint="rl set new NAME --from conf")
    converted = bool(current_name(link))
    if os.path.lexists(link.variant(name)) and (converted or name != BASE):
        raise PlaceError(f"set `{name}` exists: {link.variant(name)}", hint=f"rl set use {name}")


def check_owner(link: SetLink) -> None:
    """Refuse as root to make a set in the folder of another, who could then not edit it."""
    folder = os.path.dirname(link.link)
    if owner_if_root(folder):
        raise PlaceError(
            f"{folder} belongs to {whose(folder)}: what root makes there, its owner cannot edit",
            hint="rl set new NAME  # as its owner",
        )


def _resting(link: SetLink, sets: ConfigSets, journal: str) -> str:
    target = resting_targets(sets, journal)[link.link]
    return os.path.join(os.path.dirname(link.link), target)


def _copy(source: str, wanted: str) -> None:
    """Copy under another name and rename, so that a half copy is never taken for a set."""
    folder, name = os.path.split(wanted)
    fresh = os.path.join(folder, f".{name}.rl-copy")
    discard(fresh)
    try:
        if os.path.isdir(source):
            shutil.copytree(source, fresh, symlinks=True)
        else:
            shutil.copy2(source, fresh)
        sync_file_system(fresh)  # else a power cut could leave the set, and empty files in it
        os.rename(fresh, wanted)
    except (OSError, shutil.Error) as error:
        discard(fresh)
        raise PlaceError(f"cannot copy {source} to {wanted}: {error}") from error


def _sweep(link: SetLink) -> None:
    """Remove the half copies of those who were killed while copying."""
    folder, start = os.path.split(link.before)
    if os.path.isdir(folder):
        for name in os.listdir(folder):
            if name.startswith(f".{start}") and name.endswith(".rl-copy"):
                discard(os.path.join(folder, name))


def discard(path: str) -> None:
    """Remove a file or folder of ours, if it is there."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


# --- the first set: `conf` becomes `conf@base`, and a link takes its name


def convert(link: SetLink, journal: str) -> None:
    """Turn the file or folder at `link` into its set `base` behind a link, in one step if possible.

    Exchanging the two names never leaves a moment without `link`; where the file system cannot,
    two renames do it, and the note lets the next run finish them.
    """
    base = link.variant(BASE)
    if os.path.lexists(base):
        raise PlaceError(
            f"{base} exists, but {link.link} is no link to it", hint=f"mv {base} {base}.old"
        )
    target = link.target(BASE)
    if os.path.dirname(base) != os.path.dirname(link.link):
        os.makedirs(os.path.dirname(base), exist_ok=True)
    write_state(journal, {"convert": [link.link, base, target]})
    try:
        os.symlink(target, base)  # becomes the link by the exchange; until then it points nowhere
        if not exchange(base, link.link):
            os.unlink(base)
            _convert_by_renames(link.link, base, target)
    except OSError as error:
        raise PlaceError(f"cannot turn {link.link} into {base}: {error.strerror}") from error
    drop_state(journal)


def _convert_by_renames(link: str, base: str, target: str) -> None:
    fresh = temporary(link)
    discard(fresh)
    os.symlink(target, fresh)
    if os.path.isfile(link) and not os.path.islink(link):
        try:
            os.link(link, base)  # a second name, so that the first can be replaced in one step
            os.rename(fresh, link)
            return
        except OSError:
            discard(base)
    os.rename(link, base)
    os.rename(fresh, link)


def exchange(one: str, other: str) -> bool:
    """Swap two names atomically; False where kernel or file system cannot."""
    try:
        renaming.exchange(one, other)
    except OSError:
        return False
    return True


# --- use, and frozen copies


def use_set(
    sets: ConfigSets, name: str, *, journal: str, tell: Callable[[str], object]
) -> dict[str, str]:
    """Point every link to set `name`, for good; waits while a trial holds another."""
    targets_for(sets, name)
    lock = Lock(journal)
    try:
        lock.alone(tell)
        targets = targets_for(sets, name)
        write_state(journal, {"links": targets})  # a kill from here on is finished, not undone
        for link, target in targets.items():
            point(link, target)
        drop_state(journal)
    finally:
        lock.close()
    return targets


def copy_into(sets: ConfigSets, name: str, root: str) -> None:
    """Give a copy of the project at `root` its own copy of a set, so that no swap can reach it."""
    for link, target in targets_for(sets, name).items():
        place = os.path.join(root, os.path.relpath(link, sets.project))
        os.makedirs(os.path.dirname(place), exist_ok=True)
        discard(place)
        _copy(os.path.realpath(os.path.join(os.path.dirname(link), target)), place)


def own_folder(root: str, folder: str) -> None:
    """Make a folder of a copy at `root` its own where it is shared: a link to the project's.

    Else a link that is turned in it would be the user's. What is in the folder stays shared.
    """
    inner = os.path.relpath(folder, root)
    top = os.path.realpath(root)
    place = root
    for name in [] if inner == "." else inner.split(os.sep):
        place = os.path.join(place, name)
        if not os.path.islink(place) or f"{os.path.realpath(place)}/".startswith(f"{top}/"):
            continue
        shared = os.path.realpath(place)
        os.unlink(place)
        os.mkdir(place)
        for entry in os.listdir(shared) if os.path.isdir(shared) else ():
            os.symlink(os.path.join(shared, entry), os.path.join(place, entry))
    os.makedirs(folder, exist_ok=True)


def tracked_by_git(project: str, link: str) -> bool:
    """Tell whether git tracks the link's path as a file or folder, which a link would replace."""
    listed = capture(("git", "-C", project, "ls-files", "-s", "--", link), env=git_env())
    lines = [line for line in listed.text.splitlines() if line]
    return listed.code == 0 and any(not line.startswith("120000") for line in lines)
