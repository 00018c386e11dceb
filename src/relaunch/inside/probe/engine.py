"""The ways into a program: every file with a probe is compiled with it, whoever loads the file.

Source loaders of any finder are reached where they all meet, in `SourceFileLoader.get_code`; a
script and what `runpy` runs, where Python is about to execute them; modules that were there before
us, through the code of their functions. Bytecode of the user is neither read nor written for these.
"""

from __future__ import annotations

import gc
import os
import sys

from relaunch.inside.probe import bytecode, dynamo, finite, lines, memory, pytests, rewrite
from relaunch.inside.probe.chain import program_frame
from relaunch.inside.warm.morph import function_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, FrameType
    from typing import Any

    from relaunch.inside.probe.runtime import Runtime

_EXTERNAL: Any = sys.modules["_frozen_importlib_external"]
_CODE = type(sys._getframe().f_code)
_FUNCTION = type(lambda: None)


class Engine:
    """The probes by file, and what became of them."""

    def __init__(self, runtime: Runtime, roots: Sequence[str] = ()) -> None:
        """Know which files to look out for; all below `roots` are looked at for nan and inf."""
        self._roots = tuple(os.path.join(os.path.realpath(one), "") for one in roots)
        self.runtime = runtime
        self._by_file: dict[str, list[tuple[int, Any]]] = {}
        for number, probe in enumerate(runtime.probes):
            if probe["kind"] == "package":
                continue  # asked for at the end
            self._by_file.setdefault(probe["file"], []).append((number, probe))
        self._names = {os.path.basename(file) for file in self._by_file}
        self._ours: dict[int, CodeType] = {}
        """Code of ours by its identity, kept so that the identity stays its own."""
        self._sources: dict[int, tuple[bytes | str, str, Any]] = {}
        """What code of ours was made from."""
        self._retired: set[int] = set()
        self._function: Any = None
        self._knows_pytest = self._knows_torch = False
        self._paths: dict[str, str] = {}

    def install(self) -> None:
        """Open all ways in."""
        import builtins

        self._function = self.runtime.function()
        setattr(builtins, rewrite.RUNTIME, self._function)
        self.runtime.retire = self.retire
        self._watch_loaders()
        self._watch_execution()
        self._reach_loaded()
        os.register_at_fork(after_in_child=self.runtime.begin_again)

    # --- which file, which code ------------------------------------------------------------------

    def file_of(self, path: str) -> str:
        """Return the probed file that a path leads to; empty if it leads to another."""
        if os.path.basename(path) not in self._names and not self._roots:
            return ""
        known = self._paths.get(path)
        if known is None:
            real = os.path.realpath(path)
            is_ours = real in self._by_file or self._is_looked_at(real)
            known = self._paths[path] = real if is_ours else ""
        return known

    def _is_looked_at(self, real: str) -> bool:
        """Tell whether a file is of the project itself."""
        return real.startswith(self._roots) and "-packages/" not in real if self._roots else False

    def probed(self, source: bytes | str, path: str, change: Any = None) -> CodeType | None:
        """Compile a file with its probes; None where Python itself has to say what is wrong.

        `change` does to the tree what its loader would have done.
        """
        file = self.file_of(path)
        try:
            tree = lines.parse(source, path)
            placed = rewrite.inject(tree, self._by_file.get(file, ()))
            if self._is_looked_at(file):
                finite.inject(tree)
            if change is not None:
                change(tree)
            code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, UnicodeError) as error:
            self.runtime.notes.add("unprobed", file=file, why=f"{type(error).__name__}: {error}")
            return None
        for number, why in placed.refused.items():
            self.runtime.notes.add("unplaced", probe=number, why=why)
        self.runtime.notes.add("loaded", file=file, path=path, probes=list(placed.lines))
        self._ours[id(code)] = code
        self._sources[id(code)] = (source, path, change)
        return code

    def note_stale(self, native: CodeType, source: bytes, path: str) -> None:
        """Note bytecode that says something else than its source: plain Python would run that."""
        if not path.endswith(".py"):
            return
        fresh = compile(source, path, "exec", dont_inherit=True)
        if fresh.co_code != native.co_code or fresh.co_consts != native.co_consts:
            cached = _EXTERNAL.cache_from_source(path)
            self.runtime.notes.add("stale", file=self.file_of(path), cached=cached)

    def is_ours(self, code: CodeType) -> bool:
        """Tell whether a module's code has probes in it."""
        return id(code) in self._ours

    def retire(self, number: int) -> None:
        """Take the calls of a probe out of the program's way, also where it is running."""
        if number in self._retired:
            return
        self._retired.add(number)
        monitoring: Any = getattr(sys, "monitoring", None)
        watched = monitoring is not None and any(map(monitoring.get_tool, range(6)))
        if watched or not memory.is_known():
            return
        frame = program_frame()
        for module in [*self._ours.values()]:
            for code in codes_of(module):
                if rewrite.RUNTIME in code.co_names and number in code.co_consts:
                    for at, end in bytecode.calls_of(code, rewrite.RUNTIME, number):
                        memory.jump(code, at, end)
                    if code is frame.f_code:
                        self._restore(frame, module)

    def _restore(self, frame: FrameType, module: CodeType) -> None:
        """Have the function that is running be itself again from its next call on."""
        code = frame.f_code
        numbers = {one for one in code.co_consts if type(one) is int} - self._retired
        asked = any(bytecode.calls_of(code, rewrite.RUNTIME, one) for one in numbers)
        function = function_of(frame)
        if asked or function is None or function.__code__ is not code:
            return
        source, path, change = self._sources[id(module)]
        tree = lines.parse(source, path)
        if change is not None:
            change(tree)
        for native in codes_of(compile(tree, path, "exec", dont_inherit=True)):
            same = native.co_qualname, native.co_firstlineno, native.co_freevars
            if same == (code.co_qualname, code.co_firstlineno, code.co_freevars):
                function.__code__ = native

    # --- the ways in -----------------------------------------------------------------------------

    def _watch_loaders(self) -> None:
        loader = _EXTERNAL.SourceFileLoader
        self._watch(loader, lambda one: type(one).source_to_code is loader.source_to_code)
        zipped = getattr(sys.modules.get("zipimport"), "zipimporter", None)
        if zipped is not None:
            self._watch(zipped, lambda one: True)

    def _watch(self, loader: Any, is_plain: Callable[[Any], bool]) -> None:
        """Have a kind of loader compile probed files with their probes."""
        theirs = loader.get_code
        engine = self

        def get_code(self: Any, fullname: str) -> CodeType | None:
            engine._look_for_others()
            path = self.get_filename(fullname)
            native: CodeType | None = theirs(self, fullname)  # it says what is wrong, as ever
            if not engine.file_of(path) or native is None:
                return native
            if not is_plain(self):
                engine.runtime.notes.add("translated", file=path, by=type(self).__module__)
                return native
            source = self.get_data(path)
            engine.note_stale(native, source, path)
            return engine.probed(source, path) or native

        # As a part of the import system, so that Python leaves its frame out of tracebacks.
        get_code.__code__ = get_code.__code__.replace(co_filename=theirs.__code__.co_filename)
        loader.get_code = get_code

    def _look_for_others(self) -> None:
        """Agree with those who compile the program's functions themselves, once they are there."""
        if not self._knows_pytest and pytests.REWRITER in sys.modules:
            self._knows_pytest = pytests.watch(self)
        if not self._knows_torch and dynamo.RULES in sys.modules:
            self._knows_torch = dynamo.watch(self._function)

    def _watch_execution(self) -> None:
        """Run a script with its probes when Python is about to run it without them."""
        ours = self._ours
        file_of = self.file_of
        is_hidden = memory.hiding_works()

        def about_to(event: str, args: tuple[Any, ...]) -> None:
            if event != "exec" or type(args[0]) is not _CODE:
                return
            code = args[0]
            if code.co_name != "<module>" or id(code) in ours or not file_of(code.co_filename):
                return
            names = _names_of_run(code)
            new = self._code_instead(code) if names is not None and is_hidden else None
            if new is not None and memory.make_empty(code):
                memory.let_trace(True)
                try:
                    exec(new, names)
                except KeyboardInterrupt:
                    _die_of_interrupt()
                    raise
                finally:
                    memory.let_trace(False)

        memory.hide(about_to)
        sys.addaudithook(about_to)

    def _code_instead(self, code: CodeType) -> CodeType | None:
        try:
            with open(code.co_filename, "rb") as file:
                return self.probed(file.read(), code.co_filename)
        except OSError:
            return None

    def _reach_loaded(self) -> None:
        """Give the functions of modules that were loaded before us their probes."""
        for module in [*sys.modules.values()]:
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and path.endswith(".py") and self.file_of(path):
                with open(path, "rb") as file:
                    code = self.probed(file.read(), path)
                if code is not None:
                    swap(code, vars(module))


def _die_of_interrupt() -> None:
    """Have Python end as one that was interrupted: it notes that only of text that it runs."""
    try:
        exec("raise KeyboardInterrupt")
    except KeyboardInterrupt:
        pass


def codes_of(code: CodeType) -> Iterator[CodeType]:
    """Go through code and all that is defined in it."""
    yield code
    for const in code.co_consts:
        if isinstance(const, _CODE):
            yield from codes_of(const)


def swap(new: CodeType, names: dict[str, Any]) -> None:
    """Have the functions of a module run the code that its file has now.

    They are known by their names: the code of a frozen module tells no file.
    """
    table = {(one.co_qualname, one.co_firstlineno): one for one in codes_of(new)}
    for function in gc.get_objects():
        if type(function) is _FUNCTION and function.__globals__ is names:
            old = function.__code__
            code = table.get((old.co_qualname, old.co_firstlineno))
            if code is not None and code.co_freevars == old.co_freevars:
                function.__code__ = code


def _names_of_run(code: CodeType) -> dict[str, Any] | None:
    """Return the names in which a module's code is about to run: a script's, or those of runpy."""
    caller: FrameType | None
    try:
        caller = sys._getframe()
    except ValueError:  # nobody called: it is the script itself
        caller = None
    while caller is not None and caller.f_globals.get("__name__") == __name__:
        caller = caller.f_back
    if caller is None:
        return vars(sys.modules["__main__"])
    if caller.f_code.co_name == "_run_code" and caller.f_globals.get("__name__") == "runpy":
        names: dict[str, Any] = caller.f_locals["run_globals"]
        return names
    return None
