"""Stacks of a Python process by py-spy: its command, its answer, and its reasons."""

from __future__ import annotations

import os
import sys
import time

from relaunch.jsontext import loads
from relaunch.look.stacks.frames import Frame, LookError, Thread
from relaunch.proc.capture import capture, find_tool
from relaunch.proc.several import Command, drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from relaunch.proc.capture import Captured
    from relaunch.proc.several import Task


def dump(pid: int, *, pause: bool = False, values: bool = False) -> list[Thread]:
    """Return the threads of a Python process; LookError says why that cannot be.

    Without `pause` it runs on while it is read, which is right for one that is stopped already.
    """
    found = _told(pid, capture(command(pid, pause=pause, values=values)))
    if isinstance(found, LookError):
        raise found
    return found


def _told(pid: int, done: Captured) -> list[Thread] | LookError:
    if done.code:
        return LookError(f"the stacks of process {pid} cannot be read: {reason(done.err)}")
    return read_threads(done.text)


def dump_all(pids: Iterable[int], *, limit_s: float) -> dict[int, list[Thread] | LookError]:
    """Return the threads of stopped processes, or why not: as many are read at once as have a core.

    None is begun after `limit_s`.
    """
    pids, until = [*pids], time.monotonic() + limit_s
    found = drive([_dump(pid, until) for pid in pids], at_once=len(os.sched_getaffinity(0)))
    return dict(zip(pids, found, strict=True))


def _dump(pid: int, until: float) -> Task[list[Thread] | LookError]:
    """Read one process, and once more when it was not quite at its stop."""
    found: list[Thread] | LookError = LookError("too many processes to read all")
    for _ in range(2):
        left_s = until - time.monotonic()
        if left_s <= 0:
            break
        try:
            done = yield Command(argv=command(pid), limit_s=left_s)
        except LookError as error:
            return error
        assert done is not None
        found = _told(pid, done)
        if not isinstance(found, LookError) and any(one.frames for one in found):
            break
    return found


def command(
    pid: int, *, pause: bool = False, values: bool = False, native: bool = False
) -> list[str]:
    """Return what to run; LookError when py-spy is not installed."""
    argv = [py_spy(), "dump", "--json", "--pid", str(pid)]
    argv += [] if pause else ["--nonblocking"]
    argv += ["--locals"] if values else []
    return [*argv, "--native"] if native else argv


def py_spy() -> str:
    """Find py-spy beside our own Python or on PATH; LookError when it is not installed."""
    found = beside_python("py-spy")
    if not found:
        raise LookError("py-spy is not installed", hint="pip install py-spy")
    return found


def beside_python(program: str) -> str:
    """Find a program beside our own Python, or on PATH; nothing when it is nowhere."""
    beside = os.path.dirname(sys.executable)
    return find_tool(program, f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")


def read_threads(text: str) -> list[Thread]:
    """Read what `py-spy dump --json` printed."""
    return [
        Thread(
            id=thread.get("os_thread_id") or 0,
            name=thread.get("thread_name") or "",
            has_gil=bool(thread.get("owns_gil")),
            frames=tuple(map(_frame, thread["frames"])),
        )
        for thread in loads(text)
    ]


def _frame(frame: Mapping[str, Any]) -> Frame:
    values = {one["name"]: one.get("repr") or "" for one in frame.get("locals") or ()}
    return Frame(
        file=frame["filename"],
        line=frame["line"],
        function=frame["name"],
        locals=values,
        is_native=bool(frame.get("module")),
    )


def reason(said: bytes) -> str:
    """Return py-spy's reason and its cause, without its own stack."""
    text = said.decode("utf-8", "replace").partition("Stack backtrace:")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any("permission denied" in one.lower() or "(os error 1)" in one for one in lines):
        return "permission denied"
    first = lines[0].removeprefix("Error: ") if lines else "py-spy said nothing"
    cause = lines[-1] if len(lines) > 1 and "Caused by:" in lines else ""
    number, _, rest = cause.partition(": ")
    cause = rest if number.isdecimal() else cause
    return f"{first}: {cause}" if cause else first
