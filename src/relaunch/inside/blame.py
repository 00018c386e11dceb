"""Lets who watches the calls of this process know which Python line made one that failed.

A signal to a thread has faulthandler write the stack of that very thread, inside any C call and
without the lock of the interpreter: 59 for the thread itself, 60 for all. Where no eye is on the
calls, what nobody caught is told with the open files and the file objects around it.
"""

from __future__ import annotations

import faulthandler
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Any

ONE_STACK, ALL_STACKS = 59, 60
STACK_FILE = 1919249505
"""What the shim before libc takes for its own; no process has such a file."""
MEMORY_FILE = "relaunch-stacks"
_MOST_FILES = 200


def begin(word: str) -> None:
    """Register as the launcher's word says: `@socket` of a shim, `#file` of a tracer."""
    kind, rest = word[:1], word[1:]
    if kind == "@":
        try:
            os.write(STACK_FILE, b"?")
        except OSError:  # the shim is not in this process
            return
        _register(STACK_FILE)
    elif kind == "#":
        _register(_memory_file(int(rest)))


def _register(file: int) -> None:
    for number, everyone in ((ONE_STACK, False), (ALL_STACKS, True)):
        faulthandler.register(number, file=file, all_threads=everyone, chain=False)


def _memory_file(number: int) -> int:
    """Put a file in memory at this number: nothing that is full can keep a stack from it."""
    first = os.memfd_create(MEMORY_FILE, os.MFD_CLOEXEC)
    appending = os.open(f"/proc/self/fd/{first}", os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    os.dup2(appending, number, inheritable=False)
    os.close(appending)
    os.close(first)
    return number


# --- where nobody watches the calls ---------------------------------------------------------------


def told(error: BaseException, tb: TracebackType | None) -> list[dict[str, Any]]:
    """Say of each OSError in a chain what it may have been about."""
    found = []
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen and len(seen) < 8:
        seen.add(id(one))
        own = one.__traceback__ or (tb if one is error else None)
        if isinstance(one, (OSError, MemoryError)):
            found.append(_described(one, own))
        one = one.__cause__ or one.__context__
    return found


def _described(error: BaseException, tb: TracebackType | None) -> dict[str, Any]:
    frames: list[tuple[FrameType, int]] = []
    while tb is not None:
        frames.insert(0, (tb.tb_frame, tb.tb_lineno))
        tb = tb.tb_next
    name = getattr(error, "filename", None)
    return {
        "errno": getattr(error, "errno", None) or (12 if isinstance(error, MemoryError) else 0),
        "path": _text(name) if name is not None else _near(frames),
        "sure": name is not None,
        "pid": os.getpid(),
        "command": " ".join(sys.orig_argv)[:250],
        "stack": [[f.f_code.co_filename, line, f.f_code.co_name] for f, line in frames],
        "open": _open_files(),
    }


def _near(frames: list[tuple[FrameType, int]]) -> str:
    """Return the path of the file object nearest to the failure, if a variable holds one."""
    for frame, _ in frames:
        for value in list(frame.f_locals.values()):
            if issubclass(type(value), type(os)):  # a module may have both names, as os does
                continue
            try:
                name = getattr(value, "name", None)
                if hasattr(value, "write") and isinstance(name, (str, bytes)):
                    return _text(name)
                if hasattr(value, "write") and isinstance(name, int):
                    return os.readlink(f"/proc/self/fd/{name}")
            except Exception:
                continue
    return ""


def _open_files() -> list[str]:
    """List what this process has open for writing."""
    found = []
    try:
        for name in os.listdir("/proc/self/fd")[:_MOST_FILES]:
            path = os.readlink(f"/proc/self/fd/{name}")
            if path.startswith("/") and not path.startswith(("/dev/", "/proc/")):
                found.append(path)
    except OSError:
        pass
    return found


def _text(name: object) -> str:
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else str(name)
