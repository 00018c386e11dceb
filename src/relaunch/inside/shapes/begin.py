"""Begins to look at shapes in this process."""

from __future__ import annotations

import os
import sys

from relaunch.inside.shapes.book import Book
from relaunch.inside.shapes.calls import Watch
from relaunch.inside.shapes.inject import RUNTIME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

    from relaunch.inside.probe.notes import Notes

_EXTERNAL: Any = sys.modules["_frozen_importlib_external"]
_COMPILER = "torch._dynamo"


def begin(notes: Notes) -> None:
    """Put what the injected code needs where it finds it."""
    import atexit  # built into Python
    import builtins

    told: set[str] = set()

    def trouble(error: BaseException) -> None:
        text = f"{type(error).__name__}: {error}"[:200]
        if text not in told and len(told) < 5:
            told.add(text)
            notes.add("trouble", text=f"a shape could not be read: {text}")

    watch = Watch(Book(notes.folder), trouble)

    def holder() -> None:
        """Have what is called as attributes: those of a function torch knows how to read."""

    runtime: Any = holder
    runtime.entered = watch.entered
    runtime.at = watch.at
    runtime.compiling = bool  # says no
    setattr(builtins, RUNTIME, runtime)
    _answer_compilers(runtime)
    os.register_at_fork(after_in_child=watch.begin_again)
    atexit.register(watch.book.flush)
    atexit.register(_note_compiled, notes)


def _note_compiled(notes: Notes) -> None:
    """Note whether torch compiled anything: what ran so was not seen."""
    counters: Any = getattr(sys.modules.get(f"{_COMPILER}.utils"), "counters", None)
    if counters and (dict.get(counters, "frames") or dict.get(counters, "stats")):
        notes.add("compiled", by="torch.compile")


def _answer_compilers(runtime: Any) -> None:
    """Let torch answer whether it compiles, from when it can: it takes its own answer for granted.

    So what it compiles has no trace of us, and no break in its graph.
    """
    loader = _EXTERNAL.SourceFileLoader
    theirs = loader.get_code

    def get_code(self: Any, fullname: str) -> CodeType | None:
        if fullname == _COMPILER:
            compiler: Any = getattr(sys.modules.get("torch"), "compiler", None)
            runtime.compiling = getattr(compiler, "is_compiling", bool)
        code: CodeType | None = theirs(self, fullname)
        return code

    # As a part of the import system, so that Python leaves its frame out of tracebacks.
    get_code.__code__ = get_code.__code__.replace(co_filename=theirs.__code__.co_filename)
    loader.get_code = get_code
