"""What files a process has open, who listens on a port, and who is refused where."""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MANY = 3


def open_files_words(pid: int) -> str:
    """Say how many files a process has open of how many, and what most of them are."""
    limit = _limit(pid)  # first: the process may end meanwhile
    kinds: dict[str, int] = {}
    total = 0
    for path in _open_files(pid):
        total += 1
        kinds[_kind(path)] = kinds.get(_kind(path), 0) + 1
    if not total:
        return ""
    most = sorted(kinds.items(), key=lambda one: -one[1])[:_MANY]
    told = ", ".join(f"{count} x {kind}" for kind, count in most)
    return f"{total} files open{f' of {limit}' if limit else ''}: {told}"


def _open_files(pid: int) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")
        except OSError:
            continue


def _kind(path: str) -> str:
    """Name what many open files have in common: a folder and an ending, or `sockets`."""
    if not path.startswith("/"):
        return {"socket": "sockets", "pipe": "pipes"}.get(path.partition(":")[0], path)
    folder, name = os.path.split(path.removesuffix(" (deleted)"))
    ending = os.path.splitext(name)[1]
    return f"{folder}/*{ending}" if any(char.isdigit() for char in name) else path


def _limit(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/limits", encoding="ascii") as file:
            for line in file:
                if line.startswith("Max open files"):
                    return int(line.split()[3])
    except (OSError, ValueError):
        pass
    return 0


def refusal(path: str) -> str:
    """Say which part of a path refuses: `drwx------ root:root /data`; nothing if it is not seen."""
    part = ""
    for name in path.split("/")[1:]:
        folder = part or "/"
        part = f"{part}/{name}"
        try:
            info = os.lstat(part)
        except PermissionError:
            return _mode_words(folder)
        except OSError:
            return _mode_words(folder)
    return _mode_words(part, info)


def _mode_words(path: str, info: os.stat_result | None = None) -> str:
    try:
        info = info or os.lstat(path)
    except OSError:
        return ""
    return f"{stat.filemode(info.st_mode)} {_user(info.st_uid)}:{_group(info.st_gid)} {path}"


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    import grp

    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def address_holder(address: str) -> str:
    """Say who listens on the port of `host:port`; nothing when that cannot be seen."""
    port = address.rpartition(":")[2]
    if not port.isdecimal():
        return ""
    sockets = {f"socket:[{number}]" for number in _listening(int(port))}
    if not sockets:
        return ""
    for name in os.listdir("/proc"):
        if name.isdecimal() and not sockets.isdisjoint(_open_files(int(name))):
            return f"process {name} has it: {command_of(int(name))}"
    return "a process of somebody else has it"


def _listening(port: int) -> Iterator[str]:
    for kind in ("tcp", "tcp6", "udp", "udp6"):
        try:
            with open(f"/proc/net/{kind}", encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        for row in rows:
            bound = int(row[1].rpartition(":")[2], 16)
            if bound == port and (row[3] == "0A" or kind.startswith("udp")):
                yield row[9]


def command_of(pid: int) -> str:
    """Return the command line of a process; nothing when it is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return os.fsdecode(file.read(4096).rstrip(b"\0").replace(b"\0", b" "))
    except OSError:
        return ""
