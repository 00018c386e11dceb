"""Lines of ours in the user's process: text on a terminal, whatever is named in them."""

from __future__ import annotations

import os

from relaunch.inside.oneline import Line
from relaunch.inside.printable import printable
from relaunch.inside.probe.voice import Voice

EVIL = "\x1b]0;owned\x07\x9b3m\u202e\udc9b\r"
SHOWN = r"\x1b]0;owned\x07\x9b3m\u202e\udc9b\r"


def test_what_is_not_to_be_seen_comes_out_as_its_escape():
    assert printable(EVIL) == SHOWN
    assert printable("two\nlines\t日本") == "two\nlines\t日本"


def test_a_peek_and_a_probe_say_nothing_that_a_terminal_obeys(tmp_path, capfd, monkeypatch):
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)  # a probe would say whose line it is
    path = tmp_path / "peeks"
    Line(str(path)).say(f"{EVIL}.py:3 x=1")
    assert path.read_text() == f"{SHOWN}.py:3 x=1\n"
    voice = Voice(str(tmp_path))
    voice.say(f"{EVIL}.py:3 x=1")
    os.close(voice._fd)
    assert capfd.readouterr().err == f"{SHOWN}.py:3 x=1\n"
