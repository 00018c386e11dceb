"""Where the control group of this process is, read from what the kernel says."""

from __future__ import annotations

import os
import time

from relaunch.textfile import read_if_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "relaunch"
_GONE_S = 2.0


def own_group(version: int) -> str:
    """Return the folder of our own memory group; empty where there is none of that version."""
    return group_in(
        version, read_if_there("/proc/self/cgroup"), read_if_there("/proc/self/mountinfo")
    )


def group_in(version: int, cgroups: str, mounts: str) -> str:
    """Find the folder of a group in the words of /proc/self/cgroup and /proc/self/mountinfo."""
    inside = ""
    for line in cgroups.splitlines():
        _, _, rest = line.partition(":")
        names, _, path = rest.partition(":")
        if ("memory" in names.split(",")) if version == 1 else names == "":
            inside = path
    if not inside.startswith("/") or "/.." in inside:
        return ""
    for root, point in _mounts(version, mounts):
        root = root.rstrip("/")
        if inside == root or inside.startswith(root + "/"):
            return (point + inside[len(root) :]).rstrip("/")
    return ""


def _mounts(version: int, mounts: str) -> Iterator[tuple[str, str]]:
    """Give root and mount point of each mounted hierarchy of that version."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(), right.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        of_memory = kind[0] == "cgroup" and "memory" in kind[2].split(",")
        if of_memory if version == 1 else kind[0] == "cgroup2":
            yield fields[3], fields[4].replace("\\040", " ")


def new_name() -> str:
    """Return a name for a group that tells whose it is."""
    return f"{NAME}-{os.getpid()}-{time.monotonic_ns() // 1000}"


def remove(folder: str) -> bool:
    """Remove a group as soon as the last of its processes is gone."""
    deadline = time.monotonic() + _GONE_S
    while True:
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            return True
        except OSError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        else:
            return True


def release(folder: str, to: str) -> None:
    """Move who is left in a group to another; a limit without us would freeze them."""
    for pid in members(folder):
        try:
            write(to, "cgroup.procs", pid)
        except OSError:  # it is gone
            continue


def sweep(parent: str) -> list[str]:
    """Remove the groups that an rl which is gone left below `parent`; return them."""
    try:
        names = os.listdir(parent) if parent else []
    except OSError:
        return []
    found = []
    for name in names:
        head, _, rest = name.partition("-")
        pid = rest.partition("-")[0]
        if not (head == NAME and pid.isdecimal() and _is_gone(pid)):
            continue
        if remove(os.path.join(parent, name)):  # who was in it may just be ending
            found.append(name)
    return found


def _is_gone(pid: str) -> bool:
    """Tell whether a process has ended; one that nobody collected yet has."""
    return read_if_there(f"/proc/{pid}/stat").rpartition(")")[2].split()[:1] in ([], ["Z"], ["X"])


def sweep_all() -> list[str]:
    """Remove what rls that are gone left beside and below our own groups."""
    own = [folder for folder in (own_group(1), own_group(2)) if folder]
    around = dict.fromkeys([*own, *map(os.path.dirname, own)])
    return [name for folder in around for name in sweep(folder)]


def write(folder: str, name: str, value: object) -> None:
    """Write one setting of a group."""
    fd = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode("ascii"))
    finally:
        os.close(fd)


def number(folder: str, name: str, field: str = "") -> int:
    """Read one number of a group, or a field of a file that has several; -1 where it has none."""
    for line in read_if_there(os.path.join(folder, name)).splitlines():
        words = line.split()
        if not field and words and words[0].isdecimal():
            return int(words[0])
        if len(words) == 2 and words[0] == field and words[1].isdecimal():
            return int(words[1])
    return -1


def members(folder: str) -> list[int]:
    """List the processes of a group."""
    return [int(word) for word in read_if_there(os.path.join(folder, "cgroup.procs")).split()]
