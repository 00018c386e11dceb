"""Ctrl-C as something to wait for: it comes between two steps, never in the middle of one."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType, TracebackType
    from typing import Self
else:
    import _signal


class Interrupts:
    """While it is entered, the first Ctrl-C only makes it readable; a second one is as ever."""

    def __init__(self) -> None:
        """Nothing is changed yet."""
        self.came = False
        self._near, self._far = -1, -1
        self._wake_before = -1
        self._before = _signal.getsignal(_signal.SIGINT)

    def __enter__(self) -> Self:
        """Take the signal, unless it is ignored, as in the background of a script."""
        self._near, self._far = os.pipe()
        if self._before not in (_signal.SIG_IGN, None):
            # Python writes there at once: a handler may come only after what we wait for.
            os.set_blocking(self._far, False)
            self._wake_before = _signal.set_wakeup_fd(self._far, warn_on_full_buffer=False)
            _signal.signal(_signal.SIGINT, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the signal do what it did before."""
        if self._before not in (_signal.SIG_IGN, None):
            _signal.signal(_signal.SIGINT, self._before)
            _signal.set_wakeup_fd(self._wake_before)
        os.close(self._near)
        os.close(self._far)

    def fileno(self) -> int:
        """Return what turns readable when it came."""
        return self._near

    def _take(self, _signal_number: int, _frame: FrameType | None) -> None:
        if self.came:
            raise KeyboardInterrupt
        self.came = True
