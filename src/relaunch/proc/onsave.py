"""A process beside us that interrupts the program, as Ctrl-C would, when a source is saved."""

from __future__ import annotations

import os
import select
import time

from relaunch.proc.guard import close_others

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Iterable
else:
    import _signal

LOOK_S = 0.1
_END_S = 5.0
"""What a program gets to end by itself before it is killed."""
_SETTLE_S = 0.02
_SETTLED_S = 1.0
GONE = (0, 0)

Stamps = dict[str, tuple[int, int]]


def stamps(paths: Iterable[str]) -> Stamps:
    """Return when each file was changed and how long it is; one that is not there is GONE."""
    found = {}
    for path in paths:
        try:
            state = os.stat(path)
            found[path] = (state.st_mtime_ns, state.st_size)
        except OSError:
            found[path] = GONE
    return found


def wait_for_save(seen: Stamps) -> None:
    """Return when one of the files was saved, and is whole again: editors write in steps."""
    while (now := stamps(seen)) == seen:
        time.sleep(LOOK_S)
    until = time.monotonic() + _SETTLED_S
    while time.monotonic() < until:
        time.sleep(_SETTLE_S)
        before, now = now, stamps(seen)
        if before == now and GONE not in now.values():
            return


class Interrupter:
    """Our end of it. Start it before the program, for what is started later is taken for its."""

    def __init__(self, sources: Iterable[str]) -> None:
        """Remember the sources as they are; nobody is interrupted before `begin`."""
        orders, self._orders = os.pipe()
        self._answers, answers = os.pipe()
        self._seen = stamps(sources)
        self._texts = {path: _text(path) for path in self._seen}
        self._changed = ""
        us = os.getpid()
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals())
        self._pid = os.fork()
        if self._pid == 0:
            try:
                close_others(orders, answers)
                self._stand(us, orders, answers)
            finally:
                os._exit(0)
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        os.close(orders)
        os.close(answers)

    def begin(self) -> None:
        """Interrupt from now on."""
        os.write(self._orders, b"!")

    def end(self) -> str:
        """Let it go; returns a source that was saved meanwhile, nothing if none was."""
        mask = _signal.pthread_sigmask(_signal.SIG_BLOCK, [_signal.SIGINT])
        if self._pid:
            os.kill(self._pid, _signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0
            self._changed = os.fsdecode(os.read(self._answers, 4096))
            os.close(self._orders)
            os.close(self._answers)
            if self._changed:  # it may have come after the program had ended
                _signal.sigtimedwait([_signal.SIGINT], 0)
            self._changed = self._changed or self._saved()
        _signal.pthread_sigmask(_signal.SIG_SETMASK, mask)
        return self._changed

    def _stand(self, us: int, orders: int, answers: int) -> None:
        """Wait, look, and interrupt `us`, who passes it on to the program."""
        while os.getppid() == us and not select.select([orders], [], [], LOOK_S)[0]:
            pass
        while not (saved := self._saved()):
            if os.getppid() != us:
                return
            time.sleep(LOOK_S)
        os.write(answers, os.fsencode(saved)[:4096])
        os.kill(us, _signal.SIGINT)
        until = time.monotonic() + _END_S
        while os.getppid() == us:
            time.sleep(LOOK_S)
            if time.monotonic() > until:  # twice within a moment: no more patience
                os.kill(us, _signal.SIGINT)

    def _saved(self) -> str:
        """Name a source that has other text; one that was only touched or is gone has not."""
        now = stamps(self._seen)
        for path in [path for path in now if now[path] not in (self._seen[path], GONE)]:
            self._seen[path] = now[path]
            text = _text(path)
            if text and text != self._texts[path]:
                return path
        return ""


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
