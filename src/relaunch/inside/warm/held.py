"""Holds signals back while we work: no handler of the program may raise in the middle of it."""

from __future__ import annotations

import os
from signal import SIG_BLOCK, SIG_SETMASK, pthread_sigmask, valid_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ALL = valid_signals()
_PACKAGES = "/site-packages/"
_OURS = (os.path.dirname(os.path.abspath(__file__)), os.path.dirname(os.__file__), "<frozen ")


def hold() -> Any:
    """Hold all signals back; returns what `release` needs."""
    mask = pthread_sigmask(SIG_BLOCK, ())  # a handler that is due raises here
    try:
        pthread_sigmask(SIG_BLOCK, _ALL)
    except BaseException:
        pthread_sigmask(SIG_SETMASK, mask)
        raise
    return mask


def release(mask: Any) -> None:
    """Let them come; a handler may raise now."""
    pthread_sigmask(SIG_SETMASK, mask)


def is_theirs(error: BaseException) -> bool:
    """Tell whether a handler of the program raised after all: another thread got the signal."""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) or _PACKAGES in file:
            return True
        trace = trace.tb_next
    return False
