"""`rl shrink` where forks and fresh processes differ, and the seats in which both run."""

from __future__ import annotations

import json
import os
import sys

import pytest
from tests.depth import takes_turns

from relaunch.recipe import Recipe
from relaunch.search.shrink.formats.choose import read_bytes
from relaunch.session.shrinking.answers import Answers
from relaunch.session.shrinking.crew import Crew
from relaunch.session.shrinking.places import Place
from relaunch.session.shrinking.seat import Job, Limit
from relaunch.session.shrinking.told import Request
from relaunch.trial.launch.held import OPEN, START

PYTHON = sys.executable
LINES = "".join(f"line {number}\n" for number in range(300))
COMMAND = ("--", PYTHON, "load.py", "data.txt")
AT_ITS_OPENING = """\
import os, sys
born = os.getpid()
data = open(sys.argv[1]).read()
is_fork = os.getpid() != born
"""
AT_ALL = """\
import os, sys
data = open(sys.argv[1]).read()
with open(f"/proc/{os.getppid()}/cmdline") as file:
    words = file.read().split("\\0")
is_fork = "relaunch" not in words and "load.py" in words
"""
MISSES = """\
if "bad" in data and (not is_fork or len(data) > 2500):
    raise ValueError("a bad line")
"""
"""In a fork it fails only with almost all of it."""
LATER_MISSES = """\
is_later = os.path.exists("later")
if is_later and (not is_fork or len(data) > 2500) or not is_later and "bad" in data:
    raise ValueError("a bad line")
"""
"""Later on a fork fails with nothing small, and a process of its own with anything."""
WAITS = """\
import subprocess, sys
if "late" in open(sys.argv[1]).read():
    subprocess.run([sys.executable, "worker.py"])
    open("gate").read()
sys.exit(3)
"""
"""Has a worker that fails, and waits at the gate then; or ends with 3."""


def shrunk(world, *words):
    """Search, and return the answer as data."""
    done = world.rl("shrink", "--json", *words)
    assert done.returncode == 0, done.stderr + done.stdout
    return json.loads(done.stdout)


# --- a fork passes where a fresh process fails


@takes_turns
@pytest.mark.parametrize(
    ("program", "way"),
    [
        (AT_ITS_OPENING, "attempts start in a Python that is up"),
        (AT_ALL, "each attempt is a process of its own"),
    ],
    ids=["at its opening", "at all"],
)
def test_what_only_a_fresh_process_shows_is_found_once_forks_were_seen_to_miss_it(
    world, program, way
):
    world.write("load.py", program + MISSES)
    world.write("data.txt", f"{LINES}bad\n")
    found = shrunk(world, "data.txt", "-j", "2", *COMMAND)
    assert (world.project / "data.small.txt").read_text() == "bad"
    assert found["way"].startswith(way)
    done = world.shell(f"{PYTHON} load.py data.small.txt")
    assert "ValueError: a bad line" in done.stderr


@pytest.mark.parametrize("stdin", [False, True], ids=["named", "stdin"])
def test_what_was_confirmed_stays_when_forks_are_seen_to_miss_something_in_a_later_sitting(
    world, stdin
):
    opened = "sys.stdin" if stdin else "open(sys.argv[1])"
    world.write("load.py", AT_ALL.replace("open(sys.argv[1])", opened) + LATER_MISSES)
    world.write("data.txt", f"{LINES}bad\n")
    command = ("--stdin", "--", PYTHON, "load.py") if stdin else COMMAND
    some = shrunk(world, "data.txt", "--budget", "12", "-j", "1", *command)
    small = world.project / "data.small.txt"
    size = small.stat().st_size
    assert some["bytes"] == size < 1000
    assert answers(world).was_forked
    (world.project / "later").touch()
    rest = shrunk(world, "--resume", "--budget", "1")
    assert not answers(world).was_forked  # it was seen
    assert (rest["stopped"], rest["bytes"]) == ("the budget of 1 runs is used up", size)
    assert small.stat().st_size == size
    assert (rest["stdin"] if stdin else rest["command"][-1]) == "data.small.txt"


def answers(world):
    return Answers(str(world.journal / "searches" / "1"))


# --- the seats


@pytest.fixture
def crew(tmp_path):
    """One seat, and the one aside; the program is held where it opens its input."""
    (tmp_path / "load.py").write_text(WAITS)
    (tmp_path / "worker.py").write_text("raise ValueError('it is late')\n")
    (tmp_path / "data.txt").write_text("a line")
    recipe = Recipe(argv=(PYTHON, "load.py", "data.txt"), cwd=str(tmp_path))
    request = Request(recipe=recipe, files=("data.txt",))
    parts = parts_of("a line")
    places = [Place(str(tmp_path / f"place {n}"), request, parts) for n in range(2)]
    found = Crew(places, (), str(tmp_path))
    found.limit(Limit(timeout_s=60.0))
    try:
        first = Job(parts=parts, fresh=True, noting=True)
        found.start_aside(first)
        noted = ended(found, first).noted
        assert noted is not None
        found.hold(noted, [OPEN, START], parts)
        wait_ready(found)
        assert found.way == OPEN
        yield found
    finally:
        found.close()


def parts_of(text):
    return {"data.txt": read_bytes(text.encode(), "data.txt")}


def ended(crew, job):
    while True:
        for ran in crew.wait(None)[0]:
            if ran.job is job:
                return ran


def wait_ready(crew):
    while not crew.is_ready:
        crew.wait(None)


def test_a_seat_that_is_busy_when_the_way_changes_is_held_in_the_new_way_when_it_is_free(crew):
    busy, next_one = (Job(parts=parts_of("a line"), fresh=fresh) for fresh in (True, False))
    crew.start(busy)
    crew.next_way("to see it")
    assert not ended(crew, busy).forked
    wait_ready(crew)
    assert (crew.way, crew.seats[0].held is None) == (START, False)
    crew.start(next_one)
    ran = ended(crew, next_one)
    assert (ran.forked, ran.outcome.exit_code) == (True, 3)


def test_what_a_fork_reports_that_nobody_wants_to_know_of_is_not_said_of_the_next_one(
    crew, tmp_path
):
    os.mkfifo(tmp_path / "gate")
    unwanted, wanted = Job(parts=parts_of("it is late")), Job(parts=parts_of("a line"))
    crew.start(unwanted)
    gate = os.open(tmp_path / "gate", os.O_WRONLY)  # it is there by now
    try:
        crew.cancel([unwanted])
        while crew.running:
            assert crew.wait(None) == ([], [])
    finally:
        os.close(gate)
    crew.start(wanted)
    outcome = ended(crew, wanted).outcome
    assert outcome.exit_code == 3
    assert outcome.signature is not None
    assert "late" not in outcome.signature.title
