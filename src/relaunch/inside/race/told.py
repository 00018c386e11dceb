"""What is told of a run: its threads and switches, who waits for whom, and the lines around it."""

from __future__ import annotations

import marshal
import os
import sys

from relaunch.inside.race.scheduler import DONE, WAITS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, FrameType
    from typing import Any

    from relaunch.inside.race.scheduler import Scheduler, Task

VERSION = 2
_MOST_FRAMES = 30
_MOST_LINES = 50_000
_MOST_SWITCHES = 200_000
_MOST_VALUES = 4
_ROOM = 60
_open, _write, _close, _rename = os.open, os.write, os.close, os.rename


class Book:
    """Gathers what happens, and writes it in the end."""

    def __init__(self, path: str, own: Callable[[str], bool]) -> None:
        """Write to `path`."""
        self._path = path
        self._own = own
        self._lines: list[list[Any]] = []
        self._scheduler: Scheduler | None = None
        self._before: dict[int, tuple[int, list[Any]]] = {}
        self._names: dict[CodeType, dict[int, list[tuple[str, ...]]]] = {}
        self._show: Any = None

    # --- the lines that run

    def follow(self, scheduler: Scheduler) -> None:
        """Note lines, and where threads switch."""
        from relaunch.inside.shown import show

        self._show = show
        self._scheduler = scheduler
        scheduler.heard = self._switched

    def _switched(self, kind: str, task: Task, count: int, other: Task) -> None:
        self._lines.append(["switch", kind, task.id, count, other.id])

    def line(self, frame: FrameType, is_over: bool) -> None:
        """Note that a line is about to be run, and what the last one of this frame left."""
        scheduler = self._scheduler
        task = scheduler.mine() if scheduler is not None else None
        if task is None or len(self._lines) > _MOST_LINES:
            return
        number, code = frame.f_lineno or 0, frame.f_code
        before = self._before.pop(id(frame), None)
        if before is not None:
            before[1][5] = self._values(frame, before[0])
        if is_over:
            return
        entry: list[Any] = ["line", task.id, code.co_filename, number, code.co_qualname, [], []]
        entry[6] = self._values(frame, number)
        self._before[id(frame)] = number, entry
        self._lines.append(entry)

    def _values(self, frame: FrameType, number: int) -> list[list[str]]:
        """Return what the names of a line are now."""
        names = self._names.get(frame.f_code)
        if names is None:
            names = self._names[frame.f_code] = names_by_line(frame.f_code)
        found = []
        for path in names.get(number, ())[:8]:
            value = look_up(frame, path)
            if value is not _NOTHING and _is_data(value):
                found.append([".".join(path), self._show(value, _ROOM)])
        return found[:_MOST_VALUES]

    # --- in the end

    def write(self, scheduler: Scheduler, *, stuck: str, lost: bool) -> None:
        """Write all; a half-written file has another name."""
        try:
            if lost:
                why = "something else traces the program, such as coverage"
                scheduler.loose[why] = "threads switch at locks and queues only"
            facts = {
                "stuck": stuck,
                "steps": scheduler.steps,
                "clock": scheduler.clock,
                "switches": scheduler.switches[:_MOST_SWITCHES],
                "threads": [[one.id, one.name, one.points] for one in scheduler.tasks],
                "loose": dict(scheduler.loose),
                "waits": self._waits(scheduler) if stuck else [],
                "lines": self._lines,
            }
            data = marshal.dumps(facts, VERSION)
            fd = _open(self._path + "~", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            while data:
                data = data[_write(fd, data) :]
            _close(fd)
            _rename(self._path + "~", self._path)
        except Exception:  # the program must not fail because of us
            pass

    def _waits(self, scheduler: Scheduler) -> list[dict[str, Any]]:
        """Return of each thread where it is, what it waits for, and who has that."""
        frames = sys._current_frames()
        found = []
        for task in scheduler.tasks:
            if task.state == DONE:
                continue
            on = task.on
            holder = getattr(on, "holder", None)
            if task.state == WAITS and hasattr(on, "key"):
                what, holder = "thread", on
            else:
                what = getattr(on, "kind", "") if task.state == WAITS else ""
            found.append(
                {
                    "id": task.id,
                    "name": task.name,
                    "daemon": task.is_daemon,
                    "state": task.state,
                    "what": what,
                    "made": [getattr(on, "file", ""), getattr(on, "line", 0)],
                    "holder": holder.id if holder is not None else "",
                    "stack": self._stack(frames.get(task.ident)),
                }
            )
        return found

    def _stack(self, frame: FrameType | None) -> list[tuple[str, int, str, bool]]:
        """Return the frames, innermost first, without ours."""
        found: list[tuple[str, int, str, bool]] = []
        ours = os.path.dirname(__file__)
        while frame is not None and len(found) < _MOST_FRAMES:
            code = frame.f_code
            if not code.co_filename.startswith(ours):
                is_own = self._own(code.co_filename)
                found.append((code.co_filename, frame.f_lineno or 0, code.co_qualname, is_own))
            frame = frame.f_back
        return found


_NOTHING = object()


def look_up(frame: FrameType, path: tuple[str, ...]) -> Any:
    """Return a variable of a frame, or an attribute of one, without running code of anybody."""
    name, *rest = path
    local = frame.f_locals
    value: Any = local.get(name, frame.f_globals.get(name, _NOTHING))
    for part in rest:
        try:
            value = object.__getattribute__(value, "__dict__").get(part, _NOTHING)
        except Exception:
            return _NOTHING
        if value is _NOTHING:
            return value
    return value


def _is_data(value: object) -> bool:
    kind = type(value)
    return not (
        isinstance(value, type)
        or kind.__name__ in ("module", "function", "builtin_function_or_method", "method")
        or kind.__module__ in ("threading", "queue", "concurrent.futures.thread", "_thread")
        or kind.__module__.startswith("relaunch.inside")
    )


_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")


def names_by_line(code: CodeType) -> dict[int, list[tuple[str, ...]]]:
    """Return which variables and attributes each line of a function names."""
    from dis import get_instructions

    found: dict[int, list[tuple[str, ...]]] = {}
    chain: tuple[str, ...] = ()

    def add(line: int | None, path: tuple[str, ...]) -> None:
        paths = found.setdefault(line or 0, [])
        if path not in paths and path[0].isidentifier():
            paths.append(path)

    for one in get_instructions(code):
        line = one.positions.lineno if one.positions is not None else 0
        name = one.opname
        if name.startswith(_LOADS) and isinstance(one.argval, str):
            chain = (one.argval,)
            add(line, chain)
        elif name in ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR") and chain:
            chain = (*chain, str(one.argval))
            add(line, chain)
        elif name.startswith(_STORES) and isinstance(one.argval, str):
            chain = ()
            add(line, (one.argval,))
        elif name.startswith(("LOAD_FAST", "STORE_FAST")) and isinstance(one.argval, tuple):
            for part in one.argval:  # two at once, from Python 3.13 on
                add(line, (str(part),))
            chain = (str(one.argval[-1]),) if name.startswith("LOAD_FAST_LOAD") else ()
        elif name != "CACHE":
            chain = ()
    return found
