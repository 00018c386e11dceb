"""Decides which snapshot a relaunch may go on from, and which ones are worth their memory.

A snapshot is valid when a cold run started now would come to the same point in the same state: all
that it executed stands unedited in the files, and all that it saw of the world is still so.
"""

from __future__ import annotations

import ast
import os
import stat
import sys
import time

from . import compare, sites, world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from typing import Any

    Path = tuple[Any, ...]

MOST = 24
"""How many snapshots a program has at the most."""
_OF_PACKAGES = (".dist-info", ".egg-info", ".egg-link", ".pth")
_MODULES = (".py", ".so")
_SYNTAX_ERROR = "syntax error"
_CGROUPS = "/sys/fs/cgroup"
_SETTLED_S = 2.0
"""A file that was written later than this before it was read may change without a new time."""


class Snapshot:
    """What the host knows of a process that waits."""

    def __init__(self, number: int, pid: int, hello: dict[str, Any], run: int) -> None:
        """Take what it said of itself."""
        self.id = str(number)
        self.pid = pid
        self.run = run
        """Which run of the program left it behind; later ones have higher numbers."""
        self.file, _, line = str(hello["at"]).rpartition(":")
        self.line = int(line)
        self.elapsed = float(hello["elapsed"])
        self.tape = str(hello.get("tape", ""))
        self.mark = int(hello.get("mark", 0))
        self.seen = bytes.fromhex(hello["seen"])
        self.files: dict[str, tuple[int, str]] = {
            str(path): (int(first), str(digest)) for path, (first, digest) in hello["files"].items()
        }
        self.ledger: dict[str, Any] = hello.get("ledger") or {}
        self.lines_seen = bool(hello.get("lines_seen"))
        self.site = int(hello.get("site", -1))
        self.start: Importable | None = None
        """What could be imported when its run began."""
        self.resuming = 0
        """How many runs came from it that have not ended."""
        self.pss = 0
        self.is_stale = False
        """It was not valid when somebody asked for the last time."""
        self.is_past_imports = False
        self.is_wanted = False
        """Somebody asked for a snapshot at this very place."""
        self.is_retired = False
        """It is not to be used any more, and ends when the last run from it has ended."""
        self.refused: set[str] = set()
        """The sources with which it could not go on."""

    def seen_of(self, first: int, source: compare.Source) -> bytes:
        """Return which sites of a file were executed; what is not known counts as executed."""
        return self.seen[first : first + source.size].ljust(source.size, b"\1")


# --- files


class Texts:
    """What files say now; read again only when they may have changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, ...], str]] = {}

    def read(self, path: str) -> str:
        """Return a source file's text; OSError, SyntaxError or UnicodeError if it has none."""
        from importlib.util import decode_source

        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a pipe by now
        with open(fd, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(f"`{path}` is not a file")
            state = (
                found.st_dev,
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
                found.st_ctime_ns,
            )
            known = self._known.get(path)
            if known is not None and known[0] == state:
                return known[1]
            now = time.time()
            text = decode_source(file.read())
        if now - max(found.st_mtime, found.st_ctime) > _SETTLED_S:
            self._known[path] = state, text
        else:
            self._known.pop(path, None)
        return text


class Sources:
    """The versions of files that snapshots were made of, by the names of their texts."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._parsed: dict[tuple[str, str], compare.Source] = {}
        self.latest: dict[str, compare.Source] = {}
        """Files as they were when they were last looked at, parsed."""

    def missing(self, digests: Iterable[str]) -> list[str]:
        """Return those of which the text is not known."""
        return sorted(set(digests) - self._texts.keys())

    def add(self, texts: dict[str, str]) -> None:
        """Know these texts from now on."""
        self._texts.update(texts)

    def text(self, digest: str) -> str:
        """Return a text that is known."""
        return self._texts[digest]

    def source(self, digest: str, file: str) -> compare.Source:
        """Return a version of a file, parsed once."""
        if (digest, file) not in self._parsed:
            self._parsed[digest, file] = compare.Source(self._texts[digest], file)
        return self._parsed[digest, file]

    def keep(self, digests: Collection[str]) -> None:
        """Forget all but these."""
        self._texts = {name: text for name, text in self._texts.items() if name in digests}
        self._parsed = {key: one for key, one in self._parsed.items() if key[0] in digests}


class Look:
    """One look at the files of the project, for all snapshots: each is read and parsed once."""

    def __init__(self, sources: Sources, texts: Texts, cwd: str) -> None:
        """Nothing is read before somebody needs it."""
        self.sources = sources
        self.cwd = cwd
        self._texts = texts
        self._now: dict[str, str | None] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._parsed: dict[str, compare.Source | str] = {}

    def text(self, file: str) -> str | None:
        """Return what a file says now; None if it is gone or no text."""
        if file not in self._now:
            try:
                self._now[file] = self._texts.read(os.path.join(self.cwd, file))
            except (OSError, SyntaxError, ValueError):
                self._now[file] = None
        return self._now[file]

    def parsed(self, file: str) -> compare.Source | str:
        """Return the file as it is now, or what is wrong with it."""
        if file not in self._parsed:
            text = self.text(file) or ""
            latest = self.sources.latest.get(file)
            if latest is not None and latest.text == text:
                self._parsed[file] = latest
                return latest
            try:
                self._parsed[file] = self.sources.latest[file] = compare.Source(text, file)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self._parsed[file] = self._wrong(file, error)
        return self._parsed[file]

    def compiled(self, file: str) -> str:
        """Say what is wrong with a file that can be parsed; empty if nothing is."""
        source = self.parsed(file)
        if isinstance(source, str):
            return source
        try:
            compile(source.tree, file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return self._wrong(file, error)
        return ""

    def _wrong(self, file: str, error: BaseException) -> str:
        line = getattr(error, "lineno", None)
        words = f"{_SYNTAX_ERROR} in {self.name(file)}"
        return f"{words}, line {line}" if line else words

    def names(self, folder: str) -> frozenset[str]:
        """Return what can be imported from a folder now."""
        if folder not in self._names:
            self._names[folder] = names_in(folder)
        return self._names[folder]

    def name(self, file: str) -> str:
        """Return a file's name for people."""
        return name_of(os.path.join(self.cwd, file), self.cwd)


def name_of(path: str, cwd: str) -> str:
    """Return a path as one would type it in `cwd`."""
    top = os.path.join(cwd, "")
    path = os.path.join(cwd, path)
    return path[len(top) :] if path.startswith(top) else path


# --- valid or not


class Verdict:
    """What was found out about a snapshot."""

    def __init__(self, why: str = "") -> None:
        self.why = why
        """Why it cannot be used; empty if it can."""
        self.edited: dict[str, compare.Source] = {}
        """The files that say something else now, as they are now."""

    @property
    def name(self) -> str:
        """A name for the sources with which the snapshot would go on."""
        return " ".join(sorted(f"{path}={one.digest}" for path, one in self.edited.items()))


def judge(snapshot: Snapshot, look: Look, packages: str) -> Verdict:
    """Find out whether a run may go on from a snapshot, as if it had been started now."""
    if snapshot.start is not None and snapshot.start.packages != packages:
        return Verdict("installed packages changed")
    verdict = _unedited(snapshot, look)
    if verdict.why:
        return verdict
    verdict.why = _shadowed(snapshot, look)
    if not verdict.why and snapshot.tape and not os.path.exists(snapshot.tape):
        verdict.why = "its recorded output is gone"
    if not verdict.why:
        verdict.why = _changed(snapshot.ledger)
    if not verdict.why and verdict.name in snapshot.refused:
        verdict.why = "it could not go on before"
    return verdict


def _changed(ledger: dict[str, Any]) -> str:
    """Say what the program saw of the world and is not so any more; empty if all is."""
    try:
        return world.changed(ledger)
    except Exception as error:
        return f"what it saw cannot be checked: {type(error).__name__}: {error}"


def _unedited(snapshot: Snapshot, look: Look) -> Verdict:
    verdict = Verdict()
    for file, (first, digest) in snapshot.files.items():
        text = look.text(file)
        if text is None:
            return Verdict(f"{look.name(file)} is gone or cannot be read")
        if text == look.sources.text(digest):
            continue
        new = look.parsed(file)
        if isinstance(new, str):
            return Verdict(new)
        old = look.sources.source(digest, file)
        why, moves = compare.compare(old, new, snapshot.seen_of(first, old))
        if why:
            return Verdict(f"{look.name(file)}, {why}")
        if snapshot.lines_seen and moves.any:
            return Verdict(f"lines of {look.name(file)} moved, and their numbers were used")
        verdict.edited[file] = new
    return verdict


def deepest_first(snapshots: Iterable[Snapshot]) -> list[Snapshot]:
    """Return snapshots in the order in which to try them; of equal ones the newest run's first."""
    return sorted(snapshots, key=lambda one: (-one.elapsed, -one.run, -int(one.id)))


def choose(
    snapshots: Iterable[Snapshot], look: Look, packages: str
) -> tuple[Snapshot | None, Verdict]:
    """Return the deepest snapshot that is valid; or None, and the verdict on the deepest one.

    Notes which ones the newest sources cannot use; a syntax error does not count, it will go.
    """
    first: Verdict | None = None
    tried = deepest_first(snapshots)
    for snapshot in tried:
        snapshot.is_stale = False
    for snapshot in tried:
        verdict = judge(snapshot, look, packages)
        verdict.why = verdict.why or _broken(verdict, look)
        if not verdict.why:
            return snapshot, verdict
        snapshot.is_stale = not verdict.why.startswith(_SYNTAX_ERROR)
        first = first or verdict
    return None, first or Verdict("there is no snapshot yet")


def _broken(verdict: Verdict, look: Look) -> str:
    """Say what only compiling finds wrong with the edited files; empty if nothing."""
    return next((why for file in verdict.edited if (why := look.compiled(file))), "")


# --- modules that are new


class Importable:
    """What a program can import that starts now: what is installed, and what its folders have."""

    def __init__(self) -> None:
        """Look into all folders of the project from which Python imports."""
        self.packages = installed()
        self.tops = frozenset(_own_folders())
        self.names = {folder: names_in(folder) for folder in self.tops}

    def know(self, files: Iterable[str]) -> None:
        """Look into the folders of modules that were found since."""
        for folder in {os.path.dirname(file) for file in files}:
            if folder not in self.names:
                self.names[folder] = names_in(folder)


def names_in(folder: str) -> frozenset[str]:
    """Return the names in a folder that could be modules or packages."""
    try:
        found = os.listdir(folder)
    except OSError:
        return frozenset()
    return frozenset(
        name
        for name in found
        if name.endswith(_MODULES) or (name.isidentifier() and name != "__pycache__")
    )


def _shadowed(snapshot: Snapshot, look: Look) -> str:
    """Name a new module that the program would have imported; empty if there is none.

    As when somebody makes a `random.py`, or the `local_settings.py` that was not there.
    """
    start = snapshot.start
    for folder, known in start.names.items() if start else ():
        new = look.names(folder) - known
        if not new:
            continue
        sought = _imported(snapshot, look)
        if start and folder in start.tops:
            sought |= _elsewhere()
        for name in sorted(new):
            path = os.path.join(folder, name)
            is_sought = name.partition(".")[0] in sought and _is_module(path)
            if is_sought and not _is_loaded(path, snapshot, look):
                return f"{look.name(path)} is new, and would be imported"
    return ""


def _is_loaded(path: str, snapshot: Snapshot, look: Look) -> bool:
    """Tell whether a module, or something of a package, was imported: it came while it ran."""
    files = [os.path.join(look.cwd, file) for file in snapshot.files]
    return any(file == path or file.startswith(f"{path}/") for file in files)


def _imported(snapshot: Snapshot, look: Look) -> set[str]:
    """Return all names that the files of a snapshot have in their imports."""
    found: set[str] = set()
    for file, (_, digest) in snapshot.files.items():
        for node in ast.walk(look.sources.source(digest, file).tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                words = [alias.name for alias in node.names]
                words.append(getattr(node, "module", None) or "")
                found.update(part for word in words for part in word.split("."))
    return found


def _elsewhere() -> set[str]:
    """Return the names of modules that come with Python or are installed."""
    found = {*sys.stdlib_module_names}
    for folder in _package_folders():
        found.update(name.partition(".")[0] for name in names_in(folder))
    return found


def _is_module(path: str) -> bool:
    if not os.path.isdir(path):
        return path.endswith(_MODULES)
    return any(name.endswith(_MODULES) for name in names_in(path))


def _package_folders() -> list[str]:
    return [one for one in sys.path if os.path.basename(one) in ("site-packages", "dist-packages")]


def _own_folders() -> list[str]:
    """List the folders of the import path that belong neither to Python nor to its packages."""
    library = os.path.dirname(os.__file__)
    theirs = {library, os.path.join(library, "lib-dynload"), *_package_folders()}
    return [
        os.path.abspath(one) for one in sys.path if one not in theirs and os.path.isdir(one or ".")
    ]


# --- where, in words


class Place:
    """Where a snapshot stands: in which block, before which of its statements."""

    def __init__(self, source: compare.Source, path: Path, index: int) -> None:
        self.source = source
        self.path = path
        self.index = index

    @property
    def line(self) -> int:
        """The line of the statement that is next, or the last one of the block."""
        return _line(_body(self.source.tree, self.path), self.index)

    def line_in(self, new: compare.Source) -> int:
        """Return the line in another version of the file."""
        try:
            return _line(_body(new.tree, self.path), self.index)
        except (KeyError, IndexError):
            return self.line

    @property
    def function(self) -> str:
        """The name of the function that runs there; empty at module level."""
        node: ast.AST = self.source.tree
        found = ""
        for statement in _statements(node, self.path):
            if isinstance(statement, sites.FUNCTIONS):
                found = statement.name
        return found

    @property
    def name(self) -> str:
        """A name for the place that stays when lines move."""
        body = _body(self.source.tree, self.path)
        after = self.index >= len(body)
        statement = ast.dump(body[-1 if after else self.index])
        return f"{self.source.file} {self.function} {after} {hash(statement)}"

    def last_act(self) -> str:
        """Say what was done last before it: a call, or the imports; empty if neither is near."""
        path, index = self.path, self.index
        while True:
            for statement in reversed(_body(self.source.tree, path)[:index]):
                act = _act(statement)
                if act:
                    return act
            inner = list(_statements(self.source.tree, path))
            if not inner or isinstance(inner[-1], sites.FUNCTIONS):
                return ""
            act = _act(inner[-1])
            if act:
                return act
            path, index = path[:-2], path[-2]


def place_of(snapshot: Snapshot, source: compare.Source) -> Place | None:
    """Find where a snapshot stands, in the version of the file that it was made of."""
    first = snapshot.files[snapshot.file][0]
    if snapshot.site >= 0:
        number = snapshot.site - first
        for block in source.blocks:
            if block.first <= number <= block.end:
                return Place(source, block.path, number - block.first)
    seen = snapshot.seen_of(first, source)
    after = None
    for block in reversed(source.blocks):
        for index, statement in enumerate(block.body):
            if statement.lineno == snapshot.line:
                is_last = index == len(block.body) - 1 and statement.end_lineno == snapshot.line
                done = is_last and seen[block.first + index] and not seen[block.end]
                return Place(source, block.path, index + 1 if done else index)
        if block.body[-1].end_lineno == snapshot.line:
            after = after or Place(source, block.path, len(block.body))
    return after


def because(snapshot: Snapshot, place: Place | None, verdict: Verdict, look: Look) -> str:
    """Say in words why a snapshot may be used."""
    if not verdict.edited:
        return "nothing was edited"
    if place is None:
        return "what ran before it is unchanged"
    act = place.last_act()
    function = f"{place.function}()" if place.function else ""
    if not act and not function:
        return "what ran before it is unchanged"
    if act and function and act != function:
        act = f"{act} in {function}"
    if act and _is_above_unchanged(snapshot, place, verdict, look):
        return f"{act} and above are unchanged"
    return f"what ran up to {act or function} is unchanged"


def _is_above_unchanged(snapshot: Snapshot, place: Place, verdict: Verdict, look: Look) -> bool:
    """Tell whether only the lines below were edited, and no function that the words could mean."""
    if [*verdict.edited] != [snapshot.file]:
        return False
    new = verdict.edited[snapshot.file]
    before = place.line - 1
    if place.source.lines[:before] != new.lines[:before]:
        return False
    act = place.last_act().removesuffix("()")
    olds, news = (
        [one for one in ast.walk(tree) if isinstance(one, sites.FUNCTIONS) and one.name == act]
        for tree in (place.source.tree, new.tree)
    )
    return compare.all_same(olds, news)


def _act(statement: ast.stmt) -> str:
    """Name what a statement does, if it is worth naming."""
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return "the imports"
    if isinstance(statement, (*sites.FUNCTIONS, ast.ClassDef)):
        return ""
    below = {id(one) for _, body in sites.bodies(statement) for one in body}
    below |= {id(one) for one in getattr(statement, "handlers", ())}
    below |= {id(one) for one in getattr(statement, "cases", ())}
    todo: list[ast.AST] = [statement]
    named = ""
    while todo:
        node = todo.pop(0)
        if isinstance(node, ast.Call):
            name = _called(node.func)
            if name and isinstance(node.func, ast.Name) and not _is_builtin(name):
                return f"{name}()"
            named = named or name
        if not isinstance(node, ast.Lambda):
            todo += [one for one in ast.iter_child_nodes(node) if id(one) not in below]
    return f"{named}()" if named else ""


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    if isinstance(function, ast.Attribute):
        return function.attr
    return ""


def _is_builtin(name: str) -> bool:
    import builtins

    return hasattr(builtins, name)


def _body(tree: ast.AST, path: Path) -> list[ast.stmt]:
    """Return the block at the end of a path; KeyError or IndexError if it is not there."""
    node = tree
    body: list[ast.stmt] = []
    for step in path:
        if isinstance(step, int):
            node = body[step]
        else:
            body = dict(sites.bodies(node))[step]
    return body


def _statements(tree: ast.AST, path: Path) -> Iterable[ast.stmt]:
    """Give the statements around a block, outermost first."""
    for number, step in enumerate(path):
        if isinstance(step, int):
            yield _body(tree, path[:number])[step]


def _line(body: list[ast.stmt], index: int) -> int:
    after = index >= len(body)
    statement = body[-1 if after else index]
    return (statement.end_lineno or 0) if after else statement.lineno


# --- which to keep


def is_past_imports(snapshot: Snapshot, script: compare.Source, first: int) -> bool:
    """Tell whether the imports at the top of the script were done."""
    seen = snapshot.seen_of(first, script)
    last = 0
    for index, statement in enumerate(script.tree.body):
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            last = index + 1
    return any(seen[last : len(script.tree.body) + 1])


def is_wanted(
    snapshot: Snapshot, source: compare.Source, wishes: Iterable[tuple[str, int]]
) -> bool:
    """Tell whether a snapshot stands where somebody asked for one, by file and line."""
    first = snapshot.files[snapshot.file][0]
    for name, line in wishes:
        if snapshot.file == name or snapshot.file.endswith(f"/{name}"):
            following = [
                (statement.lineno, -block.first, first + block.first + index)
                for block in source.blocks
                for index, statement in enumerate(block.body)
                if statement.lineno >= line and not sites.is_prelude(index, statement)
            ]
            if following and min(following)[2] == snapshot.site:
                return True
    return False


def to_drop(snapshots: Sequence[Snapshot], memory_is_short: bool = False) -> Snapshot | None:
    """Return the snapshot whose loss costs least; None if all have to stay.

    Those that the newest sources cannot use go first, those of old runs before others. Of the rest
    a ladder is kept, close below the deepest and wider further up: what counts is by which part
    the next run gets longer. After them go those that somebody asked for. The first after the
    imports and the deepest go last, and only if `memory_is_short`; one from which a run came that
    has not ended never goes.
    """
    free = [one for one in snapshots if not one.resuming]
    stale = [one for one in free if one.is_stale]
    if stale:
        return min(stale, key=lambda one: (one.run, -one.elapsed))
    useful = sorted((one for one in snapshots if not one.is_stale), key=_depth)
    if not useful:
        return None
    deepest = deepest_first(useful)[0]
    early = next((one for one in useful if one.is_past_imports), useful[0])
    losses = {
        one.id: _loss(below, one, deepest)
        for below, one in zip([None, *useful], useful, strict=False)
    }
    middle = [one for one in useful if not one.resuming and one not in (deepest, early)]
    inner = [one for one in middle if not one.is_wanted]
    if inner:
        closest = min(inner, key=lambda one: (losses[one.id], one.run))
        twin = useful[useful.index(closest) - 1]
        return twin if twin in inner and twin.run < closest.run else closest
    if middle:
        return min(middle, key=lambda one: (one.run, one.elapsed))
    ends = [one for one in (early, deepest) if not one.resuming]
    return ends[0] if memory_is_short and ends else None


def _depth(snapshot: Snapshot) -> tuple[float, int, int]:
    return snapshot.elapsed, -snapshot.run, -int(snapshot.id)


def _loss(below: Snapshot | None, one: Snapshot, deepest: Snapshot) -> float:
    """Return by which part a run gets longer that cannot begin at `one` any more."""
    start = below.elapsed if below else 0.0
    left = deepest.elapsed - start
    return (one.elapsed - start) / left if left > 0 else 0.0


# --- what the machine says


def identity(path: str) -> tuple[int, int]:
    """Return which file or folder is at a path now; (0, 0) if none."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def memory() -> tuple[int, int]:
    """Return how many bytes of memory we may have at all, and how many we could get now."""
    found = {"MemTotal": 0, "MemAvailable": 0}
    for line in _lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name in found:
            found[name] = int(rest.split()[0]) * 1024
    total, available = found["MemTotal"], found["MemAvailable"]
    for limit, left in _cgroup_limits():
        total, available = min(total, limit), min(available, left)
    return total, available


def _cgroup_limits() -> Iterable[tuple[int, int]]:
    """Give for each control group around us its limit, and what of that is left."""
    ours = [line[3:].strip() for line in _lines("/proc/self/cgroup") if line.startswith("0::")]
    path = ours[0] if ours else "/"
    while True:
        folder = _CGROUPS + path.rstrip("/")
        limit, used = _lines(f"{folder}/memory.max"), _lines(f"{folder}/memory.current")
        if limit and used and limit[0].strip().isdigit():
            cache = [one for one in _lines(f"{folder}/memory.stat") if one.startswith("inactive_")]
            spare = sum(int(one.split()[1]) for one in cache if one.startswith("inactive_file "))
            yield int(limit[0]), int(limit[0]) - int(used[0]) + spare
        if path in ("/", ""):
            return
        path = os.path.dirname(path)


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.readlines()
    except OSError:
        return []


def installed() -> str:
    """Return a name for the Python and the packages that a program started now would get."""
    from _blake2 import blake2b

    parts = [repr(identity(sys.executable))]
    for folder in _package_folders():
        try:
            with os.scandir(folder) as entries:
                parts += sorted(
                    f"{one.name} {one.stat().st_mtime_ns}"
                    for one in entries
                    if one.name.endswith(_OF_PACKAGES)
                )
        except OSError:
            parts.append(f"no {folder}")
    text = "\n".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=16).hexdigest()
