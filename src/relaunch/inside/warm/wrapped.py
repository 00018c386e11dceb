"""What Python does not tell: looks at paths, lines that are shown, the standard input.

Functions that pass for the real ones note what they are asked.
"""

from __future__ import annotations

import importlib.util
import os
import posix
import sys

from . import held
from .callers import from_makedirs, kind_only, shows_lines
from .role import GROUP, SESSION
from .states import is_of_a_package

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

    from .ledger import Ledger
    from .role import Role


_PSUTIL = "/psutil/"


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
    for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if old in group:
            group.add(new)
    if old in os.supports_effective_ids:
        os.supports_effective_ids.add(new)


def _wrap_stat(ledger: Ledger, name: str) -> None:
    real = getattr(posix, name)
    looked, measured = ledger._looked, ledger._measured

    def note(path: Any, dir_fd: int | None, frame: FrameType) -> None:
        if isinstance(path, int) or ledger.asleep:
            return
        if is_of_a_package(path):
            measured.add(path)
            return
        if shows_lines(frame):
            return
        try:
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

    # What is wrong with its arguments is for the function itself to say. And an exception goes on
    # as if it came from there: without this frame.
    def look(*args: Any, **more: Any) -> Any:
        try:
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
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    _disguise(look, real)
    setattr(os, name, look)


def _wrap_access(ledger: Ledger) -> None:
    real = posix.access

    def access(*args: Any, **more: Any) -> bool:
        try:
            path = args[0] if args else more.get("path")
            if path is not None and not isinstance(path, int):
                ledger.ask(ledger.full(path, more.get("dir_fd")))
            return real(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    _disguise(access, real)
    os.access = access
    real_link = posix.readlink

    def readlink(*args: Any, **more: Any) -> Any:
        try:
            target = real_link(*args, **more)
            path = args[0] if args else more["path"]
            ledger.follow(ledger.full(path, more.get("dir_fd")), os.fsdecode(target))
            return target
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    _disguise(readlink, real_link)
    os.readlink = readlink
    real_read = posix.read

    def read(*args: Any, **more: Any) -> bytes:
        try:
            if args and args[0] == 0:
                ledger.use_stdin()
            return real_read(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    _disguise(read, real_read)
    os.read = read


_real_open = posix.open


def _open(*args: Any, **more: Any) -> int:
    try:
        return _real_open(*args, **more)
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise


def _wrap_open() -> None:
    """Have `os.open` tell of which folder a path is meant; what is opened Python tells."""
    _disguise(_open, _real_open)
    os.open = _open


def opener(frame: FrameType) -> tuple[FrameType | None, int | None]:
    """Return who called `os.open`, and the folder that was given with it; None for any other."""
    if frame.f_code is not _open.__code__:
        return None, None
    return frame.f_back, frame.f_locals["more"].get("dir_fd")


def _wrap_getpid(ledger: Ledger) -> None:
    """Hear who knows the number of this process: a resumed one has another."""
    real = posix.getpid

    def getpid(*args: Any, **more: Any) -> int:
        try:
            file = sys._getframe(1).f_code.co_filename
            if (file in ledger.sources or _PSUTIL in file) and not ledger.forked.is_child:
                ledger.lose_sight("it asked for the number of its process")
            return real(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    _disguise(getpid, real)
    os.getpid = getpid


def _wrap_groups(role: Role) -> None:
    """Let a program lead a group or session once, as in a cold run, where it does so already."""
    real_group, real_session, real_move = posix.setpgrp, posix.setsid, posix.setpgid

    def setpgrp(*args: Any, **more: Any) -> None:
        try:
            if not args and not more and role.is_played() and role.believed != SESSION:
                return role.play(GROUP)
            return real_group(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    def setsid(*args: Any, **more: Any) -> None:
        try:
            if not args and not more and role.is_played() and not role.believed:
                return role.play(SESSION)
            return real_session(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

    def setpgid(*args: Any, **more: Any) -> None:
        try:
            own = (0, posix.getpid())
            is_own = not more and len(args) == 2 and args[0] in own and args[1] in own
            if is_own and role.is_played() and role.believed != SESSION:
                return role.play(GROUP)
            return real_move(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise

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
        return real(name, path, target)

    find_spec.__code__ = find_spec.__code__.replace(co_filename=real.__code__.co_filename)
    bootstrap._find_spec = util._find_spec = find_spec


def _wrap_terminal_size(ledger: Ledger) -> None:
    real = posix.get_terminal_size

    def get_terminal_size(*args: Any, **more: Any) -> os.terminal_size:
        try:
            found = real(*args, **more)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
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
            ledger.use_stdin()
            try:
                return super().readinto(buffer)
            except BaseException as error:
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise

        def readall(self) -> Any:
            ledger.use_stdin()
            return super().readall()

        def read(self, size: int | None = -1, /) -> Any:
            ledger.use_stdin()
            return super().read(-1 if size is None else size)

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
