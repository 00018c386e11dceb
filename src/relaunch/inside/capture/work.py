"""Writes one capture, in a copy of the process that failed.

capture/PID-1/facts.json       the error, the frames, what is missing, how to be where it failed
capture/PID-1/0.plain ...      the variables of each frame, outermost first
capture/PID-1/globals.plain    data of the user's modules that the frames can read
capture/PID-1/random.plain     the state of the random generators
capture/PID-1/memory           what arrays and tensors hold
capture/PID-1/sources          the user's source files as they were, compressed

What holds more than plain data is a `.pickle` in the place of a `.plain`.
"""

from __future__ import annotations

import sys
import time

from relaunch.inside import report
from relaunch.inside.capture import device
from relaunch.inside.capture.frames import INNERMOST, OUTERMOST, chosen, depth_of, globals_read
from relaunch.inside.capture.keeper import Keeper, OutOfTime
from relaunch.inside.capture.memory import Memory
from relaunch.inside.capture.own import Own, module_file, modules
from relaunch.inside.capture.paths import paths
from relaunch.inside.capture.rebuild import NAME
from relaunch.inside.capture.secrets import Secrets, is_secret
from relaunch.inside.protocol import CAPTURE_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    import posix
    from collections.abc import Mapping, Sequence
    from typing import Any

    from relaunch.inside.capture.frames import Kept
else:
    posix = sys.modules["posix"]

BUDGET, LIMIT_S = 64 << 20, 5.0
"""What a capture takes at most, unless told otherwise."""
_FILES = ("facts.json", "memory", "sources")
_described: Any = report.described  # a file for older Pythons has no types
_to_json: Any = report.to_json
_MOST_SOURCE = 4 << 20
_LITTLE = 1 << 20
"""The budget of a process that ran out of memory."""
_clock = time.monotonic


class Place:
    """Where captures go, and what they may take."""

    def __init__(
        self,
        folder: str,
        *,
        environ: Mapping[str, str] | None = None,
        secrets: Sequence[str] = (),
        roots: Sequence[str] = (),
        budget: int = BUDGET,
        limit_s: float = LIMIT_S,
    ) -> None:
        """Write below `folder`; `secrets` are names in `environ`."""
        self.folder, self.roots, self.budget, self.limit_s = folder, roots, budget, limit_s
        self.environ, self.secrets = environ or {}, secrets


class Work:
    """One capture on its way to the disk; runs in a copy of the process."""

    def __init__(
        self, place: Place, error: BaseException, tb: Any, who: str, states: Any, until: float,
        name: str,
    ) -> None:  # fmt: skip
        self.place, self.error, self.tb, self.who = place, error, tb, who
        self.states, self.until, self.name = states, until, name
        self.temp = f"{place.folder}/.{name}.tmp"
        self.own = Own(place.roots)
        self.budget = _LITTLE if isinstance(error, MemoryError) else place.budget
        self.room = self.budget
        self.memory = Memory(self.budget)
        self.secrets = Secrets(place.environ, place.secrets, sys.orig_argv)
        self.out_of_time = False
        self.near: dict[int, tuple[Any, Any]] = {}

    def fetch(self) -> None:
        """Get what lies on a GPU, while this is still the program's own process."""
        frames = chosen(self.tb, self.own)
        variables = [kept.variables for kept in reversed(frames)]
        try:
            self.near = device.fetched(variables, self.budget)
        except Exception:  # then only shapes are kept
            self.near = {}

    def do(self) -> None:
        """Write everything beside its place, then put it there."""
        began = _clock()
        frames = chosen(self.tb, self.own)
        if not frames:
            return
        self._make_folder()
        from relaunch.inside.capture import rebuild

        sys.modules[NAME] = rebuild  # where pickle looks whether a name is what it says
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 5000))
        self.keeper = Keeper(self.memory, self.own, self.until, self.near)
        for kept in frames:
            self.secrets.look_at(kept.variables)
        facts = self._facts(frames)
        facts["globals"] = self._write_globals(frames)
        facts["pickled"] = [*self.keeper.pickled]
        self._write_frames(frames, facts["frames"])
        self._put_values("random", self.keeper.dump(self.states, 1 << 20)[0])
        self._write_memory(facts)
        self._write_sources()
        facts["took_s"] = _clock() - began
        facts["out_of_time"] = self.out_of_time
        facts["secrets"] = self.secrets.table
        text = _to_json(self.secrets.hide_texts(facts))
        self._put("facts.json", text.encode("ascii", "replace"), hide=False)
        posix.rename(self.temp, f"{self.place.folder}/{self.name}")

    def discard(self) -> None:
        """Remove what is left of a capture that did not come to its end."""
        values = ("globals", "random", *range(OUTERMOST + INNERMOST))
        names = [f"{one}.{kind}" for one in values for kind in ("plain", "pickle")]
        for name in (*names, *_FILES):
            try:
                posix.unlink(f"{self.temp}/{name}")
            except OSError:
                continue
        try:
            posix.rmdir(self.temp)
        except OSError:
            pass

    def _make_folder(self) -> None:
        folder = self.place.folder
        try:
            posix.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        posix.mkdir(self.temp, 0o700)

    # --- the parts

    def _facts(self, frames: list[Kept]) -> dict[str, Any]:
        libraries, mine = modules(self.own)
        self.files = {*mine.values(), *(kept.file for kept in frames)}
        main = sys.modules.get("__main__")
        spec = getattr(main, "__spec__", None)
        guarded = _guarded()
        return {
            "schema": CAPTURE_SCHEMA,
            "when": time.time(),
            "pid": int(self.name.partition("-")[0]),
            "who": self.who,
            "error": _described(self.error, self.tb),
            "frames": [kept.facts() for kept in frames],
            "depth": depth_of(self.tb),
            "is_own": self.own.has(frames[-1].file),
            "python": {
                "executable": sys.executable,
                "version": ".".join(map(str, sys.version_info[:3])),
                "options": _options(),
                "path": _path(guarded),
            },
            "guarded": guarded,
            "cwd": _cwd(),
            "environ": self._environ(),
            "argv": [word for word in getattr(sys, "argv", ()) if isinstance(word, str)],
            "main": {
                "file": _absolute(module_file(main)),
                "name": str(getattr(spec, "name", "") or ""),
                "package": str(getattr(main, "__package__", "") or ""),
            },
            "roots": list(self.place.roots),
            "libraries": libraries,
            "modules": [*mine],
            "rewritten": [file for name, file in mine.items() if _is_rewritten(name)],
            "stamps": {file: _stamp(file) for file in sorted(self.files) if _stamp(file)},
        }

    def _environ(self) -> dict[str, str | None]:
        """Return what the program changed in its environment; None: it is gone."""
        now = getattr(sys.modules.get("os"), "environ", {})
        then = self.place.environ
        changed = {name: now[name] for name in now if then.get(name) != now[name]} if then else {}
        gone: dict[str, str | None] = {name: None for name in then if name not in now}
        found = {**changed, **gone}
        return {
            name: value
            for name, value in found.items()
            if not name.startswith("RELAUNCH_") and not is_secret(name, value or "")
        }

    def _write_globals(self, frames: list[Kept]) -> list[list[str]]:
        found = globals_read(frames, self.own)
        self.secrets.look_at({name: value for (_, name), value in found.items()})
        self.memory.rank = 1
        try:
            data, skipped = self.keeper.dump_each([*found.values()], self.room // 2)
        except OutOfTime:
            self.out_of_time = True
            data, skipped = b"", ["out of time"] * len(found)
        self.memory.rank = 0
        self._put_values("globals", data)
        self.room -= len(data)
        told = []
        for (place, value), why in zip(found.items(), skipped, strict=True):
            told.append([*place, why])
            if not why:
                self.keeper.globals[id(value)] = place
        return told

    def _write_frames(self, frames: list[Kept], facts: list[dict[str, Any]]) -> None:
        """Write the variables of each frame, the innermost first: the budget is for what failed."""
        for number in reversed(range(len(frames))):
            kept, one = frames[number], facts[number]
            self.keeper.notes.clear()
            one.update(bytes=0, missing=[], notes=[], pickled=[], kept=False)
            if self.out_of_time:
                one["missing"] = ["all of it: out of time"]
                continue
            try:
                data, lost = self.keeper.dump(kept.variables, max(self.room, 1 << 20))
            except OutOfTime:
                self.out_of_time = True
                one["missing"] = ["all of it: out of time"]
                continue
            except Exception as error:
                one["missing"] = [f"all of it: {type(error).__name__}"]
                continue
            self.room -= len(data)
            self._put_values(str(number), data)
            one.update(bytes=len(data), pickled=[*self.keeper.pickled], kept=True)
            one["missing"] = [f"{name}: {why}" for name, why in lost.items()]
            self._tell_notes(kept, one)

    def _tell_notes(self, kept: Kept, one: dict[str, Any]) -> None:
        notes = self.keeper.notes
        ways = paths(kept.variables, {*notes})
        for number, (_, words, is_missing) in notes.items():
            way = ways.get(number, "")
            one["missing" if is_missing else "notes"].append(f"{way}: {words}" if way else words)

    def _write_memory(self, facts: dict[str, Any]) -> None:
        fd = self._open("memory")
        try:
            self.memory.write(lambda data: _write_all(fd, self.secrets.hide_raw(data)))
        finally:
            posix.close(fd)
        facts["memory"] = self.memory.table()
        facts["memory_bytes"] = self.memory.size
        facts["shapes_only_bytes"] = self.memory.left_out
        facts["bytes"] = self.memory.size + sum(one["bytes"] for one in facts["frames"])

    def _write_sources(self) -> None:
        """Write the source that ran, for what only shows against it: which edits a replay sees."""
        import zlib

        found, room = {}, _MOST_SOURCE
        for file in sorted(self.files):
            data = b"" if room <= 0 or _clock() > self.until else _read(file)
            if data:
                room -= len(data)
                found[file] = data
        data = self.keeper.dump(found, 2 * _MOST_SOURCE)[0]
        self._put("sources", zlib.compress(self.secrets.hide(data), 1), hide=False)

    # --- files

    def _open(self, name: str) -> int:
        flags = posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL | posix.O_CLOEXEC
        return posix.open(f"{self.temp}/{name}", flags, 0o600)

    def _put_values(self, name: str, data: bytes) -> None:
        """Write what the keeper just made of values."""
        self._put(f"{name}.{'plain' if self.keeper.is_plain else 'pickle'}", data)

    def _put(self, name: str, data: bytes, *, hide: bool = True) -> None:
        fd = self._open(name)
        try:
            if hide:
                self.secrets.look_in_pickle(data)
            _write_all(fd, self.secrets.hide(data) if hide else data)
        finally:
            posix.close(fd)


def _write_all(fd: int, data: Any) -> None:
    view = memoryview(data)
    while view:
        view = view[posix.write(fd, view) :]


def _is_rewritten(name: str) -> bool:
    """Tell whether pytest gave the asserts of a module its own words."""
    return "@pytest_ar" in getattr(sys.modules.get(name), "__dict__", {})


def _guarded() -> dict[str, str]:
    """Return the packages that a guard of ours finds, each with its folder or file."""
    found: dict[str, str] = {}
    for finder in sys.meta_path:
        if type(finder).__name__ in ("SourceGuard", "Front"):
            for name, folder in finder.places.items():  # type: ignore[attr-defined]
                found[name] = f"{folder}/{name.rpartition('.')[2]}"
    return found


def _path(guarded: dict[str, str]) -> list[str]:
    """Return the import path as it would have to be without a guard."""
    folders: list[str] = []
    for name, path in guarded.items():
        for _ in name.split("."):
            path = path.rpartition("/")[0]
        folders.append(path)
    given = [entry for entry in sys.path if isinstance(entry, str)]
    return [*dict.fromkeys(one for one in folders if one not in given), *given]


def _options() -> list[str]:
    """Return the options of Python that a replay needs too."""
    found = ["-O"] * sys.flags.optimize
    for name, value in getattr(sys, "_xoptions", {}).items():
        found.append(f"-X{name}" if value is True else f"-X{name}={value}")
    return [*found, *(f"-W{word}" for word in sys.warnoptions)]


def _cwd() -> str:
    try:
        return str(posix.getcwd())
    except OSError:
        return ""


def _absolute(path: str) -> str:
    return path if path[:1] in ("", "/") else f"{_cwd()}/{path}"


def _stamp(file: str) -> list[int]:
    try:
        found = posix.stat(file)
    except OSError:
        return []
    return [found.st_mtime_ns, found.st_size]


def _read(file: str) -> bytes:
    try:
        fd = posix.open(file, posix.O_RDONLY | posix.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts: list[bytes] = []
        while len(parts) < 64 and (block := posix.read(fd, 1 << 16)):
            parts.append(block)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        posix.close(fd)
