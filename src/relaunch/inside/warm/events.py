"""What Python tells: the audit events that matter, and what is noted of each."""

from __future__ import annotations

import os
import sys

from . import clocks, cuda, held, questions, quiet, shown, unseen
from .callers import LIBRARIES, asks_about_the_system, imports, rotates, shows_lines
from .morph import Caller
from .native import (
    DYNAMO,
    GENERATORS,
    READERS,
    SEEDS,
    TORCH,
    watch_dynamo,
    watch_generators,
    watch_reader,
    watch_seed,
    watch_torch,
)
from .states import folder_of, kind_of
from .wrapped import opener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

    from .ledger import Ledger

_OURS = os.path.dirname(__file__) + "/"
_PYTEST_FOLDERS = ("__pycache__", ".pytest_cache")
_LAYOUT = "/relaunch/inside/layout.py"
_PACKAGES = (".py", "/")
"""What our plugin of pytest looks for in a checkout."""
_SHOWN: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "sys.excepthook": lambda args: (args[2], args[3]),
    "sys.unraisablehook": lambda args: (args[1].exc_value, args[1].exc_traceback),
}
"""Events with which Python shows an exception, and where it and its traceback are."""
_TRACING = ("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback")
_METADATA = (".dist-info", ".egg-info", ".egg", ".egg-link")
_WRITES = os.O_WRONLY | os.O_RDWR
_SOURCES = (".py", ".pyc")
_STDIN = (0, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_MEASURING = ("tell(", "fstat(", "st_size")
"""Words of programs that may ask an open file how long it is."""
_CARED_FOR = {*SEEDS, *GENERATORS, *READERS, cuda.MODULE, clocks.MODULE, TORCH}
"""Modules with functions that are wrapped once they are loaded."""


def hook_of(ledger: Ledger) -> Callable[[str, tuple[Any, ...]], None]:
    events = _Events(ledger)
    table = events.table()
    heeded = frozenset([*table, *_SHOWN, *_TRACING])

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event not in heeded:  # first: a large import tells of fifteen thousand others
            return
        if event in _TRACING:
            unseen.shelter()
            return
        if event in _SHOWN:
            before = quiet.enter()
            try:
                shown.show(ledger, *_SHOWN[event](args))
            except Exception as error:
                ledger.lose_sight(f"{event} was not understood: {error}")
            finally:
                quiet.leave(before)
            return
        try:
            frame = unseen.user(sys._getframe(1))
        except ValueError:  # nobody: Python itself shows a traceback, when the program is over
            return
        if not ledger.forked.is_child and events.is_of_an_import(event, args, frame):
            return
        caller = Caller(sys._getframe())
        folder = opener(caller) if event == "open" else []
        if folder:
            args = (*args, *folder)
        elif caller.code is not None and caller.code.co_filename.startswith(_OURS):
            return
        if ledger.asleep:
            return
        before = quiet.enter()
        try:
            ledger.catch_up()
            table[event](args, frame)
        except Exception as error:
            ledger.lose_sight(f"{event} was not understood: {error}")
            if held.is_theirs(error):
                raise
        finally:
            quiet.leave(before)

    return hook


class _Events:
    """The audit events that matter; each handler gets the arguments and who called."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._importing: set[str] = set()

    def table(self) -> dict[str, Callable[[Any, FrameType], None]]:
        both = {
            "open": self._open, "os.listdir": self._list, "os.scandir": self._list,
            "os.mkdir": self._mkdir, "os.rmdir": self._remove, "os.remove": self._remove,
            "os.rename": self._rename, "os.symlink": self._symlink, "os.link": self._link,
            "os.truncate": self._change, "os.chmod": self._change, "os.chown": self._change,
            "os.utime": self._utime, "os.chdir": self._chdir, "sqlite3.connect": self._sqlite,
            "builtins.input": self._input, "subprocess.Popen": self._popen,
            "socket.connect": self._connect, "socket.getaddrinfo": self._resolve,
            "socket.bind": self._bind, "import": self._import, "ctypes.dlopen": self._dlopen,
        }  # fmt: skip
        for event in ("os.fork", "os.forkpty"):
            both[event] = self._fork
        for event in ("os.system", "os.posix_spawn", "os.spawn", "os.exec"):
            both[event] = self._program
        return both

    def is_of_an_import(self, event: str, args: Any, frame: FrameType) -> bool:
        """Tell quickly what needs no notice though it happens thousands of times in an import.

        Not in forked processes: there, nobody compares statements.
        """
        if event == "import":
            name, library = args[:2]
            return library is None and name not in _CARED_FOR and not name.startswith(DYNAMO)
        if event == "open":  # what is no source is data of a package, as `pkgutil` reads it
            return str(args[0]).endswith(_SOURCES) and not args[2] & _WRITES and imports(frame)
        return event == "os.listdir" and imports(frame)

    def _open(self, args: Any, frame: FrameType) -> None:
        path, _, flags, *folder = args
        ledger = self.ledger
        if path in _STDIN and not flags & _WRITES:
            ledger.use_stdin()
        if isinstance(path, int):
            return
        if not flags & (_WRITES | os.O_CREAT | os.O_TRUNC):
            if path in ledger._read or shows_lines(frame):
                return
            if folder in ([], [None]):
                ledger._read.add(path)
            ledger.read(ledger.full(path, *folder))
        else:
            full = ledger.full(path, *folder)
            ledger.write(full, flags)
            if flags & os.O_APPEND and (rotates(frame) or ledger.mentions(*_MEASURING)):
                ledger.measure(full)

    def _list(self, args: Any, frame: FrameType) -> None:
        if imports(frame):
            return
        ledger, path = self.ledger, args[0]
        caller = frame.f_code.co_filename
        endings: tuple[str, ...] = _METADATA if "/importlib/metadata/" in caller else ()
        if caller.endswith(_LAYOUT):
            endings = _PACKAGES
        path = ledger.full("." if path is None or path == "" else path)
        if path and ("/_pytest/" in caller or endings is _PACKAGES):  # at names, not at times
            ledger.list(path, endings, False, _PYTEST_FOLDERS)
        elif path:
            ledger.list(path, endings, not caller.startswith(LIBRARIES))

    def _mkdir(self, args: Any, frame: FrameType) -> None:
        code = frame.f_code
        helper = code.co_name in ("makedirs", "mkdir") and code.co_filename.startswith(LIBRARIES)
        lenient = helper and bool(frame.f_locals.get("exist_ok"))
        self.ledger.make(self.ledger.full(args[0], args[2]), lenient)

    def _remove(self, args: Any, _: FrameType) -> None:
        self.ledger.remove(self.ledger.full(args[0], args[1]))

    def _rename(self, args: Any, _: FrameType) -> None:
        old, new, old_fd, new_fd = args
        self.ledger.move(self.ledger.full(old, old_fd), self.ledger.full(new, new_fd))

    def _symlink(self, args: Any, _: FrameType) -> None:
        self._new_name(self.ledger.full(args[1], args[2]))

    def _link(self, args: Any, _: FrameType) -> None:
        self.ledger.read(self.ledger.full(args[0], args[2]), digest=True)
        self._new_name(self.ledger.full(args[1], args[3]))

    def _new_name(self, path: str) -> None:
        if path:
            self.ledger.look(path)
            self.ledger.look(folder_of(path))
            self.ledger.wrote(path)

    def _change(self, args: Any, _: FrameType) -> None:
        path = self.ledger.full(args[0])
        if path and kind_of(path) == "file":
            self.ledger.read(path, digest=True)
            self.ledger.wrote(path)

    def _utime(self, args: Any, frame: FrameType) -> None:
        self._change(args, frame)
        self.ledger.add("timed", self.ledger.full(args[0]))

    def _chdir(self, _: Any, __: FrameType) -> None:
        self.ledger.moved()

    def _sqlite(self, args: Any, _: FrameType) -> None:
        path = args[0]
        if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
            return
        path = os.fsdecode(path)
        if path in ("", ":memory:") or "mode=memory" in path:
            return
        if path.startswith("file:"):
            path = _unquoted(path[5:].partition("?")[0])
            path = path[2:] if path.startswith("///") else path
        path = self.ledger.full(path)
        if self.ledger.mentions("attach"):
            self.ledger.add("readers", "sqlite3")
        for end in ("", "-journal", "-wal", "-shm"):
            if path:
                self.ledger.add("databases", path + end)
                self.ledger.write(path + end, os.O_RDWR)

    def _input(self, _: Any, __: FrameType) -> None:
        self.ledger.use_stdin()

    def _popen(self, args: Any, frame: FrameType) -> None:
        program, command, cwd, env = args
        words = questions.words_of(command)
        if program:
            words[:1] = questions.words_of(program)
        self._ran(words, frame, cwd, env)

    def _program(self, args: Any, frame: FrameType) -> None:
        path, *rest = args[1:] if isinstance(args[0], int) else args
        words = questions.words_of(path)
        if rest:
            words += questions.words_of(rest[0])[1:]
        self._ran(words, frame, env=rest[1] if len(rest) > 1 else None)

    def _ran(self, words: list[str], frame: FrameType, cwd: Any = None, env: Any = None) -> None:
        if asks_about_the_system(frame):
            return
        if not questions.is_known(self.ledger, words, cwd, env):
            self.ledger.lose_sight(f"it ran another program: {os.path.basename(words[0])[:60]}")

    def _fork(self, _: Any, __: FrameType) -> None:
        self.ledger.forked.before()

    def _connect(self, args: Any, _: FrameType) -> None:
        address = args[1]
        if isinstance(address, tuple):
            self.ledger.add("network", str(address[0]))

    def _bind(self, args: Any, _: FrameType) -> None:
        address = args[1]
        if isinstance(address, (str, bytes)) and address[:1] not in ("", b"", "\0", b"\0"):
            self._new_name(self.ledger.full(address))

    def _resolve(self, args: Any, _: FrameType) -> None:
        self.ledger.add("network", os.fsdecode(args[0] or b""))

    def _dlopen(self, args: Any, _: FrameType) -> None:
        name = os.fsdecode(args[0] or "")
        if "/" in name:  # else it is one of the system's
            self.ledger.read(self.ledger.full(name))

    def _import(self, args: Any, frame: FrameType) -> None:
        name, library = args[:2]
        if library is not None:
            self.ledger.read(self.ledger.full(library))
        is_new = name.startswith(DYNAMO) and DYNAMO not in self._importing
        if is_new and watch_dynamo(self.ledger, frame):
            self._importing.add(DYNAMO)
        if name in _CARED_FOR and name not in self._importing | {*sys.modules}:
            self._importing.add(name)
            # Loaded here, so that nobody can have its functions before they are wrapped.
            from importlib import import_module

            try:
                module = import_module(name)
            except BaseException:
                return  # the program will see the same
            if name in GENERATORS:
                watch_generators(self.ledger, module)
            if name in SEEDS:
                watch_seed(self.ledger, module)
            if name in READERS:
                watch_reader(self.ledger, module)
            if name == TORCH:
                watch_torch(self.ledger, module)
            if name == clocks.MODULE:
                clocks.care_for(module)
            if name == cuda.MODULE:
                cuda.watch(module, lambda frame: self.ledger.first_use(frame))


def _unquoted(path: str) -> str:
    if "%" not in path:
        return path
    from urllib.parse import unquote

    return unquote(path)
