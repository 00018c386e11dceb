"""Ctrl-C and SIGTERM as something to wait for: they come between two steps, never in one."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType, TracebackType
    from typing import Self
else:
    import _signal


_TWICE_S = 1.0
"""`timeout` sends SIGTERM to its child, and at once to the group: that is one."""


class Interrupts:
    """While it is entered, the first of them only makes it readable; a second one is as ever.

    `timeout 10m rl bisect ...` sends SIGTERM: what was found by then is told.
    """

    def __init__(self) -> None:
        """Nothing is changed yet."""
        self.came = False
        self._told_at = 0.0
        self._near, self._far = -1, -1
        self._wake_before = -1
        found = {one: _signal.getsignal(one) for one in (_signal.SIGINT, _signal.SIGTERM)}
        # Who is ignored stays so, as Ctrl-C in the background of a script.
        self._before = {
            one: now for one, now in found.items() if now not in (_signal.SIG_IGN, None)
        }

    def __enter__(self) -> Self:
        """Take the signals."""
        self._near, self._far = os.pipe()
        # Python writes there at once: a handler may come only after what we wait for.
        os.set_blocking(self._far, False)
        self._wake_before = _signal.set_wakeup_fd(self._far, warn_on_full_buffer=False)
        for one in self._before:
            _signal.signal(one, self._take)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Let the signals do what they did before."""
        for one, before in self._before.items():
            _signal.signal(one, before)
        _signal.set_wakeup_fd(self._wake_before)
        os.close(self._near)
        os.close(self._far)

    def fileno(self) -> int:
        """Return what turns readable when it came."""
        return self._near

    def _take(self, number: int, _frame: FrameType | None) -> None:
        is_first = not self.came
        self.came = True
        if number == _signal.SIGINT:
            if not is_first:
                raise KeyboardInterrupt
        elif is_first or not self._told_at:
            self._told_at = time.monotonic()
        elif time.monotonic() - self._told_at > _TWICE_S:
            _signal.signal(_signal.SIGTERM, self._before[_signal.SIGTERM])
            os.kill(os.getpid(), _signal.SIGTERM)
