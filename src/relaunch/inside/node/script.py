"""Runs a script or a module as `__main__`, in a process that has run other things before."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType, TracebackType
    from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_RUNPY = "<frozen runpy>"
_INTERRUPTED = 130


class Program:
    """What is run: a script by its path, or a module by its name, with its words."""

    def __init__(self, kind: str, target: str, words: list[str], cwd: str) -> None:
        """`kind` is script or module."""
        self.kind, self.target, self.words, self.cwd = kind, target, words, cwd
        self._code: CodeType | None = None

    @property
    def command(self) -> list[str]:
        """The words with which a process of its own would have been started."""
        target = ["-m", self.target] if self.kind == "module" else [self.target]
        return ["python", *target, *self.words]

    def settle(self) -> None:
        """Have `sys.argv` and `sys.path` as Python would set them."""
        sys.argv[:] = ["-m" if self.kind == "module" else self.target, *self.words]
        if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
            first = os.path.join(self.cwd, self.target)
            folder = self.cwd if self.kind == "module" else os.path.dirname(os.path.realpath(first))
            sys.path.insert(0, folder)
            sys.path_importer_cache.pop(folder, None)

    def run(self) -> None:
        """Run it; whatever it raises comes out."""
        if self.kind == "module":
            import runpy

            runpy._run_module_as_main(self.target)  # type: ignore[attr-defined]
            return
        main = self.module()
        sys.modules["__main__"] = main
        exec(self.code(), vars(main))

    def module(self) -> ModuleType:
        """Return a new `__main__`, as Python makes it for a script."""
        from importlib.machinery import SourceFileLoader

        path = os.path.join(self.cwd, self.target)
        main = type(sys)("__main__")
        main.__file__ = path
        main.__loader__ = SourceFileLoader("__main__", path)
        main.__spec__ = None
        vars(main)["__builtins__"] = sys.modules["builtins"]
        vars(main)["__cached__"] = None
        vars(main)["__annotations__"] = {}
        return main

    def code(self) -> CodeType:
        """Compile the script, once."""
        if self._code is None:
            import io

            path = os.path.join(self.cwd, self.target)
            with io.open_code(path) as file:
                self._code = compile(file.read(), path, "exec", dont_inherit=True)
        return self._code


def outcome(error: BaseException | None) -> int:
    """Say how a program ended: its exit code; a failure is shown as Python shows it."""
    if error is None:
        return 0
    if isinstance(error, SystemExit):
        return _exit_code(error)
    trace = without_ours(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    sys.excepthook(type(error), error, trace)
    return _INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _exit_code(error: SystemExit) -> int:
    code: Any = error.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def without_ours(error: BaseException) -> TracebackType | None:
    """Take our frames out of the tracebacks of an error and its causes; returns its own."""
    todo: list[BaseException] = [error]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        one.__traceback__ = _shown_part(one.__traceback__)
        todo += [other for other in (one.__cause__, one.__context__) if other is not None]
    return error.__traceback__


def _shown_part(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    found = trace
    while found is not None:
        file = found.tb_frame.f_code.co_filename
        if not file.startswith(_HERE) and file != _RUNPY:
            kept.append(found)
        found = found.tb_next
    for one, following in zip(kept, [*kept[1:], None], strict=False):
        one.tb_next = following
    return kept[0] if kept else trace
