"""Mounts that only some processes see: made by one of ours, entered by the program before exec.

Without root this takes a user namespace, in which a person may mount what is theirs. Its ids are
those outside: nobody sees that they have changed.
"""

from __future__ import annotations

import os

from relaunch.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

RDONLY, NOSUID, NODEV, NOEXEC = 1, 2, 4, 8
REMOUNT, BIND, RECURSIVE, SLAVE = 32, 4096, 16384, 1 << 19
DETACH = 2
_NEWNS, _NEWUSER = 0x20000, 0x10000000


def mount(source: str, target: str, kind: str = "", flags: int = 0, options: str = "") -> None:
    """Mount as mount(2) does; OSError names the target."""
    _call(
        target, "mount",
        os.fsencode(source), os.fsencode(target), kind.encode() or None, flags,
        os.fsencode(options) or None,
    )  # fmt: skip


def pivot_root(folder: str) -> None:
    """Make a mount the root of these mounts; the old one lies over it until `let_go_of_root`."""
    number = {"x86_64": 155, "aarch64": 41}.get(os.uname().machine)
    if number is None:
        raise OSError(f"no small disk over / on {os.uname().machine}")
    os.chdir(folder)
    _call(folder, "syscall", number, b".", b".")


def let_go_of_root(old: int) -> None:
    """Take the root before away: who enters these mounts would see it."""
    os.fchdir(old)
    unmount(".")
    os.chdir("/")


def own_mounts(ask_for_ids: Callable[[], object]) -> bool:
    """Give this process mounts of its own; True when that took a user namespace.

    There it has no ids until `ask_for_ids()` returns: who gives them must be outside.
    """
    with_user = False
    try:
        _call("", "unshare", _NEWNS)
    except PermissionError:
        try:
            _call("", "unshare", _NEWUSER | _NEWNS)
        except OSError as error:
            raise OSError(f"no user namespaces here ({error.strerror})") from None
        with_user = True
        ask_for_ids()
    # What is mounted outside later is seen; nothing of ours is seen outside.
    mount("none", "/", flags=RECURSIVE | SLAVE)
    return with_user


def give_ids(pid: int) -> bool:
    """Give our child in a new user namespace the ids it has here: all of them, or but our own.

    True when it has all. Only root may give more than its own.
    """
    if os.geteuid() == 0 and all(_write(f"/proc/{pid}/{one}", _ids_here(one)) for one in _MAPS):
        return True
    _write(f"/proc/{pid}/setgroups", "deny")
    for name, own in zip(_MAPS, (os.geteuid(), os.getegid()), strict=True):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write(f"{own} {own} 1")
    return False


_MAPS = ("uid_map", "gid_map")


def _ids_here(name: str) -> str:
    """Return the map that leaves each id of this namespace as it is."""
    with open(f"/proc/self/{name}", encoding="ascii") as file:
        spans = [line.split() for line in file]
    return "\n".join(f"{inside} {inside} {count}" for inside, _, count in spans)


def _write(path: str, text: str) -> bool:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        return False
    return True


def is_first() -> bool:
    """Tell whether this is the machine's own user namespace, not one below it."""
    return os.readlink("/proc/self/ns/user") == "user:[4026531837]"


def has_many_ids() -> bool:
    """Tell whether files of others have an owner here; else they belong to nobody."""
    return sum(int(line.split()[2]) for line in _ids_here("uid_map").splitlines()) > 1


class World(Record):
    """The namespaces of a process of ours, open here, for a child of ours to enter."""

    user: int
    """-1: it has ours."""
    mounts: int
    root: int

    def enter(self) -> None:
        """Let this process see those mounts; its working directory is to be set anew."""
        if self.user >= 0:
            _call("", "setns", self.user, _NEWUSER)
        _call("", "setns", self.mounts, _NEWNS)
        os.fchdir(self.root)
        os.chroot(".")  # ours may not be the first of the namespace

    def close(self) -> None:
        """Let go of them; they live as long as a process is in them."""
        for fd in (self.user, self.mounts, self.root):
            if fd >= 0:
                os.close(fd)


def world_of(pid: int) -> World:
    """Open the namespaces of a process of ours."""
    proc = f"/proc/{pid}"
    ours = os.readlink("/proc/self/ns/user") == os.readlink(f"{proc}/ns/user")
    return World(
        user=-1 if ours else os.open(f"{proc}/ns/user", os.O_RDONLY),
        mounts=os.open(f"{proc}/ns/mnt", os.O_RDONLY),
        root=os.open(f"{proc}/root", os.O_PATH | os.O_DIRECTORY),
    )


def unmount(path: str) -> None:
    """Take the topmost mount at a place away."""
    _call(path, "umount2", os.fsencode(path), DETACH)


def mounts_below(folder: str) -> list[str]:
    """List what is mounted below a folder, and seen, outermost first."""
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        return read_mounts(file.read(), folder)


def read_mounts(text: str, folder: str) -> list[str]:
    """Read the table; several mounts at one place are one."""
    inside = folder.rstrip("/") + "/"
    found = {_unescaped(line.split(" ")[4]) for line in text.splitlines()}
    return sorted(path for path in found if path.startswith(inside) and path != inside)


def _unescaped(text: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, char)
    return text


def _call(subject: str, name: str, *words: bytes | int | None) -> None:
    import _ctypes

    if _function(name)(*words) != 0:
        number = _ctypes.get_errno()
        raise OSError(number, os.strerror(number), *([subject] if subject else []))


def _function(name: str) -> Callable[..., int]:
    """Return a function of the C library; `ctypes` would cost more than what is done with it."""
    import _ctypes

    class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]  # not subscriptable at run time
        _type_ = "i"

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
        _restype_ = Int

    here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
    found: Callable[..., int] = Function(_ctypes.dlsym(here, name))
    return found
