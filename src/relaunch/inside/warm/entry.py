"""Prepares a script: its sources with sites, its names as Python gives them, its first step."""

from __future__ import annotations

import atexit
import builtins
import json
import os
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader
from types import ModuleType

from . import (
    arrivals,
    held,
    ledger,
    linetable,
    morph,
    pytests,
    quiet,
    shot,
    shown,
    sites,
    spine,
    states,
    unseen,
    where,
    wrapped,
)
from .stencils import Stencils

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from .loaded import Loaded

_OF_A_SCRIPT = frozenset(
    ("__annotations__", "__builtins__", "__cached__", "__doc__", "__file__", "__loader__",
     "__name__", "__package__", "__spec__")
)  # fmt: skip
_PACKAGE = "_relaunch_warm."
_LIBRARY = {"os", "posix", "posixpath", "time", "signal", "select", "socket", "fcntl", "json"}
_BOM = b"\xef\xbb\xbf"
_EXTERNAL = "<frozen importlib._bootstrap_external>"


def start(
    names: dict[str, Any],
    signals: set[int],
    before: tuple[bool, list[int]],
    first: list[int],
    known: set[str],
) -> None:
    """Make `names` those of the script, and the next call of `stop` its first step.

    `signals` are those that were held back when this process began, `before` is what the collector
    of garbage was like then, `first` the first object of ours, and `known` are the modules that had
    been loaded.
    """
    spec = json.loads(sys.argv[1])
    signals = signals - {*spec.get("held", ())}  # those were held back for us
    mask = held.Mask(sum(1 << number - 1 for number in signals))
    if sys.gettrace() is not None or sys.getprofile() is not None:
        unseen.shelter()
    words = sys.argv[3:]
    sys.argv[:] = words
    sys.orig_argv[:] = spec["command"]
    module = words[1] if words[0] == "-m" else ""
    full = os.path.join(os.getcwd(), words[0])
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, os.getcwd() if module else os.path.dirname(os.path.realpath(full)))
    program = spine.Program()
    program.often = spec.get("often", program.often)
    program.due_at = program.began + program.often
    program.want(spec.get("at", ()))
    program.kept = Stencils(spec.get("cache", ""))
    loaded = None if module else _load(program, full)
    if (loaded is None and not module) or not proven():
        held.release(mask)
        os.execv(sys.executable, spec["command"])
    try:
        watch_imports(program, spec["roots"])
        shot.Camera(spec).attach(program)
    except Exception as error:  # as where there is no place for snapshots: Python can do it all
        where.leave_word(spec, error)
        held.release(mask)
        os.execv(sys.executable, spec["command"])
    atexit.register(program.rest)
    _keep_library()
    del sys.meta_path[0]
    for name in [name for name in sys.modules if name.startswith("_relaunch_warm")]:
        del sys.modules[name]  # so that Python takes nothing from us when it takes modules apart
    _make_way(known)
    for name in [*names]:
        if name not in _OF_A_SCRIPT:
            del names[name]
    names["__doc__"] = None
    if loaded is None:
        del sys.argv[1]
        setattr(builtins, sites.STOP, _run_module(module, names, mask))
    else:
        names["__file__"] = full
        names["__loader__"] = SourceFileLoader("__main__", full)
        setattr(builtins, sites.STOP, _first_step(program, loaded, names, mask))
    quiet.hide(first)
    quiet.go_on(before)


def _keep_library() -> None:
    """Have what we use of the library for ourselves: programs replace it, as by mocks."""
    ours = [vars(module) for name, module in sys.modules.items() if name.startswith(_PACKAGE)]
    copies: dict[str, ModuleType] = {}
    for name in _LIBRARY & sys.modules.keys():
        copies[name] = ModuleType(name)
        for key, value in vars(sys.modules[name]).items():
            vars(copies[name])[key] = wrapped.real(value)
    vars(copies["os"])["path"] = copies["posixpath"]
    for names in ours:
        for name, copy in copies.items():
            if names.get(name) is sys.modules[name]:
                names[name] = copy


def _make_way(known: set[str]) -> None:
    """Let the program load for itself what only we needed: it may have its own of that name.

    And it may look: at what is loaded, at what an import does, at the garbage that one leaves.
    """
    for name in sys.modules.keys() - known:
        if (getattr(sys.modules[name], "__file__", None) or "").endswith(".py"):
            del sys.modules[name]


def proven() -> bool:
    """Tell whether this interpreter lets itself be edited while it runs."""
    try:
        linetable.prove()
    except OSError:
        return False
    return unseen.works() and morph.works()


def _load(program: spine.Program, file: str) -> Loaded | None:
    """Read the script; None where Python itself has to say what is wrong with it, or is quicker."""
    try:
        with open(file, "rb") as stream:
            text = decode(stream.read())
        loaded = program.load(text, file, is_warned_of=False)
    except (OSError, SyntaxError, ValueError, UnicodeError, RecursionError):
        return None
    return loaded if _first_site(loaded) is not None else None


def decode(data: bytes) -> str:
    """Return the text of a source file, by the encoding that it declares."""
    if not data.startswith(_BOM) and b"coding" not in b"".join(data.splitlines()[:2]):
        return data.decode().replace("\r\n", "\n").replace("\r", "\n")
    from importlib.util import decode_source

    return decode_source(data)


def _first_site(loaded: Loaded) -> int | None:
    for index, statement in enumerate(loaded.source.tree.body):
        if not sites.is_prelude(index, statement):
            return index
    return None


def _first_step(program: spine.Program, loaded: Loaded, names: dict[str, Any], mask: Any) -> Any:
    def step(_: int) -> None:
        delattr(builtins, sites.STOP)
        index = _first_site(loaded) or 0
        for statement in loaded.source.tree.body[:index]:
            _do(statement, names)
        number = loaded.first + index
        for before in range(loaded.first, number):
            program.seen[before] = 1
        morph.morph(sys._getframe(1), loaded.code, sites.stop_calls(loaded.code)[number])
        program.seen[number] = 1
        held.release(mask)

    return step


def _run_module(module: str, names: dict[str, Any], mask: Any) -> Any:
    """Return what gives the function that runs a module, as `python -m` does.

    The frame below it, that of our own file, is not to be seen.
    """
    import runpy

    for name in ("__file__", "__cached__"):
        names.pop(name, None)
    names["__loader__"] = BuiltinImporter

    def run() -> None:
        del names["__rl_run__"]
        held.release(mask)
        runpy._run_module_as_main(module)  # type: ignore[attr-defined]

    def step(_: int) -> Any:
        delattr(builtins, sites.STOP)
        below = sys._getframe(1)
        morph.morph(below, unseen.never_begun(below.f_code), morph.waits_at(below))
        return run

    return step


def _do(statement: Any, names: dict[str, Any]) -> None:
    """Do what stands before the first site: the docstring, and imports from `__future__`."""
    if sites.is_docstring(statement):
        names["__doc__"] = statement.value.value
        return
    import __future__

    for alias in statement.names:
        names[alias.asname or alias.name] = getattr(__future__, alias.name)


def watch_imports(program: spine.Program, roots: list[str]) -> None:
    """Give the project's own modules sites when they are imported."""
    theirs = SourceFileLoader.get_code
    tops = tuple(os.path.join(root, "") for root in roots)

    def is_project(path: str) -> bool:
        return os.path.abspath(path).startswith(tops) and "/site-packages/" not in path

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        path = self.get_filename(fullname)
        if arrivals.is_awaited(fullname):
            return _watched(self, fullname, path)
        if fullname == "warnings" and ledger.installed is not None:
            shown.note_warned(ledger.installed)
        translated = type(self).source_to_code is not SourceFileLoader.source_to_code
        if not is_project(path) or translated or program.is_closed:
            if not states.is_of_a_package(path):
                _note_library(path)
            return unseen.in_sight(theirs, self, fullname)  # type: ignore[no-any-return]
        # It says what is wrong, and keeps bytecode, as ever.
        native: CodeType | None = unseen.in_sight(theirs, self, fullname)
        before = quiet.enter()
        first = quiet.mark()
        try:
            if path in program.files:
                program.never = f"{fullname} was loaded twice"
            return program.load(decode(self.get_data(path)), path).code
        except (OSError, SyntaxError, ValueError, UnicodeError, RecursionError):
            _note_library(path)
            return native
        finally:
            quiet.hide(first)
            quiet.leave(before)

    def _watched(loader: SourceFileLoader, name: str, path: str) -> CodeType | None:
        native: CodeType | None = unseen.in_sight(theirs, loader, name)
        before = quiet.enter()
        try:
            return arrivals.watched(name, decode(loader.get_data(path)), path)
        except (OSError, SyntaxError, ValueError, UnicodeError, RecursionError):
            return native
        finally:
            quiet.leave(before)

    def _note_library(path: str) -> None:
        """Note a source that is neither the project's nor installed, as one that was read."""
        known = ledger.installed
        before = quiet.enter()
        try:
            if known is not None:
                known.read(known.full(path))
        finally:
            quiet.leave(before)

    pytests.watch(program, is_project)
    get_code.__code__ = get_code.__code__.replace(co_filename=_EXTERNAL)
    SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
