"""What Python does not tell: looks at paths, lines that are shown, the standard input.

Functions that pass for the real ones note what they are asked.
"""

from __future__ import annotations

import importlib.util
import os
import posix
import sys

from . import held, unseen
from .callers import from_makedirs, kind_only, shows_lines
from .role import GROUP, SESSION
from .states import is_of_a_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

    from .ledger import Ledger
    from .morph import Caller
    from .role import Role


_PSUTIL = "/psutil/"
_STAND_INS: set[CodeType] = set()
"""The code of functions that pass for others."""
_MORE = 1
"""The place of `more` among the variables of `_open`."""


def wrap(ledger: Ledger) -> None:
    _wrap_stat(ledger, "stat")
    _wrap_stat(ledger, "lstat")
    _wrap_access(ledger)
    _wrap_open()
    _wrap_getpid(ledger)
    _wrap_groups(ledger.role)
    _wrap_find_spec(ledger)
    _wrap_terminal_size(ledger)
    _wrap_stdin(ledger)


def _disguise(new: Any, old: Any) -> None:
    """Let a function pass for the one it stands for."""
    for name in ("__name__", "__qualname__", "__doc__"):
        try:
            setattr(new, name, getattr(old, name))
        except AttributeError:
            pass
    new.__module__ = "os"
    new.__annotations__ = {}
    new.__wrapped__ = old  # whose arguments are told
    _STAND_INS.add(new.__code__)
    for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if old in group:
            group.add(new)
    if old in os.supports_effective_ids:
        os.supports_effective_ids.add(new)


def real(value: Any) -> Any:
    """Return what a function of ours stands for; anything else as it is."""
    code = getattr(value, "__code__", None)
    return value.__wrapped__ if code is not None and code in _STAND_INS else value


def _wrap_stat(ledger: Ledger, name: str) -> None:
    real = getattr(posix, name)
    looked, measured = ledger._looked, ledger._measured

    def note(path: Any, dir_fd: int | None, frame: FrameType) -> None:
        if isinstance(path, int) or ledger.asleep:
            return
        mask = held.hold()
        try:
            if is_of_a_package(path):
                measured.add(path)
                return
            if shows_lines(frame):
                return
            ledger.catch_up()
            full = ledger.full(path, dir_fd)
            if kind_only(frame):
                ledger.look(full, from_makedirs(frame))
                looked.add(path)
            else:
                ledger.measure(full)
                measured.add(path)
        except Exception as error:
            ledger.lose_sight(f"os.{name} was not understood: {error}")
            if held.is_theirs(error):
                raise
        finally:
            held.release(mask)

    # What is wrong with its arguments is for the function itself to say.
    def look(*args: Any, **more: Any) -> Any:
        path = args[0] if args else more.get("path")
        dir_fd = more.get("dir_fd") if more else None
        if path.__hash__ is not None:  # else it is no path
            if dir_fd is not None:
                note(path, dir_fd, sys._getframe(1))
            elif path not in measured:
                frame = sys._getframe(1)
                if path not in looked or not kind_only(frame):
                    note(path, None, frame)
        return real(*args, **more)

    _disguise(look, real)
    setattr(os, name, look)


def _wrap_access(ledger: Ledger) -> None:
    real = posix.access

    def ask(path: Any, dir_fd: int | None) -> None:
        ledger.ask(ledger.full(path, dir_fd))

    def follow(path: Any, dir_fd: int | None, target: Any) -> None:
        ledger.follow(ledger.full(path, dir_fd), os.fsdecode(target))

    def access(*args: Any, **more: Any) -> bool:
        path = args[0] if args else more.get("path")
        if path is not None and not isinstance(path, int):
            held.apart(ask, path, more.get("dir_fd"))
        return real(*args, **more)

    _disguise(access, real)
    os.access = access
    real_link = posix.readlink

    def readlink(*args: Any, **more: Any) -> Any:
        target = real_link(*args, **more)
        path = args[0] if args else more["path"]
        held.apart(follow, path, more.get("dir_fd"), target)
        return target

    _disguise(readlink, real_link)
    os.readlink = readlink
    real_read = posix.read

    def read(*args: Any, **more: Any) -> bytes:
        if args and args[0] == 0:
            held.apart(ledger.use_stdin)
        return real_read(*args, **more)

    _disguise(read, real_read)
    os.read = read


_real_open = posix.open


def _open(*args: Any, **more: Any) -> int:
    return _real_open(*args, **more)


def _wrap_open() -> None:
    """Have `os.open` tell of which folder a path is meant; what is opened Python tells."""
    _disguise(_open, _real_open)
    os.open = _open


def opener(caller: Caller) -> list[int | None]:
    """Return the folder that was given to `os.open`, if it is that which opens a file."""
    if caller.code is not _open.__code__:
        return []
    return [caller.variable(_MORE).get("dir_fd")]


def _wrap_getpid(ledger: Ledger) -> None:
    """Hear who knows the number of this process: a resumed one has another."""
    real = posix.getpid

    def getpid(*args: Any, **more: Any) -> int:
        file = sys._getframe(1).f_code.co_filename
        if (file in ledger.sources or _PSUTIL in file) and not ledger.forked.is_child:
            ledger.lose_sight("it asked for the number of its process")
        return real(*args, **more)

    _disguise(getpid, real)
    os.getpid = getpid


def _wrap_groups(role: Role) -> None:
    """Let a program lead a group or session once, as in a cold run, where it does so already."""
    real_group, real_session, real_move = posix.setpgrp, posix.setsid, posix.setpgid

    def setpgrp(*args: Any, **more: Any) -> None:
        if not args and not more and role.is_played() and role.believed != SESSION:
            return role.play(GROUP)
        return real_group(*args, **more)

    def setsid(*args: Any, **more: Any) -> None:
        if not args and not more and role.is_played() and not role.believed:
            return role.play(SESSION)
        return real_session(*args, **more)

    def setpgid(*args: Any, **more: Any) -> None:
        own = (0, posix.getpid())
        is_own = not more and len(args) == 2 and args[0] in own and args[1] in own
        if is_own and role.is_played() and role.believed != SESSION:
            return role.play(GROUP)
        return real_move(*args, **more)

    for new, real in ((setpgrp, real_group), (setsid, real_session), (setpgid, real_move)):
        _disguise(new, real)
        setattr(os, real.__name__, new)


def _wrap_find_spec(ledger: Ledger) -> None:
    """Hear which modules are looked for, in whatever way."""
    bootstrap: Any = importlib._bootstrap
    util: Any = importlib.util
    real = bootstrap._find_spec

    def find_spec(name: str, path: Any, target: Any = None) -> Any:
        if name not in ledger.imported:
            ledger.add("imported", name)
        return unseen.in_sight(real, name, path, target)

    find_spec.__code__ = find_spec.__code__.replace(co_filename=real.__code__.co_filename)
    bootstrap._find_spec = util._find_spec = find_spec


def _wrap_terminal_size(ledger: Ledger) -> None:
    real = posix.get_terminal_size

    def get_terminal_size(*args: Any, **more: Any) -> os.terminal_size:
        found = real(*args, **more)
        ledger.terminal_sizes[args[0] if args else 1] = found.columns, found.lines
        return found

    _disguise(get_terminal_size, real)
    os.get_terminal_size = get_terminal_size


def _wrap_stdin(ledger: Ledger) -> None:
    """Have a standard input that tells when it is read."""
    import io

    old = sys.stdin
    if not isinstance(old, io.TextIOWrapper) or sys.__stdin__ is not old:
        return

    class Stdin(io.FileIO):
        def readinto(self, buffer: Any) -> Any:
            held.apart(ledger.use_stdin)
            return io.FileIO.readinto(
                self, buffer
            )  # as in all of ours, no super(): it needs a frame

        def readall(self) -> Any:
            held.apart(ledger.use_stdin)
            return io.FileIO.readall(self)

        def read(self, size: int | None = -1, /) -> Any:
            held.apart(ledger.use_stdin)
            return io.FileIO.read(self, -1 if size is None else size)

    Stdin.__name__ = Stdin.__qualname__ = "FileIO"
    Stdin.__module__ = "_io"
    try:
        raw = Stdin(0, "rb", closefd=False)
    except OSError:
        return
    raw.name = "<stdin>"
    new = io.TextIOWrapper(
        io.BufferedReader(raw),
        encoding=old.encoding,
        errors=old.errors,
        newline="\n",
        line_buffering=old.line_buffering,
    )
    new.mode = "r"  # type: ignore[misc]
    sys.stdin = sys.__stdin__ = new  # type: ignore[misc]
