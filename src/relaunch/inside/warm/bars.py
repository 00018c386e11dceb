"""The thread that tqdm keeps for its progress bars: it may be missing in a snapshot.

It wakes every ten seconds, to have bars drawn that stood still. A resumed process gets a new one.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODULE = "tqdm._monitor"


def is_at_rest(thread: Any) -> bool:
    """Tell whether a thread is such a one, and waits for its time without any lock."""
    if type(thread).__module__ != _MODULE:
        return False
    frame = sys._current_frames().get(thread.ident)
    threading = sys.modules["threading"]
    return frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) == (
        threading.__file__,
        "wait",
    )


class Monitors:
    """Those that there are at a snapshot."""

    def __init__(self) -> None:
        threading: Any = sys.modules.get("threading")
        threads = threading.enumerate() if threading else ()
        self._found = [one for one in threads if type(one).__module__ == _MODULE]

    def renew(self) -> None:
        """Have new ones."""
        for one in self._found:
            kind = one.tqdm_cls
            if kind.monitor is one:
                kind.monitor = type(one)(kind, one.sleep_interval)
