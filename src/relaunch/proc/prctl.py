"""The two promises Linux makes about process trees, asked for through `_ctypes` alone.

`ctypes` costs three times as much to import, and `rl -- CMD` asks on every start.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_SET_PDEATHSIG, _GET_PDEATHSIG = 1, 2
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER, _GET_CHILD_SUBREAPER = 36, 37

_loaded: list[tuple[Callable[..., int], type] | None] = []


def _prctl() -> tuple[Callable[..., int], type] | None:
    """Return prctl and its int type; None where there is none."""
    if not _loaded:
        _loaded.append(_load())
    return _loaded[0]


def _load() -> tuple[Callable[..., int], type] | None:
    if sys.platform != "linux":
        return None
    try:
        import _ctypes

        class Int(_ctypes._SimpleCData):  # type: ignore[type-arg]  # not subscriptable at run time
            _type_ = "i"

        class Function(_ctypes.CFuncPtr):
            _flags_ = _ctypes.FUNCFLAG_CDECL
            _restype_ = Int

        here = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is this process
        return Function(_ctypes.dlsym(here, "prctl")), Int
    except (ImportError, OSError, AttributeError):
        return None


def _read_back(option: int) -> int:
    found = _prctl()
    if not found:
        return 0
    import _ctypes

    call, int_type = found
    value = int_type(0)
    return int(value.value) if call(option, _ctypes.byref(value), 0, 0, 0) == 0 else 0


def _set(option: int, value: int) -> bool:
    found = _prctl()
    return bool(found) and found is not None and found[0](option, value, 0, 0, 0) == 0


def become_subreaper() -> bool:
    """Make orphans below this process its own children; True when the kernel confirms it."""
    return _set(_SET_CHILD_SUBREAPER, 1) and is_subreaper()


def is_subreaper() -> bool:
    """Tell whether orphans below this process become its own children."""
    return _read_back(_GET_CHILD_SUBREAPER) == 1


def stop_being_subreaper() -> None:
    """Leave orphans to whoever collects them above us."""
    _set(_SET_CHILD_SUBREAPER, 0)


def die_with_parent(signal: int) -> bool:
    """Have the kernel send us `signal` when our parent dies."""
    return _set(_SET_PDEATHSIG, signal) and _read_back(_GET_PDEATHSIG) == signal


def forbid_core_dump() -> None:
    """Leave no core file of ours: the one that matters is the program's."""
    _set(_SET_DUMPABLE, 0)
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def ptrace_scope() -> int:
    """Return kernel.yama.ptrace_scope: 0 where one user's processes may look into each other."""
    try:
        fd = os.open("/proc/sys/kernel/yama/ptrace_scope", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        return int(os.read(fd, 16))
    except (OSError, ValueError):
        return 0
    finally:
        os.close(fd)
