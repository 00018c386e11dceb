"""Lines about work that goes on, drawn on a real terminal."""

import os
import pty
import sys
import termios

from relaunch.cli.draw import Pen
from relaunch.cli.live import Lines


def test_the_key_that_interrupts_fits_behind_what_is_drawn(monkeypatch):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with os.fdopen(ours, "rb"), open(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        assert Lines(Pen()).width + len("^C") < 80
