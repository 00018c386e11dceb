"""The real strace beside the program, attached before its first instruction."""

from __future__ import annotations

import os
import time

from relaunch.proc.capture import find_tool
from relaunch.proc.companion import Companion
from relaunch.proc.helper import Helper
from relaunch.proc.status import tracer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_SEIZED_S = 10.0


class Strace(Companion):
    """Has strace attach to the program, which waits for that."""

    def __init__(self) -> None:
        """Prepare nothing yet."""
        self._helper: Helper | None = None
        self._gate, self._opens = -1, -1
        self._words: Sequence[str] = ()

    def begin(self, words: Sequence[str], *, keep: Collection[int] = ()) -> None:
        """Fork what becomes `strace WORDS -p PID` when the program is known."""
        self._words = words
        self._gate, self._opens = os.pipe()
        self._helper = Helper(self._become_strace, keep=keep)

    def helpers(self) -> tuple[int, ...]:
        """Name strace."""
        return (self._helper.pid,) if self._helper else ()

    def _become_strace(self, socket: int) -> None:
        pid = os.read(socket, 20).decode()
        if pid:
            os.set_inheritable(socket, True)  # who waits for its end waits for strace
            strace = find_tool("strace", os.environ.get("PATH", os.defpath))
            os.execv(strace, ["strace", *self._words, "-p", pid])

    def enter(self) -> None:
        """Wait until strace has us; any process of the same user may, where Yama asks."""
        from relaunch.proc.ptrace.kernel import allow_tracer

        os.close(self._opens)
        allow_tracer(-1)
        if os.read(self._gate, 1) != b"+":
            raise OSError("strace did not attach")
        os.close(self._gate)

    def launched(self, pid: int) -> None:
        """Have strace attach, and open the gate."""
        assert self._helper is not None
        self._helper.say(str(pid).encode())
        until = time.monotonic() + _SEIZED_S
        while not tracer_of(pid) and time.monotonic() < until:
            time.sleep(0.002)
        os.write(self._opens, b"+" if tracer_of(pid) else b"-")
        self._close_gate()

    def _close_gate(self) -> None:
        for fd in (self._gate, self._opens):
            if fd >= 0:
                os.close(fd)
        self._gate = self._opens = -1

    def ended(self) -> None:
        """End it."""
        self._close_gate()
        if self._helper is not None:
            self._helper.stop()
            self._helper = None
