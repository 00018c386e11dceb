"""A person about to test old code is stopped: a real editor, a real terminal, a real answer."""

import shlex
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from tests.needs import needs


class Screen:
    """Two tmux panes on a socket of their own: an editor and a shell."""

    def __init__(self, world) -> None:
        self.world = world
        self.socket = str(world.root / "tmux")
        self.run("new-session", "-d", "-x", "100", "-y", "40", "-s", "t", "sh")

    def run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", "-S", self.socket, *words],
            env=self.world.env,
            cwd=self.world.project,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def type(self, pane: str, *keys: str) -> None:
        self.run("send-keys", "-t", f"t:{pane}", *keys)

    def wait(self, pane: str, text: str, seconds: float = 300) -> str:
        """Look at a pane until it shows a text."""
        deadline = time.monotonic() + seconds
        shown = ""
        while time.monotonic() < deadline:
            shown = self.run("capture-pane", "-p", "-t", f"t:{pane}")
            if text in shown:
                return shown
            time.sleep(0.02)  # between two looks at the screen; bounded by the deadline
        raise AssertionError(f"never saw {text!r} in:\n{shown}")


@pytest.fixture
def screen(world) -> Iterator[Screen]:
    needs("tmux")
    needs("vim")
    world.write("train.py", "print('old code')\n")
    world.commit()
    screen = Screen(world)
    screen.run("new-window", "-t", "t:1", "vim", "-u", "NONE", "-i", "NONE", "train.py")
    screen.wait("1", "print('old code')")
    screen.type("1", "i", "print('new code')", "Enter", "Escape")
    screen.wait("1", "print('new code')")
    yield screen
    screen.run("kill-server")


def launch(screen: Screen) -> None:
    words = [sys.executable, "-m", "relaunch", "--", sys.executable, "train.py"]
    screen.type("0", shlex.join(words), "Enter")


def test_waiting_runs_the_new_code_once_the_editor_has_saved(screen):
    launch(screen)
    shown = screen.wait("0", "[q]uit  >")
    assert "train.py has unsaved changes in vim (pid " in shown
    assert "You would test the OLD code" in shown
    screen.type("0", "w", "Enter")
    screen.type("1", ":w", "Enter")
    shown = screen.wait("0", "rl #1  exit 0")
    assert "\nnew code\n" in shown


def test_running_anyway_is_recorded_as_such(screen):
    launch(screen)
    screen.wait("0", "[q]uit  >")
    screen.type("0", "r", "Enter")
    shown = screen.wait("0", "rl #1  exit 0")
    assert "\nnew code\n" not in shown
    assert str(screen.world.project / "train.py") in screen.world.rl("show", "1", "--json").stdout


def test_quitting_launches_nothing(screen):
    launch(screen)
    screen.wait("0", "[q]uit  >")
    screen.type("0", "q", "Enter")
    screen.wait("0", "not launched")
    assert "no trials" in screen.world.rl("log").stdout + screen.world.rl("log").stderr


def test_without_a_terminal_nobody_is_asked_but_everybody_is_told(screen):
    ran = screen.world.rl("--", sys.executable, "train.py")
    assert ran.stdout == "old code\n"
    assert "train.py has unsaved changes in vim" in ran.stderr
    assert "You would test the OLD code" in ran.stderr
    ran = screen.world.rl("--unsaved", "refuse", "--", sys.executable, "train.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    ran = screen.world.rl("--unsaved", "off", "--", sys.executable, "train.py")
    assert "unsaved" not in ran.stderr
