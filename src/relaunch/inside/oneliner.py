"""Tracebacks of a one-liner show the line itself; a name that is misspelt gets the nearest one.

Loaded in the process that runs the line. It costs one assignment until something fails: before
Python 3.13 a traceback has no source for `-c`, so it is drawn here, by Python's own `traceback`.
"""

from __future__ import annotations

import os
import sys

from relaunch.inside.wellknown import ALIASES, MEMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType, TracebackType
    from typing import Any

_FILE = "<string>"
_MODULE = "<module>"
_NEAR = 0.7
_listdir, _theirs = os.listdir, sys.excepthook


def start() -> None:
    """Be asked when nobody catches an exception."""
    sys.excepthook = _excepthook


def _excepthook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
    try:
        tb = error.__traceback__ = _behind_asyncio(tb)
        lines = _drawn(kind, error, tb)
    except BaseException:
        lines = []
    if lines and sys.stderr is not None:
        sys.stderr.write("".join(lines))
    else:
        _theirs(kind, error, tb)


def _drawn(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> list[str]:
    """Return the lines to show; none where Python's own are as good."""
    is_name = kind is NameError and tb is not None
    if isinstance(error, SyntaxError) or (sys.version_info >= (3, 13) and not is_name):
        return []
    lines = _formatted(kind, error, tb)
    if is_name:
        lines[-1] = lines[-1].rstrip("\n") + _hint(error, lines[-1]) + "\n"
        if tb is not None and tb.tb_next is None and _is_alone(error):
            return lines[-1:]
    return lines


def _is_alone(error: BaseException) -> bool:
    return error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)


def _behind_asyncio(tb: TracebackType | None) -> TracebackType | None:
    """Leave out how the function came to run that the awaiting line was put in."""
    here = tb.tb_next if tb is not None else None
    while here is not None and f"{os.sep}asyncio{os.sep}" in here.tb_frame.f_code.co_filename:
        here = here.tb_next
    if here is None or here is (tb and tb.tb_next):
        return tb
    code = here.tb_frame.f_code
    return here if code.co_filename == _FILE and code.co_name.startswith("_main") else tb


# --- the traceback


def _formatted(
    kind: type[BaseException], error: BaseException, tb: TracebackType | None
) -> list[str]:
    traceback, linecache = _standard("traceback"), _standard("linecache")
    text = sys.orig_argv[sys.orig_argv.index("-c") + 1]
    # Each with its newline, the last too: 3.11 counts it when it places its marks.
    lines = [f"{line}\n" for line in text.split("\n")]
    linecache.cache[_FILE] = (len(text), None, lines, _FILE)
    told = traceback.TracebackException(kind, error, tb, compact=True)
    own = _names_in(tb.tb_frame.f_code) if tb is not None else set()
    _without_foreign_lines(told, own, traceback)
    return list(told.format())


def _names_in(code: CodeType) -> set[str]:
    """Name the functions of a program; what `exec` runs has the same file, and other lines."""
    names = {code.co_name}
    for inner in code.co_consts:
        if isinstance(inner, type(code)):
            names |= _names_in(inner)
    return names


def _without_foreign_lines(told: Any, own: set[str], traceback: ModuleType) -> None:
    """Take the source away that is not that of the frame."""
    for number, frame in enumerate(told.stack):
        is_own = frame.name in own and (number == 0 or frame.name != _MODULE)
        if frame.filename == _FILE and not is_own:
            told.stack[number] = traceback.FrameSummary(
                frame.filename, frame.lineno, frame.name, lookup_line=False, line=""
            )
    for other in (told.__cause__, told.__context__, *(getattr(told, "exceptions", None) or ())):
        if other is not None:
            _without_foreign_lines(other, own, traceback)


def _standard(name: str) -> ModuleType:
    """Import a module of the standard library past any file of that name beside the program."""
    path = sys.path
    sys.path = [entry for entry in path if entry not in ("", os.curdir, os.getcwd())]
    try:
        return __import__(name)
    finally:
        sys.path = path


# --- the hint


def _hint(error: BaseException, line: str) -> str:
    """Name what is most like a name that is not defined; Python looks in fewer places."""
    name = getattr(error, "name", None)
    if not name or "?" in line:
        return ""
    near = _standard("difflib").get_close_matches(name, _known(), n=1, cutoff=_NEAR)
    return f". Did you mean: '{near[0]}'?" if near and near[0] != name else ""


def _known() -> list[str]:
    """List the names that the line could have used."""
    known = {*ALIASES, *MEMBERS, *getattr(sys, "stdlib_module_names", ())}
    known.update(vars(sys.modules["builtins"]))
    known.update(vars(sys.modules["__main__"]))
    for folder in sys.path:
        try:
            known.update(entry.partition(".")[0] for entry in _listdir(folder or os.curdir))
        except OSError:
            continue
    return sorted(name for name in known if name.isidentifier() and not name.startswith("_"))
