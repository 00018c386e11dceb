"""The debugger at a line: on the real terminal, in children and under pytest too."""

from __future__ import annotations

import sys
import tempfile

import pytest
from tests.needs import every_python
from tests.process.test_probe import CHILDREN, TRAIN
from tests.shells import Terminal


def at_line(world, place, *command):
    """Start the program on a terminal of its own and wait for the debugger."""
    argv = [sys.executable, "-m", "relaunch", "probe", place, "--break", "--", *command]
    env = {**world.env, "TMPDIR": tempfile.gettempdir()}
    terminal = Terminal(argv, env, world.project)
    return terminal, terminal.wait(r"\(Pdb\) ")


def say(terminal, words, answer, after):
    terminal.type(words + "\n")
    return terminal.wait(answer, after=after)


@every_python
def test_it_opens_at_the_line_and_steps_from_there(world, python):
    world.write("train.py", TRAIN)
    terminal, at = at_line(world, "train.py:11", python, "train.py", "3")
    assert "train.py(11)main()" in terminal.screen
    at = say(terminal, "p i, total", r"\(0, 0\)\s+\(Pdb\) ", at)
    at = say(terminal, "n", r"train.py\(10\)main\(\)\s+-> for i in range\(n\):\s+\(Pdb\) ", at)
    at = say(terminal, "s", r"train.py\(11\)main\(\)\s+-> total[^\n]*\s+\(Pdb\) ", at)
    at = say(terminal, "s", r"--Call--\s+[^\n]*forward[^\n]*\s+->[^\n]*\s+\(Pdb\) ", at)
    at = say(terminal, "c", r"train.py\(11\)main\(\)\s+-> total[^\n]*\s+\(Pdb\) ", at)
    say(terminal, "q", r"exit 1 in", at)
    assert terminal.process.wait(300) == 1


@pytest.mark.parametrize("how", ["fork", "spawn", "forkserver"])
def test_it_opens_in_a_child_whose_input_is_not_the_terminal(world, how):
    world.write("work.py", CHILDREN)
    terminal, at = at_line(world, "work.py:3", sys.executable, "work.py", how)
    at = say(terminal, "p n * 6", r"42\s+\(Pdb\) ", at)
    say(terminal, "c", r"exit 0 in", at)
    assert terminal.process.wait(300) == 0


def test_it_opens_under_pytest(world):
    world.write("test_it.py", "def test_it():\n    value = 41\n    assert value\n")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    terminal, at = at_line(world, "test_it.py:3", *command)
    at = say(terminal, "p value + 1", r"42\s+\(Pdb\) ", at)
    say(terminal, "c", r"1 passed", at)
    assert terminal.process.wait(300) == 0


def test_our_aliases_are_there_beside_the_persons_own(world):
    world.write("train.py", TRAIN)
    (world.home / ".pdbrc").write_text("alias mine p 6 * 7\n")
    terminal, at = at_line(world, "train.py:11", sys.executable, "train.py", "3")
    at = say(terminal, "mine", r"42\s+\(Pdb\) ", at)
    at = say(terminal, "nl", r"10  ->\s+for i in range\(n\):", at)
    say(terminal, "pd sys.flags", r"\(Pdb\) ", at)
    terminal.kill()
    assert (world.home / ".pdbrc").read_text() == "alias mine p 6 * 7\n"


def post_mortem(world, *command):
    argv = [sys.executable, "-m", "relaunch", "--pdb", "--", *command]
    env = {**world.env, "TMPDIR": tempfile.gettempdir()}
    terminal = Terminal(argv, env, world.project)
    return terminal, terminal.wait(r"\(Pdb\) ")


@every_python
def test_after_a_failure_the_debugger_opens_where_it_happened(world, python):
    world.write("train.py", "def step(n):\n    half = n / 2\n    raise ValueError(n)\nstep(84)\n")
    terminal, at = post_mortem(world, python, "train.py")
    assert "ValueError: 84" in terminal.screen
    at = say(terminal, "p half", r"42.0\s+\(Pdb\) ", at)
    say(terminal, "q", r"exit 1 in", at)
    assert terminal.process.wait(300) == 1


@pytest.mark.parametrize("how", ["thread", "process", "pytest"])
def test_it_opens_in_threads_children_and_tests(world, how):
    world.write("work.py", f"""\
import multiprocessing, threading
def step(n):
    half = n / 2
    raise ValueError(n)
if __name__ == "__main__":
    kind = {{"thread": threading.Thread, "process": multiprocessing.Process}}[{how!r}]
    one = kind(target=step, args=(84,))
    one.start()
    one.join()
""")  # fmt: skip
    world.write("test_work.py", "from work import step\ndef test_it():\n    step(84)\n")
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider"] if how == "pytest" else ["work.py"]
    terminal, at = post_mortem(world, sys.executable, *command)
    at = say(terminal, "p half", r"42.0\s+\(Pdb\) ", at)
    say(terminal, "q", r"exit [01] in|exit 2 in", at)
    terminal.process.wait(300)
