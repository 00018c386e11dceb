"""A capture as a replay reads it: facts, memory, variables, and the modules they belong to."""

from __future__ import annotations

import importlib
import json
import mmap
import os
import pickle
import sys
from _blake2 import blake2b

from relaunch.inside import guard
from relaunch.inside.capture import randoms, rebuild
from relaunch.inside.replay import modules, plain
from relaunch.inside.replay.edits import Edits
from relaunch.inside.replay.script import Script
from relaunch.inside.replay.source import Source, lines_of, moved

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, ModuleType
    from typing import Any


class Broken(Exception):
    """A file of a capture is not what was kept."""


class Capture:
    """One capture, loaded as far as somebody asks."""

    def __init__(
        self,
        folder: str,
        digests: dict[str, str],
        moved: list[list[str]] | None = None,
        *,
        is_own: bool,
    ) -> None:
        """Read the facts; files below the first of a pair in `moved` are now below the second.

        Only files with these digests are read; any where there are none.
        """
        self.folder = folder
        self._is_own = is_own
        self._digests = digests
        self._moved = moved or []
        self.facts: dict[str, Any] = json.loads(self._read("facts.json"))
        self.notes: list[str] = []
        self._sources: dict[str, Source] = {}
        self._old: dict[str, bytes] | None = None
        self._is_old = False
        self._lines: dict[str, tuple[list[str], list[str]]] = {}
        self._script: Script | None = None
        self._secrets = self._known_secrets()
        self._rewritten = {self.here(path) for path in self.facts["rewritten"]}

    def _read(self, name: str) -> bytes:
        """Return a file, refusing one that was put there after its digest was taken."""
        with open(os.path.join(self.folder, name), "rb") as file:
            data = file.read()
        digest = f"{len(data)}-{blake2b(data, digest_size=32).hexdigest()}"
        if self._digests and self._digests.get(name) != digest:
            raise Broken(f"{name} was changed while it was read")
        return data

    def here(self, path: str) -> str:
        """Return where a file of then is now."""
        for old, new in self._moved:
            if f"{path}/".startswith(f"{old}/"):
                return new + path[len(old) :]
        return path

    def enter(self) -> None:
        """Be where the program was: folder, words, import path."""
        os.chdir(self.here(self.facts["cwd"] or "/"))
        sys.argv[:] = self.facts["argv"]
        for name, value in self.facts["environ"].items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        ours = [entry for entry in sys.path if entry not in self.facts["python"]["path"]]
        sys.path[:] = [*map(self.here, self.facts["python"]["path"]), *ours]
        sys.path_importer_cache.clear()  # `lib` is another folder from here
        for name in self.facts["modules"]:
            sys.modules.pop(name, None)  # a library of that name, where the user has another
        guarded = self.facts.get("guarded", {})
        guard.install([f"{name}={self.here(path)}" for name, path in guarded.items()])
        modules.load_from(self._code_of_module)
        rebuild.session.module = self.module
        rebuild.session.code = self.code
        rebuild.session.memory = Memory(self.folder, self.facts["memory"])
        rebuild.session.notes = self.notes

    # --- code

    def source(self, path: str) -> Source:
        """Return a file of the user."""
        path = self.here(path)
        if path not in self._sources:
            data = self.old_sources().get(path) if self._is_old else None
            self._sources[path] = Source(path, data, rewritten=path in self._rewritten)
        return self._sources[path]

    def _code_of_module(self, path: str) -> Callable[[], CodeType] | None:
        """Return the code of a module that is not to be loaded as Python would."""
        if path in self._rewritten or (self._is_old and path in self.old_sources()):
            return lambda: self.source(path).code
        return None

    def old_sources(self) -> dict[str, bytes]:
        """Return the user's files as they were, by where they are now."""
        if self._old is None:
            found = plain.sources_of(self._read("sources"))
            self._old = {self.here(path): data for path, data in found.items()}
        return self._old

    def be_old(self) -> None:
        """Use the code as it was when the call failed; tracebacks show it, too."""
        import linecache

        self._is_old = True
        for path, data in self.old_sources().items():
            lines = data.decode("utf-8", "replace").splitlines(keepends=True)
            linecache.cache[path] = (len(data), None, lines, path)

    def with_old_lines(self, error: dict[str, Any]) -> dict[str, Any]:
        """Return what is told of an error, with the lines of the code that ran."""
        for frame in error["frames"] if self._is_old else ():
            data = self.old_sources().get(frame["file"])
            if "source" in frame and data is not None:
                frame["source"] = lines_of(data)[frame["line"] - 1].strip()[:500]
        for name in ("cause", "context"):
            if name in error:
                self.with_old_lines(error[name])
        for member in error.get("members", ()):
            self.with_old_lines(member)
        return error

    def edits(self) -> dict[str, Edits]:
        """Return what was edited since, file by file."""
        found = {}
        for path, data in {} if self._is_old else self.old_sources().items():
            try:
                now = self.source(path)
                if now.data != data:
                    found[path] = Edits(Source(path, data), now)
            except (OSError, SyntaxError):
                continue
        return found

    def code(self, path: str, qualname: str, first: int, *more: Any) -> CodeType | None:
        """Return the code of a function as it is now; None if it is no longer there."""
        try:
            return self.source(path).find_code(qualname, self.line_now(path, first), *more)
        except (OSError, SyntaxError):
            return None

    def line_now(self, path: str, line: int) -> int:
        """Return where a line of then is now."""
        path = self.here(path)
        old = self.old_sources().get(path)
        now = self.source(path)
        if old is None or old == now.data:
            return line
        if path not in self._lines:
            self._lines[path] = lines_of(old), now.lines
        return moved(line, *self._lines[path])

    def module(self, name: str) -> ModuleType:
        """Import a module; the program itself is one of them."""
        if name not in ("__main__", "__mp_main__"):
            return importlib.import_module(name)
        if self._script is None:
            self._script = Script(self.facts["main"], self.source(self.facts["main"]["file"]))
            self._script.load()
        return self._script.module

    # --- data

    def variables(self, number: int) -> dict[str, Any]:
        """Return the variables of a frame."""
        found: dict[str, Any] = _next(self._reader(str(number)), f"frame {number + 1}")
        return found

    def set_globals(self, edits: dict[str, Edits]) -> None:
        """Give the modules of the user the data that they had, but for what is edited since."""
        reader = self._reader("globals")
        for module_name, name, why in self.facts["globals"]:
            if why:
                continue
            value = _next(reader, "the globals")
            try:
                module = self.module(module_name)
            except Exception as error:
                self.notes.append(f"{module_name} cannot be imported: {error}")
                continue
            edit = edits.get(str(getattr(module, "__file__", "")))
            is_new = edit is not None and (name in edit.names or name in edit.functions)
            if not isinstance(value, rebuild.Missing):
                _set(module, name, value, only_if_missing=is_new)
        if self._script is not None:
            self._script.finish()

    def set_random(self) -> None:
        """Set the random generators as they were."""
        randoms.put_back(_next(self._reader("random"), "the random generators"))

    def _reader(self, name: str) -> Any:
        """Return what reads the values in a file: without a pickle where they are plain data."""
        import io

        is_plain = os.path.exists(os.path.join(self.folder, f"{name}.plain"))
        data = self._read(f"{name}.plain" if is_plain else f"{name}.pickle")
        for word, value in self._secrets.items():
            data = data.replace(word, value)
        if not is_plain:
            return _Unpickler(io.BytesIO(data))
        return plain.Own(io.BytesIO(data)) if self._is_own else plain.Foreign(data)

    def _known_secrets(self) -> dict[bytes, bytes]:
        """Return the secrets that the environment has now, by the words that stand for them."""
        found = {}
        for word, name in self.facts["secrets"].items():
            value = os.environ.get(name) or os.environ.get(name.upper()) or ""
            if value and len(value.encode()) == len(word):
                found[word.encode()] = value.encode()
            else:
                self.notes.append(
                    f"{name} is a secret and was not kept: {name.upper()}=... gives it"
                )
        return found


def _next(reader: Any, what: str) -> Any:
    """Read one value."""
    try:
        return reader.load()
    except (pickle.UnpicklingError, EOFError, MemoryError) as error:
        why = str(error) or type(error).__name__
        raise Broken(f"what was kept of {what} cannot be read: {why}") from None


def _set(module: ModuleType, name: str, value: Any, *, only_if_missing: bool) -> None:
    """Give a module, or a class in it, its data."""
    *outer, last = name.split(".")
    owner: Any = module
    for part in outer:
        owner = vars(owner).get(part)
        if not isinstance(owner, type):
            return
    if only_if_missing and last in vars(owner):
        return
    try:
        setattr(owner, last, value)
    except (AttributeError, TypeError):  # an enumeration keeps its members
        return


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == rebuild.NAME:
            return getattr(rebuild, name)
        return rebuild.named(module, name)


class Memory:
    """What arrays and tensors held, mapped: only what is touched is read, nothing is written."""

    def __init__(self, folder: str, table: list[list[Any]]) -> None:
        """Map the file; without one there is none."""
        self._table = table
        self._map: Any = bytearray(0)
        with open(os.path.join(folder, "memory"), "rb") as file:
            if os.fstat(file.fileno()).st_size:
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)

    def array(self, piece: int, dtype: Any, shape: Any, strides: Any, writeable: bool) -> Any:
        """Make an array of numpy."""
        numpy = sys.modules.get("numpy") or importlib.import_module("numpy")
        if not isinstance(dtype, numpy.dtype) or dtype.hasobject:
            raise ValueError("memory is kept of plain numbers alone")
        how, at, span, _ = self._table[piece]
        steps, inner = strides
        if how == "span":
            made = numpy.ndarray(shape, dtype, self._map, at + inner, steps)
        elif how == "dense":
            room = numpy.ndarray(shape, dtype, mmap.mmap(-1, span), inner, steps)
            room[...] = numpy.ndarray(shape, dtype, self._map, at)
            made = room
        else:
            made = numpy.ndarray(shape, dtype, mmap.mmap(-1, max(1, span)), inner, steps)
        made.flags.writeable = writeable
        return made

    def tensor(self, piece: int, facts: dict[str, Any]) -> Any:
        """Make a tensor of torch."""
        torch = importlib.import_module("torch")
        how, at, _, seen = self._table[piece]
        dtype = getattr(torch, facts["dtype"])
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"torch.{facts['dtype']} is no type of numbers")
        shape, strides = facts["shape"], facts["strides"]
        if how == "span":
            made = _on(self._map, torch, dtype, at, shape, strides)
        else:
            steps = sum((count - 1) * step for count, step in zip(shape, strides, strict=True))
            room = mmap.mmap(-1, max(1, steps + 1) * dtype.itemsize)  # zeros that take no memory
            made = _on(room, torch, dtype, 0, shape, strides)
            if how == "dense":
                flat = _on(self._map, torch, dtype, at, (seen // dtype.itemsize,), (1,))
                made.copy_(flat.reshape(shape))
        device = facts["device"]
        if device == "meta" or (device != "cpu" and torch.cuda.is_available()):
            made = made.to(device)
        elif device != "cpu":
            rebuild.session.notes.append(f"there is no {device} here: its tensors are on the CPU")
        if facts["kind"] == "Parameter":
            return torch.nn.Parameter(made, requires_grad=facts["requires_grad"])
        if facts["kind"] == "Buffer":
            return torch.nn.Buffer(made)
        return made.requires_grad_() if facts["requires_grad"] else made


def _on(room: Any, torch: Any, dtype: Any, at: int, shape: Any, strides: Any) -> Any:
    """Make a tensor on mapped memory; those that overlap share it."""
    made = torch.empty(0, dtype=dtype)
    if 0 in shape:
        return made.reshape(shape)
    # Its storage begins with it: some of torch, as set_rng_state, looks at nothing else.
    storage = torch.frombuffer(room, dtype=torch.uint8, offset=at).untyped_storage()
    return made.set_(storage, 0, shape, strides)


def zeros_note(facts: dict[str, Any]) -> str:
    """Say that some data are zeros, if they are."""
    count = facts["shapes_only_bytes"]
    return f"{count >> 20} MiB were over the budget: zeros of the same shapes" if count else ""
