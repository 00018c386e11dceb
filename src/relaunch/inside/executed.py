"""Notes which lines of the project's functions run: each once, and then as good as for nothing.

Lines that run when a module is loaded say little: all of them do, whatever is called.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

_ENOUGH = 30
"""So often the lines of a function are looked at, where Python cannot tell only the new ones."""
_MOST_CALLS = 200_000
"""And of so many calls in all, about a tenth of a second: a program may be in a hurry."""
_TOOL = 4
_NO_FUNCTIONS = ("<module>", "<lambda>")
_open = open


def begin(folder: str, roots: list[str]) -> None:
    """Note what runs below `roots`, and write it into `folder` at the end."""
    tops = tuple(os.path.join(os.path.realpath(root), "") for root in roots)
    seen: dict[str, set[int]] = {}
    if sys.version_info >= (3, 12):
        _monitor(tops, seen)
    else:
        _trace(tops, seen)
    atexit.register(_write, folder, tops, seen)


def _is_wanted(code: CodeType, tops: tuple[str, ...]) -> bool:
    if code.co_name in _NO_FUNCTIONS or not code.co_flags & 2:  # a body of a class or module
        return False
    file = code.co_filename
    return file[:1] != "<" and os.path.realpath(file).startswith(tops)


def _monitor(tops: tuple[str, ...], seen: dict[str, set[int]]) -> None:
    monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    known: dict[CodeType, set[int] | None] = {}

    def line(code: CodeType, number: int) -> Any:
        if code not in known:
            wanted = _is_wanted(code, tops)
            known[code] = seen.setdefault(code.co_filename, set()) if wanted else None
        lines = known[code]
        if lines is not None:
            lines.add(number)
        return monitoring.DISABLE

    try:
        monitoring.use_tool_id(_TOOL, "relaunch")
    except ValueError:  # somebody else has it
        return
    monitoring.register_callback(_TOOL, monitoring.events.LINE, line)
    monitoring.set_events(_TOOL, monitoring.events.LINE)


def _trace(tops: tuple[str, ...], seen: dict[str, set[int]]) -> None:
    counts: dict[CodeType, int] = {}
    calls = 0

    def local(lines: set[int]) -> Callable[..., Any]:
        def line(frame: FrameType, event: str, _: object) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return line

        return line

    def call(frame: FrameType, _: str, __: object) -> Any:
        nonlocal calls
        calls += 1
        if calls > _MOST_CALLS:
            sys.settrace(None)
            threading.settrace(None)
            return None
        code = frame.f_code
        count = counts.get(code)
        if count is None:
            count = 0 if _is_wanted(code, tops) else _ENOUGH
        counts[code] = count + 1
        if count >= _ENOUGH:
            return None
        return local(seen.setdefault(code.co_filename, set()))

    sys.settrace(call)
    threading.settrace(call)


def _write(folder: str, tops: tuple[str, ...], seen: dict[str, set[int]]) -> None:
    """Write one file for each process: a line for each source, its path and its lines."""
    try:
        path = os.path.join(folder, f"{os.getpid()}.executed")
        with _open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            for name, lines in [*seen.items()]:
                real = os.path.realpath(name)
                top = next((one for one in tops if real.startswith(one)), "")
                if top and lines and "\n" not in real:
                    numbers = " ".join(map(str, sorted(lines)))
                    file.write(f"{real[len(top) :]}\n{numbers}\n")
    except Exception:  # the program must not notice
        pass
