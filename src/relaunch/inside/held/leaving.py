"""How a fork ends: as it would have, but without taking every object apart first.

Python's own end costs a fork more than all else: each count that is lowered is a page to be copied.
After all that a program asked to be done at its end was done, only the exit code is needed. It is
known where an exception that nobody caught ended the program, where its last statement was the end,
and where `sys.exit` was. Else Python ends it as ever, only with its modules kept.
"""

from __future__ import annotations

import os
import sys

from relaunch.inside.forks import ready

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any, NoReturn

_RETURNS = ("RETURN_VALUE", "RETURN_CONST")
_forks: list[int] = []
"""This process, if it is a fork."""
_main: list[FrameType] = []
"""The outermost frame of the program, where it is held inside."""
_exits: list[SystemExit] = []
"""The last one that was raised by `sys.exit`."""
_exit = os._exit
_LONG = 1 << 31


def begin(*, inside: bool) -> None:
    """Take note of how this fork ends; `inside`: the program runs already."""
    _forks.append(os.getpid())
    frame = sys._getframe() if inside else None
    while frame is not None and frame.f_back is not None:
        frame = frame.f_back
    if frame is not None:
        _main.append(frame)
    sys.exit = _noted_exit


def _noted_exit(status: Any = None, /) -> NoReturn:
    """Stand for `sys.exit`."""
    error = SystemExit(status)
    _exits[:] = [error]
    raise error


def leave() -> None:
    """End a fork; called after all that the program asked to be done at its end."""
    try:
        if os.getpid() not in _forks or any(map(_is_written, ready.opened())):
            return
        code = _code()
        if code is not None:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            _flush_c()
            _exit(code)
        _keep_modules()
    except Exception:
        pass


def _code() -> int | None:
    """Return the exit code; None where it is not known."""
    error: Any = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if error is not None:
        return 1 if _is_from_main(error) else None
    if _main and _has_returned(_main[0]):
        return 0
    if not _exits or not _is_from_main(_exits[0]):
        return None
    code = _exits[0].code
    if code is None:
        return 0
    if not isinstance(code, int):
        return 1  # Python has shown it
    return code & 0xFF if abs(code) < _LONG else None


def _is_from_main(error: BaseException) -> bool:
    """Tell whether an exception went through all frames: the outermost one stands where it left."""
    trace = error.__traceback__
    if trace is None or trace.tb_frame.f_back is not None:
        return False
    is_main = not _main or trace.tb_frame is _main[0]
    return is_main and trace.tb_lasti == trace.tb_frame.f_lasti


def _has_returned(frame: FrameType) -> bool:
    """Tell whether a frame that is over came to its end: where it stands, it returned."""
    from opcode import opname

    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and opname[code[frame.f_lasti]] in _RETURNS


def _keep_modules() -> None:
    """Let Python's own end find nothing to take apart."""
    import _ctypes
    import gc

    gc.freeze()
    kept = [sys.modules.copy()]
    _ctypes.Py_INCREF(kept)
    sys.modules.clear()


def _flush_c() -> None:
    """Write what libraries in C have printed."""
    import _ctypes

    class Function(_ctypes.CFuncPtr):
        _flags_ = _ctypes.FUNCFLAG_CDECL
        _restype_ = None

    here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
    Function(_ctypes.dlsym(here, "fflush"))(None)


def _is_written(fd: int) -> bool:
    """Tell whether a file is open to be written: its last bytes are when it is taken apart."""
    return fd > 2 and flags(fd) & os.O_ACCMODE != os.O_RDONLY and is_file(fd)


def is_file(fd: int) -> bool:
    """Tell whether it is a file, with a name or without one."""
    name = os.readlink(f"/proc/self/fd/{fd}")
    return name.startswith("/") and not name.startswith(("/dev/", "/memfd:"))


def flags(fd: int) -> int:
    """Return how it was opened."""
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        return int(file.read().split(b"flags:")[1].split()[0], 8)
