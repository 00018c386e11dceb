"""`rl shrink` with programs that write to what they read: each run has what was meant for it."""

from __future__ import annotations

import json
import sys

import pytest
from tests.depth import takes_turns

PYTHON = sys.executable
LINES = "".join(f"line {number}\n" for number in range(60))
TAKES = """\
import os, sys
path = sys.argv[1]
with open(path, "r+") as file:
    data = file.read()
    if WHEN:
        file.seek(0)
        file.truncate()
if "bad" in data:
    raise ValueError("a bad line")
"""
"""Empties its input: that of an attempt, the small one at the end, or the person's own too."""
WHENS = {"of attempts": "os.path.isabs(path)", "small": "'small' in path", "any": "True"}
TAKES_ONE = """\
import os, sys
folder = sys.argv[1]
path = os.path.join(folder, "b.txt")
data = open(path).read() if os.path.exists(path) else ""
if data and os.path.isabs(folder):
    os.unlink(path)
if "bad" in data:
    raise ValueError("a bad line")
"""


def shrunk(world, *words):
    """Search, and return the answer as data."""
    done = world.rl("shrink", "--json", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


@takes_turns
@pytest.mark.parametrize("how", [(), ("--fresh",)], ids=["forked", "fresh"])
@pytest.mark.parametrize("when", WHENS)
def test_an_input_that_the_program_empties_is_there_in_the_next_run(world, when, how):
    world.write("load.py", TAKES.replace("WHEN", WHENS[when]))
    world.write("data.txt", f"{LINES}bad\n")
    found = shrunk(world, "data.txt", "-j", "1", *how, "--", PYTHON, "load.py", "data.txt")
    assert (world.project / "data.small.txt").read_text() == "bad"
    assert (found["rate"], found["bytes"], found["stopped"]) == (None, 3, "")


@pytest.mark.parametrize("when", ["of attempts", "any"])
def test_a_guard_sees_what_the_command_saw_and_not_what_it_left(world, when):
    world.write("load.py", TAKES.replace("WHEN", WHENS[when]))
    world.write("data.txt", f"{LINES}bad\n")
    also = ("--also", "grep -q 'line 7' data.txt")
    shrunk(world, "data.txt", "-j", "1", *also, "--", PYTHON, "load.py", "data.txt")
    assert (world.project / "data.small.txt").read_text() == "line 7bad"


def test_a_file_that_the_program_removes_from_a_folder_is_there_in_the_next_run(world):
    world.write("load.py", TAKES_ONE)
    world.write("rows/a.txt", LINES)
    world.write("rows/b.txt", f"{LINES}bad\n")
    found = shrunk(world, "rows", "-j", "1", "--", PYTHON, "load.py", "rows")
    small = world.project / "rows.small"
    assert [one.name for one in small.iterdir()] == ["b.txt"]
    assert (small / "b.txt").read_text() == "bad"
    assert found["rate"] is None


def test_a_bundle_is_sent_with_the_input_that_fails_and_not_with_what_its_run_left(world):
    world.write("load.py", TAKES.replace("WHEN", "True"))
    world.write("data.txt", f"{LINES}bad\n")
    words = ("--bundle", "repro", "--", PYTHON, "load.py", "data.txt")
    assert shrunk(world, "data.txt", *words)["bundle_fails"] is True
    assert (world.project / "repro" / "data.txt").read_text() == "bad"
