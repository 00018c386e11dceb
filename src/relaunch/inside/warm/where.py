"""Where the parts of a warm program meet: a folder that is this user's alone, and sockets in it."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_LONGEST_ADDRESS = 100
_lstat = os.lstat  # as it was before the program's own looks at files are noted


def run_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder of this user's sockets and tapes, made if need be; OSError if not private.

    The one of the session where there is one: it goes away at logout, and with it all that waits.
    """
    session = environ.get("XDG_RUNTIME_DIR", "")
    if session and _is_private(session):
        folder = os.path.join(session, "relaunch")
    else:
        folder = f"/tmp/relaunch-{os.geteuid()}"
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        pass
    check_folder(folder)
    return folder


def cache_folder(environ: Mapping[str, str] = os.environ) -> str:
    """Return the folder for what was compiled, wherever that may be made; empty if nobody knows."""
    home = environ.get("HOME", "")
    cache = environ.get("XDG_CACHE_HOME") or (home and os.path.join(home, ".cache"))
    return os.path.join(cache, "relaunch", "code") if os.path.isabs(cache) else ""


def check_folder(folder: str) -> None:
    """PermissionError if others could reach into the folder."""
    if not _is_private(folder):
        raise PermissionError(f"`{folder}` must be a folder of yours that nobody else can enter")


def make_cache(folder: str) -> None:
    """Make a folder of what will be executed; OSError if anybody else can put something there."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    check_folder(folder)
    above = os.path.dirname(folder)
    found = _lstat(above)
    is_anybodys = found.st_mode & (stat.S_IWOTH | stat.S_ISVTX) == stat.S_IWOTH
    if found.st_uid not in (os.geteuid(), 0) or is_anybodys:
        raise PermissionError(1, "others can put something there", above)


def _is_private(folder: str) -> bool:
    try:
        found = _lstat(folder)
    except OSError:
        return False
    private = stat.S_IMODE(found.st_mode) == 0o700
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and private


def socket_path(run: str, key: str) -> str:
    """Return where the host of a program listens."""
    return os.path.join(run, f"{key}.sock")


def written_path(tape: str) -> str:
    """Return where a program says, at its end, which files it wrote."""
    return f"{tape}.written"


class Address:
    """The address of a socket, for as long as it is needed; also of one in a deep folder."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _LONGEST_ADDRESS:
            return self._path
        folder, name = os.path.split(self._path)
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._folder}/{name}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)


def leave_word(spec: dict[str, Any], error: BaseException) -> None:
    """Leave behind why there is no host, which should not happen."""
    import traceback

    try:
        path = os.path.join(spec["run"], f"{spec['key']}.trouble")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(error, file=file)
    except OSError:
        pass
