"""Holds signals back while we work: no handler of the program may raise in the middle of it."""

from __future__ import annotations

import os
from ctypes import PyDLL, c_ulong
from signal import (
    SIG_BLOCK,
    SIG_SETMASK,
    SIGBUS,
    SIGFPE,
    SIGILL,
    SIGSEGV,
    sigpending,
    valid_signals,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

Mask = c_ulong * 16
"""A set of signals as C has it: each is a bit."""
sigmask = PyDLL(None).pthread_sigmask  # a handler that is due may run when it returns
_FAULTS = {SIGSEGV, SIGBUS, SIGFPE, SIGILL}
"""Signals of what cannot go on in any case."""
ALL = Mask(sum(1 << number - 1 for number in valid_signals() - _FAULTS))
_PACKAGES = "/site-packages/"
_OURS = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__), "<frozen ")


def hold() -> Any:
    """Hold all signals back; returns what `release` needs."""
    mask = Mask()
    sigmask(SIG_BLOCK, None, mask)  # a handler that is due raises here
    try:
        sigmask(SIG_BLOCK, ALL, None)
    except BaseException:
        sigmask(SIG_SETMASK, mask, None)
        raise
    return mask


def release(mask: Any) -> None:
    """Let them come; a handler may raise now."""
    sigmask(SIG_SETMASK, mask, None)


def apart(call: Callable[..., Any], *args: Any) -> Any:
    """Call a function of ours: no handler of the program runs meanwhile."""
    mask = hold()
    try:
        return call(*args)
    finally:
        release(mask)


def is_due(mask: Any) -> bool:
    """Tell whether a signal came that the program itself holds back."""
    return any(mask[0] >> number - 1 & 1 for number in sigpending())


def is_theirs(error: BaseException) -> bool:
    """Tell whether a handler of the program raised after all: another thread got the signal."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) or _PACKAGES in file:
            return True
        trace = trace.tb_next
    return False
