"""Lines about work that goes on: said once, or drawn anew at the foot of a terminal."""

from __future__ import annotations

import sys

from relaunch.cli import draw

_WIDEST = 100
_ECHO = len("^C")
"""What a terminal writes behind the last line; on a row of its own, one line would be left."""


class Lines:
    """Writes on standard error; what is drawn goes again before anything else is said."""

    def __init__(self, pen: draw.Pen) -> None:
        """Draw with a pen."""
        self.pen = pen
        self.is_terminal = sys.stderr.isatty()
        self._drawn = 0

    @property
    def width(self) -> int:
        """How wide a drawing may be."""
        return min(_WIDEST, draw.width(sys.stderr) - 1 - _ECHO)

    def say(self, text: str) -> None:
        """Say a line, cut to fit."""
        self.close()
        draw.remark(draw.clip(draw.clean(text), draw.width(sys.stderr), utf8=self.pen.utf8))

    def draw(self, *lines: str) -> None:
        """Draw lines in the place of those before; only on a terminal."""
        if not self.is_terminal:
            return
        self.close()
        draw.put(sys.stderr, "\n".join(lines))
        self._drawn = len(lines)

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._drawn:
            up = f"\x1b[{self._drawn - 1}A" if self._drawn > 1 else ""
            draw.steer(sys.stderr, f"\r{up}\x1b[J")
            self._drawn = 0
