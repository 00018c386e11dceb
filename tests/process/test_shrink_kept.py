"""What a search of `rl shrink` keeps: for its log, for who goes on, and when it has to end."""

from __future__ import annotations

import json
import sys

from tests.depth import takes_turns

from relaunch.session.shrinking.answers import Answers

PYTHON = sys.executable
LINES = "".join(f"line {number}\n" for number in range(60))
COMMAND = ("--", PYTHON, "load.py", "data.txt")
LOAD = """\
import sys
if "bad" in open(sys.argv[1]).read():
    raise ValueError("a bad line")
"""
NOW_AND_THEN = """\
import os, sys
with open("count", "a+") as file:
    file.write("x")
    count = file.tell()
if "bad" in open(sys.argv[1]).read() and (count % 5 < 3 or os.path.exists("sure")):
    raise ValueError("a bad line")
"""
"""Fails in three runs of five, until it is sure to."""
NO_MORE = """\
import os, sys
is_over = os.path.exists("data.small.txt") and not os.path.exists("go")
if "bad" in open(sys.argv[1]).read() and not is_over:
    raise ValueError("a bad line")
"""
"""Fails until there is something small."""


def test_with_a_guard_each_gain_is_in_the_log_and_forks_are_noted_as_such(world):
    world.write("load.py", LOAD)
    world.write("data.txt", f"{LINES}bad\n")
    done = world.rl("shrink", "data.txt", "--also", "grep -q 'line 7' data.txt", *COMMAND)
    assert done.returncode == 0, done.stderr
    assert "attempts start where data.txt is first read" in done.stderr
    log = world.rl("shrink", "--log")
    assert log.stdout.count("ValueError: a bad line") >= 3
    answers = Answers(str(world.journal / "searches" / "1"))
    taken = {key for key, is_same in answers.known.items() if is_same}
    assert len(taken) >= 3
    assert taken <= answers.was_forked


@takes_turns
def test_how_often_it_fails_is_known_to_who_goes_on(world):
    world.write("load.py", NOW_AND_THEN)
    world.write("data.txt", f"{LINES}bad\n")
    some = world.rl("shrink", "--json", "data.txt", "-j", "1", "--budget", "4", *COMMAND)
    rate = json.loads(some.stdout)["rate"]
    assert rate[0] < rate[1]
    (world.project / "sure").touch()
    rest = world.rl("shrink", "--resume")
    assert rest.returncode == 0, rest.stderr
    assert f"{rate[0]} of {rate[1]} runs" in rest.stderr
    assert f"{rate[0]} of {rate[1]} runs" in rest.stdout


def test_when_nothing_fails_any_more_what_is_there_is_told_and_it_can_go_on(world):
    world.write("load.py", NO_MORE)
    world.write("data.txt", f"{LINES}bad\n")
    done = world.rl("shrink", "data.txt", "-j", "1", *COMMAND)
    assert done.returncode == 2
    small = world.project / "data.small.txt"
    assert f"small     data.small.txt ({small.stat().st_size} B of " in done.stdout
    assert "it failed before, and in none of " in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].endswith("then: rl shrink --resume")
    answers = Answers(str(world.journal / "searches" / "1"))
    attempts = json.loads((world.journal / "searches" / "1" / "end.json").read_text())["runs"]
    running = 1  # of -j 1: what was not over then has no answer
    assert len(answers.known) >= attempts - running > 0
    (world.project / "go").touch()
    rest = world.rl("shrink", "--resume")
    assert rest.returncode == 0, rest.stderr
    assert "bad" in small.read_text()
