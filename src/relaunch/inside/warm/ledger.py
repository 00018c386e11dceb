"""Notes what a program has seen of the world and done to it, and tells whether that still holds.

A program that is resumed must do what one would do that is started now. So each thing it looked at
is noted as it was at the first look, unless it had made that thing itself; and each file it wrote
is noted too, to be put back. What Python says through audit events and a few wrapped functions is
seen. Nothing here may break the program: where we cannot follow, `blind` says why.
"""

from __future__ import annotations

import os
import posix
import stat
import sys
from types import ModuleType

from . import clocks, hearsay, shown
from .events import hook_of
from .forked import Forked
from .native import readers, watch_generators, watch_seed
from .role import Role
from .states import (
    MAYBE_FOLDER,
    SMALL,
    absolute,
    access_of,
    content_of,
    data_below,
    digest_of,
    folder_of,
    identity_of,
    is_link,
    is_of_a_package,
    kind_of,
    mode_of,
    modules_in,
    names_in,
    open_fds,
    short,
    size_of,
    stats_of,
    terminal_settings,
    tidy,
    time_of,
)
from .wrapped import wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType
    from typing import Any

    from .loaded import Loaded

_DIGESTS = 4000
_DIGEST_BYTES = 64 << 20
"""How much is read for one manifest."""
_PYTEST_ORDERS = ("--lf", "--last-failed", "--ff", "--failed-first", "--nf", "--new-first", "--sw")

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
        self.bases: dict[str, int] = {}
        """Old sizes of files that were appended to and then measured."""
        self.timed: set[str] = set()
        """Written paths whose times were set on purpose."""
        self.sources: Mapping[str, Loaded] = {}
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
        self.torch_seed: int | None = None
        """With what torch seeded its own, before anybody else could."""
        self.network: set[str] = set()
        self.first_use: Callable[[FrameType], object] = lambda _: None
        """Hears which frame uses the GPU first."""
        self.bytecode_is_read: Callable[[], object] = lambda: None
        """Hears that functions are about to be compiled from their bytecode."""
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
        self.terminal_sizes: dict[int, tuple[int, int]] = {}
        """How large the terminal was, for who asked, by descriptor."""
        self.unseeded: list[Any] = []
        """Random generators that the program made without a seed."""
        self.terminal: list[Any] = []
        """How the terminal was set up, if there is one."""
        self.forked = Forked()
        """The processes that the program forked."""
        self.role = Role()
        """Which processes the program leads."""
        self.readers: set[str] = set()
        """Modules by which files were or may be read in ways that we do not see."""
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
            watch_seed(self, sys.modules["random"])
            watch_generators(self, sys.modules["random"])
        wrap(self)
        shown.watch(self)
        clocks.stand_in()
        self.forked.install()
        sys.addaudithook(hook_of(self))

    def know_fds(self) -> None:
        """Take all descriptors that are open now for ours, and learn what the streams are."""
        self.own_fds = {fd: identity for fd in open_fds() if (identity := identity_of(fd))}
        self.streams = [identity_of(fd) for fd in range(3)]
        self.terminal = terminal_settings()
        try:
            self.stdin_at = os.lseek(0, 0, os.SEEK_CUR)
        except OSError:
            pass

    # --- what the host gets

    @property
    def lines_seen(self) -> bool:
        """Tell whether the program may have shown line numbers."""
        return self._lines_seen or shown.are_logged()

    def manifest(self) -> dict[str, Any]:
        """Return all observations as JSON, for `changed`."""
        self._digest_all()
        shown.note_warned(self)
        return {
            "cwd": os.getcwd(),
            "kinds": self.kinds,
            "modes": self.modes,
            "stats": self.stats,
            "bases": self.bases,
            "contents": self.contents,
            "names": self.names,
            "links": self.links,
            "lines": {file: [*lines.items()] for file, lines in self.lines.items()},
            "observed": sorted({*self.contents, *self.names, *self.stats}),
            "modules": self._modules(),
            "network": sorted(self.network),
            "libraries": _libraries(),
            **self._unseen(),
        }

    def _unseen(self) -> dict[str, Any]:
        """Note all data below the current folder, where a library is loaded that reads unseen."""
        unseen = sorted(readers(self))
        if not unseen:
            return {}
        hidden = [*self.written, *self.sources]
        return {"unseen": unseen, "data": [hidden, data_below(os.getcwd(), hidden)]}

    def _modules(self) -> dict[str, list[Any]]:
        """Return where modules were looked for, which ones, and what was found there.

        Only in folders of the project: a new file there may come before what was found.
        """
        asked: dict[str, set[str]] = {}
        for name in [*self.imported]:
            parent, _, leaf = name.rpartition(".")
            for folder in _folders_of(parent):
                inside = self.full(f"{folder or '.'}/x")
                if inside:
                    asked.setdefault(folder_of(inside), set()).add(leaf)
        return {
            folder: [sorted(leaves), modules_in(folder, leaves)] for folder, leaves in asked.items()
        }

    def _digest_all(self) -> None:
        left, room = _DIGESTS, _DIGEST_BYTES
        for path, state in self.contents.items():
            if state[0] == "file" and not state[5] and state[2] <= min(SMALL, room) and left:
                state[5] = digest_of(path, state)
                left -= 1
                room -= state[2]

    # --- noting

    def _note(self, table: str, key: str, value: Any) -> None:
        getattr(self, table)[key] = value
        if self.forked.is_child:
            self.forked.tell(table, key, value)

    def add(self, table: str, key: str) -> None:
        """Note what there is no more to say of than that it was so."""
        if key not in getattr(self, table):
            getattr(self, table).add(key)
            if self.forked.is_child:
                self.forked.tell(table, key, None)

    def lose_sight(self, why: str) -> None:
        """Say that it is not known any more what the program has seen."""
        if self.forked.is_child and not self.blind:
            self.forked.tell("blind", why, None)
        self.blind = self.blind or why

    def use_stdin(self) -> None:
        """Note that the standard input was read."""
        if self.forked.is_child and not self.stdin_used:
            self.forked.tell("stdin", "", None)
        self.stdin_used = True

    def catch_up(self) -> None:
        """Take over what forked processes have told, before anything else is noted."""
        for what, key, value in self.forked.news():
            hearsay.take(self, what, key, value)

    # --- looking

    def full(self, path: Any, dir_fd: int | None = None) -> str:
        """Return the absolute path; empty for what is no path or not to be noted."""
        if isinstance(path, int):
            return self.full(posix.readlink(f"/proc/self/fd/{path}"))
        if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
            return ""  # Python says so itself
        full = tidy(absolute(os.fsdecode(path), dir_fd))
        if full.startswith(self._skip) and not full.startswith("/dev/shm/"):
            return ""
        if full.endswith(".pyc") or is_of_a_package(full):
            return ""
        if _is_of_pytest(full) or "/__pycache__" in full:
            return ""
        return "" if "\0" in full else full

    def mentions(self, *words: str) -> bool:
        """Tell whether a file of the project has one of these words, in whatever case."""
        texts = [loaded.source.text.lower() for loaded in [*self.sources.values()]]
        return any(word in text for text in texts for word in words)

    def is_own(self, path: str) -> bool:
        """Tell whether the program wrote a path, or made the folder that it is in."""
        if path in self.written:
            return True
        folder = folder_of(path)
        return folder in self.written and self.kinds.get(folder) == "absent"

    def look(self, path: str, lenient: bool = False) -> None:
        """Note whether something is there, and of which kind; `lenient` if a folder may be."""
        if path and path not in self.kinds and not self.is_own(path):
            kind = kind_of(path)
            either = lenient and kind in MAYBE_FOLDER.split(" or ")
            self._note("kinds", path, MAYBE_FOLDER if either else kind)

    def measure(self, path: str) -> None:
        """Note size, time and mode."""
        base = self.written.get(path, -1)
        if base >= 0 and path not in self.bases:
            self._note("bases", path, base)
        if path and path not in self.stats and not self.is_own(path):
            if path in self.sources:  # they are compared statement by statement
                self.look(path)
            else:
                self._note("stats", path, stats_of(path))

    def ask(self, path: str) -> None:
        """Note permissions."""
        self.catch_up()
        if path and path not in self.modes and not self.is_own(path):
            self._note("modes", path, access_of(path))

    def follow(self, path: str, target: str) -> None:
        """Note where a symbolic link leads."""
        self.catch_up()
        if path and path not in self.links and not self.is_own(path):
            self._note("links", path, target)

    def read(self, path: str, digest: bool = False) -> None:
        """Note the content."""
        if not path or (self.is_own(path) and self.written.get(path, -1) == -1):
            return
        if path in self.written:
            # What it held before would matter now, and only its size is known.
            self.lose_sight(f"a file was appended to, then read: {short(path)}")
        known = self.contents.get(path)
        state = content_of(path) if known is None else known
        more = digest and state[0] == "file" and not state[5] and state[2] <= SMALL
        if more:
            state[5] = digest_of(path, state)
        if known is None or more:
            self._note("contents", path, state)

    def list(
        self, path: str, endings: Sequence[str], times: bool, hidden: Sequence[str] = ()
    ) -> None:
        """Note the names in a folder, but those that the program made or removed itself."""
        old = self.names.get(path)
        if not path or (old and not old[2] and (old[3] or not times)):
            return
        if path in self.written and self.kinds.get(path) == "absent":
            return
        if self.kinds.get(path) == MAYBE_FOLDER:
            # With `exist_ok` it does not matter whether it was there; but what is in it does.
            self._note("kinds", path, "absent" if path in self.written else "dir")
            if path in self.written:
                return
        own = sorted(one.rpartition("/")[2] for one in self.written if folder_of(one) == path)
        own += hidden
        names = names_in(path, own, endings, times)
        self._note("names", path, [names, own, [*endings], times])

    # --- doing

    def write(self, path: str, flags: int) -> None:
        """Note that a file is opened for writing."""
        if path and is_link(path):
            self.follow(path, os.fsdecode(posix.readlink(path)))
            path = self.full(os.path.realpath(path))
        if not path or not stat.S_ISREG(mode_of(path) or stat.S_IFREG):
            return
        appends = flags & os.O_APPEND and flags & os.O_ACCMODE == os.O_WRONLY
        if flags & os.O_EXCL:
            self.look(path)
        elif appends and not flags & os.O_TRUNC and path not in self.contents:
            self.look(folder_of(path))
            if path not in self.written:
                self._note("written", path, size_of(path))
            return
        elif not flags & os.O_TRUNC:
            self.read(path, digest=True)
        if path in self.contents:
            self.read(path, digest=True)
        self.look(folder_of(path))
        self.wrote(path)

    def wrote(self, path: str) -> None:
        """Note that a path is the program's own from now on."""
        self._note("written", path, -1)

    def remove(self, path: str) -> None:
        """Note that a file or folder is removed."""
        if not path:
            return
        if path in self.contents:
            self.read(path, digest=True)
        self.look(path)
        self.wrote(path)

    def move(self, old: str, new: str) -> None:
        """Note that a file gets another name."""
        if old and kind_of(old) == "dir":
            self.lose_sight(f"a folder was renamed: {short(old)}")
        if old:
            self.read(old, digest=True)
            self.remove(old)
        if new:
            self.look(folder_of(new))
            if new in self.contents:
                self.read(new, digest=True)
            self.wrote(new)

    def make(self, path: str, lenient: bool) -> None:
        """Note that a folder is made; `lenient` where it is no matter whether it was there."""
        if not path:
            return
        self.look(path, lenient)
        if kind_of(path) == "absent":
            self.look(folder_of(path), lenient)
            self.wrote(path)

    # --- lines

    def line(self, file: str, number: int, text: str) -> None:
        """Note that one line of a source file was shown."""
        path = self._source(file)
        if path:
            self.shown()
            if number not in self.lines.setdefault(path, {}):
                self.lines[path][number] = text
                if self.forked.is_child:
                    self.forked.tell("lines", path, [number, text])

    def all_lines(self, file: str) -> None:
        """Note that a whole source file was read as text."""
        path = self._source(file)
        if path:
            self.shown()
            self.read(path)

    def shown(self) -> None:
        """Note that numbers of lines are shown, as in a traceback."""
        if self.forked.is_child and not self._lines_seen:
            self.forked.tell("shown", "", None)
        self._lines_seen = True

    def tell_modules(self) -> None:
        """Tell, in a forked process, what only its modules say."""
        shown.note_warned(self)
        if shown.are_logged():
            self.shown()
        for name in readers(self):
            self.add("readers", name)

    def is_source(self, file: str) -> bool:
        """Tell whether lines of a file are noted."""
        return bool(self._source(file))

    def _source(self, file: str) -> str:
        if not isinstance(file, str) or file.startswith("<"):
            return ""
        return self.full(file)

    def moved(self) -> None:
        """Forget short cuts that hold for one current folder only."""
        self._read.clear()
        self._looked.clear()
        self._measured.clear()


def _libraries() -> dict[str, str]:
    """Return the files of installed packages that are loaded, with their times and sizes."""
    found = {}
    for module in [*sys.modules.values()]:
        path = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if is_of_a_package(path):
            found[str(path)] = time_of(str(path))
    return found


def _folders_of(package: str) -> Iterable[str]:
    """Give the folders where modules of a package are looked for; with no package, all others."""
    if package in sys.modules:
        found = getattr(sys.modules[package], "__path__", ())
    elif package:  # it was loaded by a forked process, or not at all
        found = [f"{folder}/{package.replace('.', '/')}" for folder in sys.path]
    else:
        found = sys.path
    return [folder for folder in found if isinstance(folder, str)]


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


def _is_of_pytest(path: str) -> bool:
    """Tell whether pytest keeps its own books there, and nothing of the tests depends on them.

    Which tests failed last is remembered for those who ask for it; folders for temporary files have
    new numbers in each run.
    """
    if "/.pytest_cache" in path:
        return not any(word.startswith(_PYTEST_ORDERS) for word in sys.argv[1:])
    *_, parent, name = path.split("/")
    return name.startswith("pytest-of-") or parent.startswith("pytest-of-")
