"""What a path, a folder or a descriptor is right now, in the words that are noted and compared."""

from __future__ import annotations

import os
import posix
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

SMALL = 1 << 20
"""Files up to this size are known by their content, larger ones by time, size and inode."""
MAYBE_FOLDER = "absent or dir"
"""The kind of a folder that is made if it is not there."""
_LISTED = 2000
"""Names of a folder that are kept one by one."""


def absolute(path: str, dir_fd: int | None) -> str:
    if path.startswith("/"):
        return path
    at_cwd = dir_fd is None or dir_fd < 0
    return f"{os.getcwd() if at_cwd else posix.readlink(f'/proc/self/fd/{dir_fd}')}/{path}"


def tidy(path: str) -> str:
    if "/../" in path or path.endswith("/.."):
        folder, _, name = path.rpartition("/")
        if name == "..":
            return os.path.realpath(path)
        return f"{os.path.realpath(folder)}/{name}"
    if "//" in path or "/./" in path or path.endswith(("/", "/.")):
        return os.path.normpath(path)
    return path


def is_of_a_package(path: Any) -> bool:
    """Tell whether it lies among the installed packages, which are watched as a whole."""
    if not isinstance(path, str) or not path.startswith("/") or "/.." in path:
        return False
    return "/site-packages/" in path or "/dist-packages/" in path


def folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def short(path: str, cwd: str = "") -> str:
    cwd = cwd or os.getcwd()
    return path[len(cwd) + 1 :] if path.startswith(cwd + "/") else path


def mode_of(path: str) -> int:
    try:
        return posix.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def size_of(path: str) -> int:
    try:
        return posix.stat(path).st_size
    except (OSError, ValueError):
        return 0


def time_of(path: str) -> str:
    """Return time and size of a file, in one word; empty if there is none."""
    try:
        now = posix.stat(path)
    except (OSError, ValueError):
        return ""
    return f"{now.st_mtime_ns} {now.st_size}"


def kind_of(path: str) -> str:
    mode = mode_of(path)
    if not mode:
        return "dangling" if is_link(path) else "absent"
    if stat.S_ISREG(mode):
        return "file"
    return "dir" if stat.S_ISDIR(mode) else "other"


def is_link(path: str) -> bool:
    """Tell a symbolic link."""
    try:
        return stat.S_ISLNK(posix.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def stats_of(path: str) -> list[Any]:
    kind = kind_of(path)
    if kind != "file":
        return [kind]
    now = posix.stat(path)
    return [kind, now.st_mtime_ns, now.st_size, now.st_mode]


def access_of(path: str) -> list[Any]:
    try:
        now = posix.stat(path)
    except (OSError, ValueError):
        return ["absent"]
    return [kind_of(path), now.st_mode, now.st_uid, now.st_gid]


def content_of(path: str) -> list[Any]:
    try:
        now = posix.stat(path)
    except (OSError, ValueError):
        return ["absent"]
    if not stat.S_ISREG(now.st_mode):
        return ["dir" if stat.S_ISDIR(now.st_mode) else "other"]
    return ["file", now.st_mtime_ns, now.st_size, now.st_ino, now.st_mode, ""]


def lines_of(path: str) -> list[str]:
    """Return the lines of a source file, whatever it is encoded in; none if it cannot be read.

    By no means of the library: none may be loaded while Python shows why a program ends.
    """
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().split("\n")
    except OSError:
        return []


def digest_of(path: str, state: list[Any]) -> str:
    """Return the digest of a file that is still as it was, else nothing."""
    from _blake2 import blake2b

    try:
        with open(path, "rb") as file:
            data = file.read(SMALL + 1)
    except OSError:
        return ""
    if content_of(path)[:4] != state[:4]:
        return ""
    return blake2b(data, digest_size=16).hexdigest()


def names_in(path: str, without: Sequence[str], endings: Sequence[str], times: bool) -> Any:
    """Return the names in a folder, or a digest of many; None where it cannot be listed.

    Those with certain `endings`, if there are any, `/` for folders.
    """
    found = []
    hidden, kinds = set(without), tuple(endings)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name + "/" * entry.is_dir()
                is_meant = entry.name.endswith(kinds) or name.endswith(kinds) if kinds else True
                if entry.name in hidden or not is_meant:
                    continue
                if times and entry.is_file():
                    now = posix.stat(f"{path}/{entry.name}")
                    name += f"\0{now.st_mtime_ns}\0{now.st_size}"
                found.append(name)
    except OSError:
        return None
    found.sort()
    if len(found) <= _LISTED:
        return found
    from _blake2 import blake2b

    return blake2b("\n".join(found).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def modules_in(folder: str, leaves: Iterable[str]) -> list[str]:
    """Return the files in a folder that are modules or packages of these names."""
    wanted = set(leaves)
    found = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                leaf, _, ending = entry.name.partition(".")
                if leaf not in wanted:
                    continue
                if ending in ("py", "pyc") or ending.endswith("so"):
                    found.append(entry.name)
                elif not ending and mode_of(f"{entry.path}/__init__.py"):
                    found.append(f"{entry.name}/__init__.py")
    except OSError:
        pass
    return sorted(found)


def data_below(top: str, hidden: Iterable[str]) -> list[list[Any]] | None:
    """List files with their times and sizes, but sources and what is hidden; None if too many."""
    known = {*hidden}
    found: list[list[Any]] = []
    todo = [top]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    if entry.name.startswith((".", "__pycache__")) or entry.path in known:
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if not os.path.exists(f"{entry.path}/pyvenv.cfg"):
                            todo.append(entry.path)
                    elif entry.is_file() and not entry.name.endswith((".py", ".pyc")):
                        now = entry.stat()
                        found.append([entry.path, now.st_mtime_ns, now.st_size])
        except OSError:
            continue
        if len(found) > _LISTED:
            return None
    return sorted(found)


def terminal_settings() -> list[Any]:
    """Return how the terminal on the standard input is set up; empty if there is none."""
    if not os.isatty(0):
        return []
    from termios import error, tcgetattr

    try:
        return tcgetattr(0)
    except error:
        return []


def open_fds() -> list[int]:
    """List this process's descriptors."""
    return sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if identity_of(fd))


def identity_of(fd: int) -> tuple[int, int] | None:
    try:
        now = posix.fstat(fd)
    except OSError:
        return None
    return now.st_dev, now.st_ino
