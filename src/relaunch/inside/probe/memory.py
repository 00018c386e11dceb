"""What Python has no words for: files in memory, frames nobody sees, code that is jumped over.

CPython 3.11 to 3.13. Each is proved on something of ours first; where it does not work, the caller
does without.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_CODE = type(sys._getframe().f_code)
_BYTECODE = _CODE.__basicsize__
_FIRST_SEEN = _BYTECODE - 16
"""Where code keeps the instruction from which on its frames are shown."""
_READ_WRITE, _SHARED = 3, 1
# Looked up now: a forked child of a program with threads must not load anything.
_mmap = ctypes.CDLL(None).mmap
_mmap.restype = ctypes.c_void_p
_mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_thread = ctypes.pythonapi.PyThreadState_Get
_thread.restype = ctypes.c_void_p
_trace, _trace_not = (
    ctypes.pythonapi.PyThreadState_LeaveTracing,
    ctypes.pythonapi.PyThreadState_EnterTracing,
)
for _call in (_trace, _trace_not):
    _call.restype, _call.argtypes = None, [ctypes.c_void_p]
_EMPTY = compile("", "", "exec").co_code
"""A module that does nothing: begin, then return None in one step or two."""


def is_known() -> bool:
    """Tell whether this interpreter is one whose memory we know."""
    return sys.implementation.name == "cpython" and sys.version_info[:2] in (
        (3, 11), (3, 12), (3, 13)
    )  # fmt: skip


def mapped(path: str, size: int) -> memoryview:
    """Return a new file as memory. Not by `mmap`, which keeps a low descriptor of the program's."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _reserve(fd, size)
        at = _mmap(None, size, _READ_WRITE, _SHARED, fd, 0)
    finally:
        os.close(fd)
    if at in (None, ctypes.c_void_p(-1).value):
        raise OSError("no memory for counting")
    return memoryview((ctypes.c_ubyte * size).from_address(at)).cast("B")


def _reserve(fd: int, size: int) -> None:
    """Have room for a file now: on a full disk, a write to its memory would kill the program."""
    try:
        os.posix_fallocate(fd, 0, size)
    except AttributeError:  # macOS
        os.ftruncate(fd, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.ftruncate(fd, size)


def hide(function: Any) -> bool:
    """Take a function's frames out of every traceback and stack; False where that cannot be.

    It must not return while a debugger looks, who would take that for an end of the frame below.
    """
    if not is_known():
        return False
    code = function.__code__
    seen = ctypes.c_int.from_address(id(code) + _FIRST_SEEN)
    before = seen.value
    if not 0 <= before <= len(code.co_code) // 2:
        return False
    # Its last instruction, where no frame waits; 3.12 hangs over code that has none to be seen.
    seen.value = len(code.co_code) // 2 - 1
    return True


def let_trace(yes: bool) -> None:
    """Have tracers hear of what runs below an audit hook, or no longer, as ever.

    They must not hear of a hidden function itself: 3.11 tells them of its end, not its beginning.
    """
    (_trace if yes else _trace_not)(_thread())


def _is_hidden() -> bool:
    """Tell whether hiding works: a hidden caller is skipped."""

    def inner() -> Any:
        return sys._getframe(1)

    def outer() -> Any:
        return inner()

    hide(outer)
    return outer() is sys._getframe()


def hiding_works() -> bool:
    """Try it on a function of ours."""
    try:
        return is_known() and _is_hidden()
    except ValueError:
        return False


def make_empty(code: CodeType) -> bool:
    """Have a module's code return at once; False where that cannot be."""
    data = code.co_code
    try:
        none = code.co_consts.index(None)
    except ValueError:
        return False
    if not is_known() or data[:1] != _EMPTY[:1] or none > 255 or len(data) < len(_EMPTY):
        return False
    new = bytearray(_EMPTY[2:])
    new[1] = none
    ctypes.memmove(id(code) + _BYTECODE + 2, bytes(new), len(new))
    return True


def jump(code: CodeType, at: int, end: int) -> None:
    """Have code go from one instruction straight to another, from now on."""
    import opcode

    step = bytes((opcode.opmap["JUMP_FORWARD"], (end - at) // 2 - 1))
    ctypes.memmove(id(code) + _BYTECODE + at, step, 2)
