"""The whole terminal for as long as something is watched: drawn in place, given back as it was."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import time

from relaunch.cli import draw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from types import FrameType, TracebackType
    from typing import Self

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_KEYS = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down",
    b"\x1b[5~": "page up", b"\x1b[6~": "page down", b"\r": "enter", b"\n": "enter",
    b"\x7f": "back", b"\x08": "back", b"\x1b": "escape",
}  # fmt: skip


def is_possible() -> bool:
    """Tell whether there is a terminal that can be drawn on."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def keys_in(data: bytes) -> list[str]:
    """Tell the keys in what a terminal sent: a character each, or a name such as `up`."""
    found = []
    while data:
        size = next((n for n in (4, 3, 1) if data[:n] in _KEYS and len(data) >= n), 0)
        if size == 1 and data[:1] == b"\x1b" and len(data) > 1:  # a key that we do not know
            end = next((n for n in range(2, len(data)) if 0x40 <= data[n] <= 0x7E), 1)
            data = data[end + 1 :]
            continue
        if size:
            found.append(_KEYS[data[:size]])
            data = data[size:]
            continue
        length = 1 if data[0] < 0x80 else 2 if data[0] < 0xE0 else 3 if data[0] < 0xF0 else 4
        char = data[:length].decode("utf-8", "ignore")
        found += [char] if char.isprintable() and char else []
        data = data[length:]
    return found


class Screen:
    """Use it in a `with`: whatever happens in there, the terminal is as before afterwards."""

    def __init__(self) -> None:
        """Remember the terminal."""
        self.has_keys = sys.stdin is not None and sys.stdin.isatty()
        self._settings = termios.tcgetattr(0) if self.has_keys else []
        self._wake, self._woken = os.pipe()
        for fd in (self._wake, self._woken):
            os.set_blocking(fd, False)
        self._signals: dict[int, object] = {}
        self._drawn: list[str] = []

    def __enter__(self) -> Self:
        """Take the terminal."""
        signal.set_wakeup_fd(self._woken, warn_on_full_buffer=False)
        handlers: dict[int, Callable[[int, FrameType | None], object]] = {
            signal.SIGWINCH: self._resized,
            signal.SIGTSTP: self._stopped,
            signal.SIGTERM: self._ended,
            signal.SIGHUP: self._ended,
        }
        for number, handler in handlers.items():
            self._signals[number] = signal.signal(number, handler)
        self._take()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give it back."""
        self._give_back()
        for number, handler in self._signals.items():
            signal.signal(number, handler)  # type: ignore[arg-type]  # as signal itself gave it
        signal.set_wakeup_fd(-1)
        os.close(self._wake)
        os.close(self._woken)

    def _take(self) -> None:
        if self.has_keys:
            new = termios.tcgetattr(0)
            new[3] &= ~(termios.ECHO | termios.ICANON)
            termios.tcsetattr(0, termios.TCSADRAIN, new)
        self._write(_ENTER)
        self._drawn = []

    def _give_back(self) -> None:
        try:
            self._write(_LEAVE)
            if self.has_keys:
                termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
        except (OSError, termios.error):  # it was closed
            pass

    def _resized(self, *_: object) -> None:
        self._drawn = []

    def _stopped(self, *_: object) -> None:
        """Ctrl-Z: the shell gets its terminal, and we get it again with `fg`."""
        self._give_back()
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stopped)
        self._take()

    def _ended(self, number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        try:
            found = os.get_terminal_size(1)
        except OSError:
            return draw.DEFAULT_WIDTH, 24
        return found.columns or draw.DEFAULT_WIDTH, found.lines or 24

    def draw(self, lines: Sequence[str]) -> None:
        """Show these lines, which fit, in place of those before; what is the same stays."""
        rows = self.size[1]
        lines = [*map(draw.shown, lines[:rows])]
        if not self._drawn:
            self._write("\x1b[H\x1b[2J")
        parts = []
        for row, line in enumerate(lines):
            if row >= len(self._drawn) or self._drawn[row] != line:
                parts.append(f"\x1b[{row + 1};1H{line}\x1b[K")
        if len(lines) < len(self._drawn):
            parts.append(f"\x1b[{len(lines) + 1};1H\x1b[J")
        if parts:
            self._write("".join(parts))
        self._drawn = lines or [""]

    def wait(self, until: float, files: Collection[int] = ()) -> list[str]:
        """Return the keys that are pressed before that moment; earlier when a file has news."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self.has_keys:
            poll.register(0, select.POLLIN)
        for file in files:
            if file >= 0:
                poll.register(file, select.POLLIN)
        ready = [fd for fd, _ in poll.poll(max(0.0, until - time.monotonic()) * 1000)]
        if self._wake in ready:
            os.read(self._wake, 512)
        if 0 not in ready or not self.has_keys:
            return []
        data = os.read(0, 1024)
        if not data:  # the terminal is gone
            raise SystemExit(129)
        return keys_in(data)

    def _write(self, text: str) -> None:
        view = memoryview(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))
        while view:
            view = view[os.write(1, view) :]
