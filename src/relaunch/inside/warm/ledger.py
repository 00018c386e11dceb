"""Notes what a program has seen of the world and done to it, and tells whether that still holds.

A program that is resumed must do what one would do that is started now. So each thing it looked at
is noted as it was at the first look, unless it had made that thing itself; and each file it wrote
is noted too, to be put back. What Python says through audit events and a few wrapped functions is
seen. Nothing here may break the program: where we cannot follow, `blind` says why.
"""

from __future__ import annotations

import linecache
import os
import posix
import stat
import sys

from . import cuda, quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from types import FrameType
    from typing import Any

SMALL = 1 << 20
"""Files up to this size are known by their content, larger ones by time, size and inode."""
_DIGESTS = 4000
_DIGEST_BYTES = 64 << 20
"""How much is read for one manifest."""
_LISTED = 2000
"""Names of a folder that are kept one by one."""
_IMPORTER = "<frozen importlib._bootstrap_external>"
_LIBRARY = os.path.dirname(os.__file__) + "/"
_LIBRARIES = (_LIBRARY, "<frozen ")
_OURS = os.path.dirname(__file__) + "/"
_KIND_ONLY = frozenset(
    ("exists", "lexists", "isfile", "isdir", "islink", "ismount", "isjunction", "realpath",
     "_joinrealpath", "is_file", "is_dir", "is_symlink", "is_mount", "resolve", "_samefile",
     "copyfile", "makedirs", "mkdir", "walk", "_walk", "_islink", "_realpath")
)  # fmt: skip
"""Functions of the standard library that look only whether something is there, and what it is."""
_MAYBE_FOLDER = "absent or dir"
_NOT_NOTED = (".pyc", ".so", ".pyd", ".pth")
_PYTEST_ORDERS = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw")
_PYTEST_FOLDERS = ("__pycache__", ".pytest_cache")
_SHOWN = ("sys.excepthook", "sys.unraisablehook")
_METADATA = (".dist-info", ".egg-info", ".egg", ".egg-link")
_HARMLESS = frozenset(
    ("uname", "ldconfig", "/sbin/ldconfig", "lscpu", "nproc", "hostname", "whoami", "getconf",
     "nvidia-smi", "rocm-smi", "stty", "tput")
)  # fmt: skip
"""Programs that only tell about the machine."""
_SEEDS = {"random": ("seed", "setstate"), "numpy.random.mtrand": ("seed", "set_state")}
"""Modules with a random generator for all, and how it is seeded."""
_NATIVE: dict[str, dict[str, tuple[int, str]]] = {
    "torch.serialization": {"save": (1, "w")},
    "torch.jit._serialization": {"save": (1, "w"), "load": (0, "r")},
    "safetensors._safetensors_rust": {"safe_open": (0, "r"), "serialize_file": (1, "w")},
    "h5py._hl.files": {"make_fid": (0, "+")},
    "cv2": {"imread": (0, "r"), "imreadmulti": (0, "r"), "imwrite": (0, "w")},
    "soundfile": {"read": (0, "r"), "write": (0, "w")},
}
"""Functions that open files without Python's help: which argument is the path, and what for."""
_UNSEEN = frozenset(
    ("pyarrow", "polars", "duckdb", "tokenizers", "sentencepiece", "netCDF4", "decord", "av",
     "rasterio", "lightgbm", "xgboost", "faiss", "torchaudio", "torchvision.io")
)  # fmt: skip
"""Modules that can read files in ways that we do not see."""
_WRITES = os.O_WRONLY | os.O_RDWR

installed: Ledger | None = None
"""The ledger of this process."""


class Ledger:
    """What the program has observed and done so far; survives a fork with the process."""

    def __init__(self) -> None:
        self.kinds: dict[str, str] = {}
        """Paths of which only the kind was of interest."""
        self.modes: dict[str, list[Any]] = {}
        """Paths that were asked for permissions."""
        self.stats: dict[str, list[Any]] = {}
        """Paths whose size and time were seen."""
        self.contents: dict[str, list[Any]] = {}
        """Files that were read: kind, time, size, inode, mode, digest."""
        self.names: dict[str, list[Any]] = {}
        """Folders that were listed: names, those to leave out, endings of interest, with times."""
        self.lines: dict[str, dict[int, str]] = {}
        """Single lines of source files that were shown."""
        self.links: dict[str, str] = {}
        """Symbolic links that were read."""
        self.written: dict[str, int] = {}
        """Paths that the program wrote or removed, with -1; if only appended to, its old size."""
        self.timed: set[str] = set()
        """Written paths whose times were set on purpose."""
        self.sources: Collection[str] = ()
        """Files of the project that have sites."""
        self.databases: set[str] = set()
        self.blind = ""
        """Why it is not known any more what the program has seen; empty while it is."""
        self.asleep = False
        """True while we ourselves put the world back."""
        self.stdin_used = False
        self.stdin_at = 0
        self.watched: set[str] = set()
        """Random generators whose seeding is noticed."""
        self.seeded: set[str] = set()
        """Random generators that the program seeded."""
        self.network: set[str] = set()
        self.imported: set[str] = set()
        """Modules that were asked for, found or not."""
        self.kept: dict[str, Any] = {}
        """Contents of written files, shared by the snapshots as long as they do not change."""
        self._lines_seen = False
        self._skip: tuple[str, ...] = ()
        self.private: tuple[str, ...] = ()
        """Folders of ours: sockets there are ours."""
        self.own_fds: dict[int, tuple[int, int]] = {}
        """Descriptors that were open before the program began, and what they were."""
        self.streams: list[tuple[int, int] | None] = [None, None, None]
        self._read: set[Any] = set()
        self._looked: set[Any] = set()
        self._measured: set[Any] = set()

    # --- beginning

    def install(self, skip: Sequence[str]) -> None:
        """Watch this process from now on, but never paths that begin with one of `skip`."""
        global installed
        installed = self
        self.private = tuple(os.path.join(one, "") for one in skip)
        self._skip = (*_parts_of_python(skip), "/proc/", "/sys/", "/dev/")
        self.know_fds()
        if "random" in sys.modules:
            _watch_seed(self, sys.modules["random"])
        _wrap(self)
        sys.addaudithook(_hook(self))

    def know_fds(self) -> None:
        """Take all descriptors that are open now for ours, and learn what the streams are."""
        self.own_fds = {fd: identity for fd in open_fds() if (identity := _identity(fd))}
        self.streams = [_identity(fd) for fd in range(3)]
        try:
            self.stdin_at = os.lseek(0, 0, os.SEEK_CUR)
        except OSError:
            pass

    # --- what the host gets

    @property
    def lines_seen(self) -> bool:
        """Tell whether the program may have shown line numbers."""
        return self._lines_seen or _logs_lines()

    def manifest(self) -> dict[str, Any]:
        """Return all observations as JSON, for `changed`."""
        self._digest_all()
        return {
            "cwd": os.getcwd(),
            "kinds": self.kinds,
            "modes": self.modes,
            "stats": self.stats,
            "contents": self.contents,
            "names": self.names,
            "links": self.links,
            "lines": {file: [*lines.items()] for file, lines in self.lines.items()},
            "observed": sorted({*self.contents, *self.names, *self.stats}),
            "modules": self._modules(),
            "network": sorted(self.network),
            **self._unseen(),
        }

    def _unseen(self) -> dict[str, Any]:
        """Note all data below the current folder, where a library is loaded that reads unseen."""
        readers = sorted(_UNSEEN & {*sys.modules})
        if not readers:
            return {}
        hidden = [*self.written, *self.sources]
        return {"unseen": readers, "data": [hidden, _data_below(os.getcwd(), hidden)]}

    def _modules(self) -> dict[str, list[Any]]:
        """Return where modules were looked for, which ones, and what was found there.

        Only in folders of the project: a new file there may come before what was found.
        """
        asked: dict[str, set[str]] = {}
        for name in [*self.imported]:
            parent, _, leaf = name.rpartition(".")
            folders = getattr(sys.modules.get(parent), "__path__", ()) if parent else sys.path
            for folder in [*folders]:
                inside = self.full(f"{folder or '.'}/x") if isinstance(folder, str) else ""
                if inside:
                    asked.setdefault(_folder(inside), set()).add(leaf)
        return {
            folder: [sorted(leaves), _found(folder, leaves)] for folder, leaves in asked.items()
        }

    def _digest_all(self) -> None:
        left, room = _DIGESTS, _DIGEST_BYTES
        for path, state in self.contents.items():
            if state[0] == "file" and not state[5] and state[2] <= min(SMALL, room) and left:
                state[5] = _digest_if(path, state)
                left -= 1
                room -= state[2]

    # --- looking

    def full(self, path: Any, dir_fd: int | None = None) -> str:
        """Return the absolute path; empty for what is no path or not to be noted."""
        if isinstance(path, int):
            return self.full(posix.readlink(f"/proc/self/fd/{path}"))
        if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
            return ""  # Python says so itself
        full = _tidy(_absolute(os.fsdecode(path), dir_fd))
        if full.startswith(self._skip) and not full.startswith("/dev/shm/"):
            return ""
        if full.endswith(_NOT_NOTED) or "/site-packages/" in full or "/dist-packages/" in full:
            return ""
        if _is_of_pytest(full) or "/__pycache__" in full:
            return ""
        return "" if "\0" in full else full

    def look(self, path: str, lenient: bool = False) -> None:
        """Note whether something is there, and of which kind; `lenient` if a folder may be."""
        if path and path not in self.kinds and path not in self.written:
            kind = _kind(path)
            either = lenient and kind in _MAYBE_FOLDER.split(" or ")
            self.kinds[path] = _MAYBE_FOLDER if either else kind

    def measure(self, path: str) -> None:
        """Note size, time and mode."""
        if path and path not in self.stats and path not in self.written:
            if path in self.sources:  # they are compared statement by statement
                self.look(path)
            else:
                self.stats[path] = _stats(path)

    def read(self, path: str, digest: bool = False) -> None:
        """Note the content."""
        if not path or self.written.get(path, 0) == -1:
            return
        if path in self.written:
            # What it held before would matter now, and only its size is known.
            self.blind = self.blind or f"a file was appended to, then read: {_short(path)}"
        state = self.contents.get(path)
        if state is None:
            state = self.contents[path] = _state(path)
        if digest and state[0] == "file" and not state[5] and state[2] <= SMALL:
            state[5] = _digest_if(path, state)

    def list(
        self, path: str, endings: Sequence[str], times: bool, hidden: Sequence[str] = ()
    ) -> None:
        """Note the names in a folder, but those that the program made or removed itself."""
        old = self.names.get(path)
        if not path or (old and not old[2] and (old[3] or not times)):
            return
        if path in self.written and self.kinds.get(path) == "absent":
            return
        if self.kinds.get(path) == _MAYBE_FOLDER:
            # With `exist_ok` it does not matter whether it was there; but what is in it does.
            self.kinds[path] = "absent" if path in self.written else "dir"
            if path in self.written:
                return
        own = sorted(one.rpartition("/")[2] for one in self.written if _folder(one) == path)
        own += hidden
        self.names[path] = [_names(path, own, endings, times), own, [*endings], times]

    # --- doing

    def write(self, path: str, flags: int) -> None:
        """Note that a file is opened for writing."""
        if not path or not stat.S_ISREG(_mode(path) or stat.S_IFREG):
            return
        appends = flags & os.O_APPEND and flags & os.O_ACCMODE == os.O_WRONLY
        if flags & os.O_EXCL:
            self.look(path)
        elif appends and not flags & os.O_TRUNC and path not in self.contents:
            self.look(_folder(path))
            self.written.setdefault(path, _size(path))
            return
        elif not flags & os.O_TRUNC:
            self.read(path, digest=True)
        if path in self.contents:
            self.read(path, digest=True)
        self.look(_folder(path))
        self.written[path] = -1

    def remove(self, path: str) -> None:
        """Note that a file or folder is removed."""
        if not path:
            return
        if path in self.contents:
            self.read(path, digest=True)
        self.look(path)
        self.written[path] = -1

    def move(self, old: str, new: str) -> None:
        """Note that a file gets another name."""
        if old and _kind(old) == "dir":
            self.blind = self.blind or f"a folder was renamed: {_short(old)}"
        if old:
            self.read(old, digest=True)
            self.remove(old)
        if new:
            self.look(_folder(new))
            if new in self.contents:
                self.read(new, digest=True)
            self.written[new] = -1

    def make(self, path: str, lenient: bool) -> None:
        """Note that a folder is made; `lenient` where it is no matter whether it was there."""
        if not path:
            return
        self.look(path, lenient)
        if _kind(path) == "absent":
            self.look(_folder(path), lenient)
            self.written[path] = -1

    # --- lines

    def line(self, file: str, number: int, text: str) -> None:
        """Note that one line of a source file was shown."""
        path = self._source(file)
        if path:
            self._lines_seen = True
            self.lines.setdefault(path, {}).setdefault(number, text)

    def all_lines(self, file: str) -> None:
        """Note that a whole source file was read as text."""
        path = self._source(file)
        if path:
            self._lines_seen = True
            self.read(path)

    def shown(self) -> None:
        """Note that Python itself shows a traceback, with the numbers of lines."""
        self._lines_seen = True

    def _source(self, file: str) -> str:
        if not isinstance(file, str) or file.startswith("<"):
            return ""
        return self.full(file)

    def moved(self) -> None:
        """Forget short cuts that hold for one current folder only."""
        self._read.clear()
        self._looked.clear()
        self._measured.clear()


# --- what Python tells


def _hook(ledger: Ledger) -> Callable[[str, tuple[Any, ...]], None]:
    table = _Events(ledger).table()
    get = table.get

    def hook(event: str, args: tuple[Any, ...]) -> None:
        handler = get(event)
        if handler is None:
            if event in _SHOWN:
                ledger.shown()
            return
        try:
            frame = sys._getframe(1)
        except ValueError:  # nobody: Python itself shows a traceback, when the program is over
            return
        if ledger.asleep or frame.f_code.co_filename.startswith(_OURS):
            return
        before = quiet.enter()
        try:
            handler(args, frame)
        except Exception as error:
            ledger.blind = ledger.blind or f"{event} was not understood: {error}"
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
            "import": self._import,
        }  # fmt: skip
        for event in ("os.fork", "os.forkpty", "pty.spawn"):
            both[event] = self._child
        for event in ("os.system", "os.posix_spawn", "os.spawn", "os.exec"):
            both[event] = self._program
        return both

    def _open(self, args: Any, frame: FrameType) -> None:
        path, _, flags = args
        ledger = self.ledger
        if isinstance(path, int):
            return
        if not flags & (_WRITES | os.O_CREAT | os.O_TRUNC):
            if path in ledger._read or _imports(frame) or _shows_lines(frame):
                return
            ledger._read.add(path)
            ledger.read(ledger.full(path))
        else:
            ledger.write(ledger.full(path), flags)

    def _list(self, args: Any, frame: FrameType) -> None:
        if _imports(frame):
            return
        ledger, path = self.ledger, args[0]
        caller = frame.f_code.co_filename
        endings = _METADATA if "/importlib/metadata/" in caller else ()
        path = ledger.full("." if path is None or path == "" else path)
        if path and "/_pytest/" in caller:  # it looks for tests, and at no times
            ledger.list(path, endings, False, _PYTEST_FOLDERS)
        elif path:
            ledger.list(path, endings, not caller.startswith(_LIBRARIES))

    def _mkdir(self, args: Any, frame: FrameType) -> None:
        code = frame.f_code
        helper = code.co_name in ("makedirs", "mkdir") and code.co_filename.startswith(_LIBRARIES)
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
            self.ledger.look(_folder(path))
            self.ledger.written[path] = -1

    def _change(self, args: Any, _: FrameType) -> None:
        path = self.ledger.full(args[0])
        if path and _kind(path) == "file":
            self.ledger.read(path, digest=True)
            self.ledger.written[path] = -1

    def _utime(self, args: Any, frame: FrameType) -> None:
        self._change(args, frame)
        self.ledger.timed.add(self.ledger.full(args[0]))

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
            path = path[5:].partition("?")[0]
            path = path[2:] if path.startswith("///") else path
        path = self.ledger.full(path)
        for end in ("", "-journal", "-wal", "-shm"):
            if path:
                self.ledger.databases.add(path + end)
                self.ledger.write(path + end, os.O_RDWR)

    def _input(self, _: Any, __: FrameType) -> None:
        self.ledger.stdin_used = True

    def _popen(self, args: Any, frame: FrameType) -> None:
        program = args[0] or (args[1] if isinstance(args[1], (str, bytes)) else args[1][0])
        self._ran(os.fsdecode(program), frame)

    def _program(self, args: Any, frame: FrameType) -> None:
        path = args[1] if len(args) > 2 and isinstance(args[0], int) else args[0]
        self._ran(os.fsdecode(path), frame)

    def _ran(self, program: str, frame: FrameType) -> None:
        caller: FrameType | None = frame
        for _ in range(8):
            if caller is None:
                break
            file = caller.f_code.co_filename
            if file in (_LIBRARY + "platform.py", _LIBRARY + "ctypes/util.py"):
                return
            caller = caller.f_back
        if os.path.basename(program) not in _HARMLESS:
            self._unknown(f"it ran another program: {os.path.basename(program)[:60]}")

    def _child(self, _: Any, __: FrameType) -> None:
        self._unknown("it forked a process, whose doings are not known")

    def _unknown(self, why: str) -> None:
        self.ledger.blind = self.ledger.blind or why

    def _connect(self, args: Any, _: FrameType) -> None:
        address = args[1]
        if isinstance(address, tuple):
            self.ledger.network.add(str(address[0]))

    def _resolve(self, args: Any, _: FrameType) -> None:
        self.ledger.network.add(os.fsdecode(args[0] or b""))

    def _import(self, args: Any, _: FrameType) -> None:
        name = args[0]
        self.ledger.imported.add(name)
        cared_for = name in _SEEDS or name in _NATIVE or name == cuda.MODULE
        if cared_for and name not in self._importing | {*sys.modules}:
            self._importing.add(name)
            # Loaded here, so that nobody can have its functions before they are wrapped.
            from importlib import import_module

            try:
                module = import_module(name)
            except BaseException:
                return  # the program will see the same
            if name in _SEEDS:
                _watch_seed(self.ledger, module)
            elif name == cuda.MODULE:
                cuda.count_gently(module)
            else:
                _watch_native(self.ledger, module)


def _imports(frame: FrameType) -> bool:
    """Tell whether the import system itself asks."""
    return frame.f_code.co_filename == _IMPORTER


def _shows_lines(frame: FrameType) -> bool:
    """Tell whether `linecache` reads a source file: its own functions are watched."""
    caller: FrameType | None = frame
    for _ in range(3):
        if caller is None:
            return False
        if caller.f_code.co_filename == linecache.__file__:
            return True
        caller = caller.f_back
    return False


def _logs_lines() -> bool:
    """Tell whether log lines carry line numbers."""
    if "loguru" in sys.modules or "absl.logging" in sys.modules:
        return True
    logging: Any = sys.modules.get("logging")
    for reference in [*getattr(logging, "_handlerList", ())]:
        handler = reference()
        layout = getattr(getattr(handler, "formatter", None), "_fmt", "") or ""
        if "lineno" in layout or type(handler).__name__ == "RichHandler":
            return True
    return False


# --- what Python does not tell


def _wrap(ledger: Ledger) -> None:
    _wrap_stat(ledger, "stat", True)
    _wrap_stat(ledger, "lstat", False)
    _wrap_access(ledger)
    _wrap_linecache(ledger)
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
    for group in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        if old in group:
            group.add(new)
    if old in os.supports_effective_ids:
        os.supports_effective_ids.add(new)


def _wrap_stat(ledger: Ledger, name: str, follows: bool) -> None:
    real = getattr(posix, name)
    looked, measured = ledger._looked, ledger._measured

    def note(path: Any, dir_fd: int | None, frame: FrameType) -> None:
        if isinstance(path, int) or ledger.asleep or _shows_lines(frame):
            return
        try:
            full = ledger.full(path, dir_fd)
            if _kind_only(frame):
                ledger.look(full, _from_makedirs(frame))
                looked.add(path)
            else:
                ledger.measure(full)
                measured.add(path)
        except Exception as error:
            ledger.blind = ledger.blind or f"os.{name} was not understood: {error}"

    # An exception goes on as if it came from the function itself: without this frame.
    if follows:

        def stat(path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> Any:
            try:
                if dir_fd is None:
                    if path not in measured:
                        frame = sys._getframe(1)
                        if path not in looked or not _kind_only(frame):
                            note(path, None, frame)
                    if follow_symlinks:
                        return real(path)
                else:
                    note(path, dir_fd, sys._getframe(1))
                return real(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
            except BaseException as error:
                error.__traceback__ = None
                raise

        new: Any = stat
    else:

        def lstat(path: Any, *, dir_fd: int | None = None) -> Any:
            try:
                if dir_fd is not None or path not in measured:
                    frame = sys._getframe(1)
                    if dir_fd is not None or path not in looked or not _kind_only(frame):
                        note(path, dir_fd, frame)
                return real(path, dir_fd=dir_fd)
            except BaseException as error:
                error.__traceback__ = None
                raise

        new = lstat
    _disguise(new, real)
    setattr(os, name, new)


def _wrap_access(ledger: Ledger) -> None:
    real = posix.access

    def access(
        path: Any,
        mode: int,
        *,
        dir_fd: int | None = None,
        effective_ids: bool = False,
        follow_symlinks: bool = True,
    ) -> bool:
        try:
            full = "" if isinstance(path, int) else ledger.full(path, dir_fd)
            if full and full not in ledger.modes and full not in ledger.written:
                ledger.modes[full] = _access(full)
            return real(
                path,
                mode,
                dir_fd=dir_fd,
                effective_ids=effective_ids,
                follow_symlinks=follow_symlinks,
            )
        except BaseException as error:
            error.__traceback__ = None
            raise

    _disguise(access, real)
    os.access = access
    real_link = posix.readlink

    def readlink(path: Any, *, dir_fd: int | None = None) -> Any:
        try:
            target = real_link(path, dir_fd=dir_fd)
            full = ledger.full(path, dir_fd)
            if full and full not in ledger.written:
                ledger.links.setdefault(full, os.fsdecode(target))
            return target
        except BaseException as error:
            error.__traceback__ = None
            raise

    _disguise(readlink, real_link)
    os.readlink = readlink
    real_read = posix.read

    def read(fd: int, length: int, /) -> bytes:
        try:
            if fd == 0:
                ledger.stdin_used = True
            return real_read(fd, length)
        except BaseException as error:
            error.__traceback__ = None
            raise

    _disguise(read, real_read)
    os.read = read


def _wrap_linecache(ledger: Ledger) -> None:
    real_line, real_lines = linecache.getline, linecache.getlines
    inner = real_line.__code__

    def getline(filename: str, lineno: int, module_globals: Any = None) -> str:
        text = real_line(filename, lineno, module_globals)
        ledger.line(filename, lineno, text)
        return text

    def getlines(filename: str, module_globals: Any = None) -> list[str]:
        if sys._getframe(1).f_code is not inner:
            ledger.all_lines(filename)
        return real_lines(filename, module_globals)

    linecache.getline, linecache.getlines = getline, getlines


def _wrap_stdin(ledger: Ledger) -> None:
    """Have a standard input that tells when it is read."""
    import io

    old = sys.stdin
    if not isinstance(old, io.TextIOWrapper) or sys.__stdin__ is not old:
        return

    class Stdin(io.FileIO):
        def readinto(self, buffer: Any) -> Any:
            ledger.stdin_used = True
            try:
                return super().readinto(buffer)
            except BaseException as error:
                error.__traceback__ = None
                raise

        def readall(self) -> Any:
            ledger.stdin_used = True
            return super().readall()

        def read(self, size: int | None = -1, /) -> Any:
            ledger.stdin_used = True
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


def _watch_seed(ledger: Ledger, module: Any) -> None:
    """Learn from a module's own functions whether the program has seeded it."""
    key = module.__name__
    for name in _SEEDS[key]:
        real = getattr(module, name)

        def call(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            try:
                given = [*args, *kwargs.values()]
                if given and given[0] is not None:
                    ledger.seeded.add(key)
                else:
                    ledger.seeded.discard(key)
                return _real(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        call.__name__ = call.__qualname__ = name
        call.__doc__ = real.__doc__
        call.__module__ = module.__name__
        setattr(module, name, call)
    ledger.watched.add(key)


def _watch_native(ledger: Ledger, module: Any) -> None:
    """Learn from a module's own functions which files they open."""
    for name, (position, use) in _NATIVE[module.__name__].items():
        real = getattr(module, name, None)
        if real is None:
            continue

        def call(
            *args: Any, _real: Any = real, _at: int = position, _use: str = use, **kwargs: Any
        ) -> Any:
            try:
                _note_native(ledger, _at, _use, args, kwargs)
                return _real(*args, **kwargs)
            except BaseException as error:
                if error.__traceback__ is not None:
                    error.__traceback__ = error.__traceback__.tb_next
                raise

        call.__name__ = call.__qualname__ = name
        call.__doc__ = real.__doc__
        call.__module__ = module.__name__
        setattr(module, name, call)


def _note_native(
    ledger: Ledger, position: int, use: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    path = args[position] if len(args) > position else None
    for name in ("f", "filename", "name", "file"):
        path = kwargs.get(name) if path is None else path
    if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
        return  # an open file
    full = ledger.full(path)
    if use == "+":
        mode = args[1] if len(args) > 1 else kwargs.get("mode", "r")
        use = {"r": "r", "w": "w"}.get(mode, "a")
    if use == "r":
        ledger.read(full)
    else:
        more = os.O_TRUNC if use == "w" else 0
        ledger.write(full, os.O_RDWR | os.O_CREAT | more)


_kind_codes: dict[int, bool] = {}


def _kind_only(frame: FrameType) -> bool:
    """Tell whether the caller looks only whether something is there."""
    code = frame.f_code
    known = _kind_codes.get(id(code))
    if known is None:
        library = code.co_filename.startswith(_LIBRARIES)
        if library and code.co_name in ("stat", "lstat") and frame.f_back is not None:
            return _kind_only(frame.f_back)
        known = library and code.co_name in _KIND_ONLY
        if library:  # code of the library lives as long as we do
            _kind_codes[id(code)] = known
    return known


def _from_makedirs(frame: FrameType) -> bool:
    """Tell whether a folder is looked for that is made otherwise."""
    back = frame.f_back
    if back is None or back.f_code is not os.makedirs.__code__:
        return False
    return frame.f_code.co_name == "exists"


# --- states


def _parts_of_python(skip: Iterable[str]) -> Iterable[str]:
    """Give the folders not to be noted: of Python's own prefix only what belongs to Python."""
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    for one in skip:
        one = one.rstrip("/")
        if one in python:
            for part in ("bin/", "lib/", "lib64/", "libexec/", "include/", "share/", "pyvenv.cfg"):
                yield f"{one}/{part}"
        elif one:
            yield one + "/"


def _absolute(path: str, dir_fd: int | None) -> str:
    if path.startswith("/"):
        return path
    at_cwd = dir_fd is None or dir_fd < 0
    return f"{os.getcwd() if at_cwd else posix.readlink(f'/proc/self/fd/{dir_fd}')}/{path}"


def _tidy(path: str) -> str:
    if "/../" in path or path.endswith("/.."):
        folder, _, name = path.rpartition("/")
        if name == "..":
            return os.path.realpath(path)
        return f"{os.path.realpath(folder)}/{name}"
    if "//" in path or "/./" in path or path.endswith(("/", "/.")):
        return os.path.normpath(path)
    return path


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _mode(path: str) -> int:
    try:
        return posix.stat(path).st_mode
    except (OSError, ValueError):
        return 0


def _size(path: str) -> int:
    try:
        return posix.stat(path).st_size
    except (OSError, ValueError):
        return 0


def _kind(path: str) -> str:
    mode = _mode(path)
    if not mode:
        return "dangling" if _is_link(path) else "absent"
    if stat.S_ISREG(mode):
        return "file"
    return "dir" if stat.S_ISDIR(mode) else "other"


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(posix.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _stats(path: str) -> list[Any]:
    kind = _kind(path)
    if kind != "file":
        return [kind]
    now = posix.stat(path)
    return [kind, now.st_mtime_ns, now.st_size, now.st_mode]


def _access(path: str) -> list[Any]:
    try:
        now = posix.stat(path)
    except (OSError, ValueError):
        return ["absent"]
    return [_kind(path), now.st_mode, now.st_uid, now.st_gid]


def _state(path: str) -> list[Any]:
    try:
        now = posix.stat(path)
    except (OSError, ValueError):
        return ["absent"]
    if not stat.S_ISREG(now.st_mode):
        return ["dir" if stat.S_ISDIR(now.st_mode) else "other"]
    return ["file", now.st_mtime_ns, now.st_size, now.st_ino, now.st_mode, ""]


def _digest_if(path: str, state: list[Any]) -> str:
    """Return the digest of a file that is still as it was, else nothing."""
    from _blake2 import blake2b

    try:
        with open(path, "rb") as file:
            data = file.read(SMALL + 1)
    except OSError:
        return ""
    if _state(path)[:4] != state[:4]:
        return ""
    return blake2b(data, digest_size=16).hexdigest()


def _names(path: str, without: Sequence[str], endings: Sequence[str], times: bool) -> Any:
    """Return the names in a folder, or a digest of many; None where it cannot be listed."""
    found = []
    hidden = set(without)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.name in hidden or (endings and not entry.name.endswith(tuple(endings))):
                    continue
                name = entry.name + "/" * entry.is_dir()
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


def _found(folder: str, leaves: Iterable[str]) -> list[str]:
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
                elif not ending and _mode(f"{entry.path}/__init__.py"):
                    found.append(f"{entry.name}/__init__.py")
    except OSError:
        pass
    return sorted(found)


def open_fds() -> list[int]:
    """List this process's descriptors."""
    return sorted(fd for fd in map(int, os.listdir("/proc/self/fd")) if _identity(fd))


def _is_of_pytest(path: str) -> bool:
    """Tell whether pytest keeps its own books there, and nothing of the tests depends on them.

    Which tests failed last is remembered for those who ask for it; folders for temporary files have
    new numbers in each run.
    """
    if "/.pytest_cache" in path:
        return not any(word.startswith(_PYTEST_ORDERS) for word in sys.argv[1:])
    *_, parent, name = path.split("/")
    return name.startswith("pytest-of-") or parent.startswith("pytest-of-")


def _identity(fd: int) -> tuple[int, int] | None:
    try:
        now = posix.fstat(fd)
    except OSError:
        return None
    return now.st_dev, now.st_ino


# --- in the host


def changed(manifest: dict[str, Any]) -> str:
    """Say which observation is not true any more; empty if all are."""
    cwd = manifest.get("cwd", "")
    for path, kind in manifest["kinds"].items():
        if _kind(path) not in kind.split(" or "):
            return f"{_short(path, cwd)} {_became(_kind(path))}"
    for path, state in manifest["contents"].items():
        why = _other_content(path, state)
        if why:
            return f"{_short(path, cwd)} {why}"
    for path, state in manifest["stats"].items():
        now = _stats(path)
        if now != state:
            return f"{_short(path, cwd)} {_became(now[0]) if now[0] != state[0] else 'changed'}"
    for path, state in manifest["modes"].items():
        if _access(path) != state:
            return f"{_short(path, cwd)} has other permissions"
    for path, (names, *rest) in manifest["names"].items():
        why = _other_names(path, cwd, names, _names(path, *rest))
        if why:
            return why
    if "data" in manifest:
        hidden, then = manifest["data"]
        reader = manifest["unseen"][0]
        data = _data_below(cwd, hidden)
        if then is None or data is None:
            return f"{reader} may have read one of too many files"
        if data != then:
            other = sorted({*map(tuple, data)} ^ {*map(tuple, then)})
            return f"{_short(other[0][0], cwd)} changed, and {reader} may have read it"
    for folder, (leaves, found) in manifest["modules"].items():
        why = _other_names(folder, cwd, found, _found(folder, leaves))
        if why:
            return why
    return _other_links(manifest, cwd) or _other_lines(manifest, cwd)


def _data_below(top: str, hidden: Iterable[str]) -> list[list[Any]] | None:
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


def _other_content(path: str, old: list[Any]) -> str:
    now = _state(path)
    if now[0] != old[0]:
        return _became(now[0])
    if now[0] != "file" or now[1:5] == old[1:5]:
        return ""
    if now[4] != old[4]:
        return "has other permissions"
    if now[2] != old[2] or not old[5] or _digest_if(path, now) != old[5]:
        return "changed"
    return ""


def _other_names(path: str, cwd: str, old: Any, now: Any) -> str:
    if now == old:
        return ""
    here = _short(path, cwd)
    if isinstance(old, list) and isinstance(now, list):
        for what, more in (("is new", {*now} - {*old}), ("is gone", {*old} - {*now})):
            names = sorted(one.partition("\0")[0] for one in more)
            if what == "is new" and any(one.startswith(names[0] + "\0") for one in old if names):
                what = "changed"
            if names:
                return f"{_short(f'{path}/{names[0]}', cwd)} {what}"
    return f"the names in {here} changed"


def _other_links(manifest: dict[str, Any], cwd: str) -> str:
    for path, target in manifest["links"].items():
        try:
            same = posix.readlink(path) == target
        except OSError:
            same = False
        if not same:
            return f"{_short(path, cwd)} changed"
    return ""


def _other_lines(manifest: dict[str, Any], cwd: str) -> str:
    """Source lines that were shown, as in a traceback, must be the same to the letter."""
    for path, lines in manifest["lines"].items():
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                now = file.read().splitlines()
        except OSError:
            now = []
        for number, text in lines:
            here = now[number - 1] if 0 < number <= len(now) else ""
            if here.strip() != text.strip():
                return f"{_short(path, cwd)}:{number} was shown and changed"
    return ""


def _became(kind: str) -> str:
    return {"absent": "is gone", "dir": "is a folder now"}.get(kind, "is new")


def _short(path: str, cwd: str = "") -> str:
    cwd = cwd or os.getcwd()
    return path[len(cwd) + 1 :] if path.startswith(cwd + "/") else path
