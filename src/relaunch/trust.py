"""Whose folders and files are used, and what the user has allowed: one rule, in one place.

The rule is git's: a folder and what lies in it must belong to the user (for root under sudo also to
the user who called it). What belongs to somebody else is used only where the user said so, in
`trust.folders` of their own settings or by `rl trust FOLDER`.
"""

from __future__ import annotations

import os
from stat import S_ISLNK

from relaunch.jsontext import dumps, loads
from relaunch.textfile import read_open

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

_ROOT = 0


def me() -> frozenset[int]:
    """Return the ids of the user: under sudo those of both."""
    own, caller = os.geteuid(), os.environ.get("SUDO_UID", "")
    both = own == _ROOT and caller.isascii() and caller.isdecimal()
    return frozenset((own, int(caller))) if both else frozenset((own,))


def foreign(folder: str, *entries: str, opened: Iterable[int] = ()) -> str:
    """Return the first of a folder, what lies in it and open files that is somebody else's.

    A link counts with what it leads to; what is not there is nobody's. Nothing is returned where
    the user allowed the folder.
    """
    mine = me()
    for path, owner in _owners((folder, *entries), opened):
        if owner not in mine:
            return "" if is_allowed(folder) else path
    return ""


def _owners(paths: tuple[str, ...], opened: Iterable[int]) -> Iterator[tuple[str, int]]:
    for path in paths:
        try:
            found = os.lstat(path)
            yield path, found.st_uid
            if S_ISLNK(found.st_mode):
                yield path, os.stat(path).st_uid
        except OSError:
            continue
    for fd in opened:
        yield paths[-1], os.fstat(fd).st_uid


def is_of_root(fd: int) -> bool:
    """Tell whether root has put an open file where it is."""
    return os.fstat(fd).st_uid == _ROOT


def owners_are_safe(*paths: str) -> bool:
    """Tell whether root or the user alone could have put programs where they are."""
    safe = me() | {_ROOT}
    try:
        return all(os.lstat(path).st_uid in safe for path in paths)
    except OSError:
        return False


def owner_if_root(folder: str) -> int:
    """Return whose a folder is, where we are root and it is another's; else 0."""
    try:
        return 0 if os.geteuid() else os.stat(folder).st_uid
    except OSError:
        return 0


def whose(path: str) -> str:
    """Name the owner of a path, for people."""
    try:
        uid = os.lstat(path).st_uid
        if uid in me():
            uid = os.stat(path).st_uid
    except OSError:
        return "another user"
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def trusts_all() -> bool:
    """Tell whether the user said, as for CI, that nothing has to be asked."""
    return os.environ.get("RELAUNCH_TRUST") == "1"


# --- what the user has allowed --------------------------------------------------------------------


def is_allowed(folder: str) -> bool:
    """Tell whether the user said that this folder may be used, whoever owns it."""
    real = os.path.realpath(folder)
    for said in (*_in_settings(), *read_store()["folders"]):
        if said == "*":
            return True
        below = said.endswith("/*")
        named = os.path.realpath(os.path.expanduser(said[:-2] if below else said))
        if real == named or (below and real.startswith(os.path.join(named, ""))):
            return True
    return False


def own_settings() -> str:
    """Return where the user's own settings are; the file need not exist."""
    return os.path.join(base_folder("XDG_CONFIG_HOME", ".config"), "relaunch", "config.toml")


def base_folder(variable: str, below_home: str) -> str:
    """Return a folder that a variable names, else that of the home.

    By the specification a relative one is not valid: it would be among the files of a clone.
    """
    named = os.environ.get(variable, "")
    return named if os.path.isabs(named) else os.path.join(os.path.expanduser("~"), below_home)


def _in_settings() -> list[str]:
    """Read `trust.folders` before any other settings: those may lie in the folder in question."""
    import tomllib

    try:
        found: Any = tomllib.loads(_read_own(own_settings()))
        said = found.get("trust", {}).get("folders", ())
    except (OSError, ValueError, AttributeError):
        return []  # what is wrong with it is said where the settings are read
    return [one for one in said if isinstance(one, str)] if isinstance(said, list) else []


def _read_own(path: str) -> str:
    """Read a file that root or the user alone could have put there."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if os.fstat(fd).st_uid != os.geteuid() and not is_of_root(fd):
            raise PermissionError(1, "belongs to another user", path)
        return read_open(fd).decode("utf-8")
    finally:
        os.close(fd)


def state_folder() -> str:
    """Return the folder for what is remembered of the user, not of one project.

    The home can be another user's: `su` and `sudo` can leave HOME as it was. Root then has its own.
    """
    own, home = os.geteuid(), os.path.expanduser("~")
    state = base_folder("XDG_STATE_HOME", ".local/state")
    folder = os.path.join(state, "relaunch")
    places = (folder,) if own else (folder, state, home)
    if all(owner == own for _, owner in _owners(places, ())):
        return folder
    import pwd

    return os.path.join(pwd.getpwuid(own).pw_dir, ".local/state/relaunch")


def read_store() -> dict[str, dict[str, Any]]:
    """Return what `rl trust` has recorded: `folders`, and `consents` by their digest."""
    try:
        found = loads(_read_own(_store()))
    except (OSError, ValueError):
        found = {}
    kinds = ("folders", "consents")
    kept = {kind: found.get(kind) if isinstance(found, dict) else None for kind in kinds}
    return {kind: value if isinstance(value, dict) else {} for kind, value in kept.items()}


def change_store(kind: str, name: str, value: dict[str, Any] | None) -> None:
    """Record one entry, or forget it; OSError if that cannot be written."""
    import fcntl

    os.makedirs(state_folder(), mode=0o700, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(f"{_store()}.lock", flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = read_store()
        kept[kind].pop(name, None)
        if value is not None:
            kept[kind][name] = value
        _replace(_store(), dumps(kept).encode("ascii") + b"\n")
    finally:
        os.close(lock)


def _store() -> str:
    return os.path.join(state_folder(), "trust.json")


def _replace(path: str, data: bytes) -> None:
    temp = f"{path}.tmp"  # one at a time writes it: what is there a kill has left
    try:
        os.unlink(temp)
    except FileNotFoundError:
        pass
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    os.replace(temp, path)
