"""Which lines of the sources are shown, and by whom: tracebacks, warnings, log records.

What was shown is in the output already. A snapshot is of no use once it would show another.
"""

from __future__ import annotations

import sys
from itertools import islice
from types import ModuleType

from . import arrivals, held, states, unseen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from .ledger import Ledger

_MOST_LINES = 20
_RECORD_FIELDS = {"lineno", "__dict__", "vars", "getattr"}
"""Names in functions that may show where a log record was made."""


def watch(ledger: Ledger) -> None:
    """Note each line that somebody asks `linecache` for: the program's, once it has loaded it."""
    if "linecache" in sys.modules:
        _watch_lines(vars(sys.modules["linecache"]), ledger)
    arrivals.await_module("linecache", lambda names: _watch_lines(names, ledger))


def forget(file: str) -> None:
    """Let a file be read anew by who shows lines of it."""
    cache = getattr(sys.modules.get("linecache"), "cache", None)
    if isinstance(cache, dict):
        cache.pop(file, None)


def note_warned(ledger: Ledger) -> None:
    """Note the lines that Python showed with warnings by itself, as long as it had no `warnings`.

    It shows each place once, and remembers it in the module there.
    """
    if "warnings" in sys.modules:
        return
    for module in [*sys.modules.values()]:
        names = vars(module) if isinstance(module, ModuleType) else {}
        for key in [*names.get("__warningregistry__", ())]:
            if isinstance(key, tuple):
                _note(ledger, str(names.get("__file__")), key[2], key[2], {})


def _watch_lines(names: dict[str, Any], ledger: Ledger) -> None:
    real_line, real_lines = names["getline"], names["getlines"]
    inner = real_line.__code__

    def getline(filename: str, lineno: int, module_globals: Any = None) -> str:
        text: str = unseen.in_sight(real_line, filename, lineno, module_globals)
        held.apart(ledger.line, filename, lineno, text)
        return text

    def getlines(filename: str, module_globals: Any = None) -> list[str]:
        if sys._getframe(1).f_code is not inner:
            held.apart(ledger.all_lines, filename)
        found: list[str] = unseen.in_sight(real_lines, filename, module_globals)
        return found

    for new, real in ((getline, real_line), (getlines, real_lines)):
        new.__qualname__, new.__module__, new.__doc__ = real.__qualname__, "linecache", real.__doc__
        names[real.__name__] = new


def show(ledger: Ledger, error: BaseException | None, trace: TracebackType | None) -> None:
    """Note the lines that Python shows of an exception, and of those that led to it."""
    ledger.shown()
    texts: dict[str, list[str]] = {}
    todo = [(error, trace)]
    done = set()
    while todo:
        error, trace = todo.pop()
        while trace is not None:
            _show_place(ledger, trace, texts)
            trace = trace.tb_next
        for other in (getattr(error, "__cause__", None), getattr(error, "__context__", None)):
            if other is not None and id(other) not in done:
                done.add(id(other))
                todo.append((other, other.__traceback__))


def _show_place(ledger: Ledger, trace: TracebackType, texts: dict[str, list[str]]) -> None:
    code, first, at = trace.tb_frame.f_code, trace.tb_lineno, trace.tb_lasti // 2
    last = next((end or first for _, end, _, _ in islice(code.co_positions(), at, at + 1)), first)
    _note(ledger, code.co_filename, first, min(last, first + _MOST_LINES), texts)


def _note(ledger: Ledger, file: str, first: int, last: int, texts: dict[str, list[str]]) -> None:
    if ledger.is_source(file):
        found = texts[file] = texts.get(file) or states.lines_of(file)
        for number in range(first, last + 1):
            ledger.line(file, number, found[number - 1] if 0 < number <= len(found) else "")


def are_logged() -> bool:
    """Tell whether log lines carry line numbers."""
    if not {"loguru", "absl.logging", "structlog"}.isdisjoint(sys.modules):
        return True
    logging: Any = sys.modules.get("logging")
    for reference in [*getattr(logging, "_handlerList", ())]:
        handler = reference()
        formatter = getattr(handler, "formatter", None)
        layout = getattr(formatter, "_fmt", "")
        if (isinstance(layout, str) and "lineno" in layout) or any(
            one.__name__ == "RichHandler" for one in type(handler).mro()
        ):
            return True
        if any(_looks_at_records(type(one), "format", "emit") for one in (handler, formatter)):
            return True
    return False


def _looks_at_records(kind: type, *names: str) -> bool:
    """Tell whether a class of the user's own may show any field of a log record."""
    for base in kind.__mro__:
        code = [getattr(vars(base).get(name), "__code__", None) for name in names]
        if base.__module__.partition(".")[0] != "logging" and any(
            one is not None and not _RECORD_FIELDS.isdisjoint(one.co_names) for one in code
        ):
            return True
    return False
