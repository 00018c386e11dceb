"""`rl shrink` while it runs: what it shows, what attempts may take, and what a stop leaves."""

from __future__ import annotations

import json
import os
import re
import signal
import sys

import pytest
from tests.depth import takes_turns
from tests.supervising import Screen, wait_until

PYTHON = sys.executable
LINES = "".join(f"line {number}\n" for number in range(300))
BAD = LINES.replace("line 211\n", "line 211 is bad\n")
GATE = """\
import os, sys

def load(path):
    data = open(path).read()
    if os.path.exists("gate") and 0 < len(data) < 1000:
        open("gate").read()
    if "bad" in data:
        raise ValueError("a bad line")

load(sys.argv[1])
"""
"""Waits for somebody at the gate, where there is one and its input is small."""
HANGS = """\
import os, sys

def load(path):
    data = open(path).read()
    if "line 0" not in data and not os.path.exists("hung"):
        os.mkfifo("hung")
        open("hung").read()
    if "bad" in data and "line 0" in data:
        raise ValueError("a bad line")

load(sys.argv[1])
"""
"""Hangs once, where what it needs is gone."""
EATS = """\
import sys

def load(path):
    data = open(path).read()
    eaten = bytearray(0 if "line 0" in data else 6 << 30)
    if "bad" in data:
        raise ValueError("a bad line")

load(sys.argv[1])
"""
"""Asks for more than an attempt may have, and never touches it."""
MEETS = """\
import fcntl, os, sys, time

def others(mine):
    for name in os.listdir("."):
        if name.startswith("here.") and name != mine:
            with open(name) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return True
    return False

def load(path):
    data = open(path).read()
    if len(data) < 2000:
        mine = f"here.{os.getpid()}"
        with open(mine, "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            while not os.path.exists("met") and not others(mine):
                time.sleep(0.005)
            open("met", "w").close()
    if "bad" in data:
        raise ValueError("a bad line")

load(sys.argv[1])
"""
"""The first attempt ends when there is another one, that runs."""
CHECK = """\
def check(config):
    if config["model"]["rate"] > 3:
        raise ValueError("too quick")
"""
TRAIN = """\
import yaml
from check import check

def unused():
    return 1

def train(config):
    print("checks")
    check(config)

with open("config.yaml") as file:
    train(yaml.safe_load(file))
print("done")
"""
CONFIG = "name: a\nmodel:\n  layers: [1, 2, 3]\n  rate: 12\nother:\n  - b\n  - c\n"
COLOUR = re.compile(r"\x1b\[\d*m")
STATE = re.compile(r"([▁▂▃▄▅▆▇█]{16}) (\S+ \S+) of 2\.5 KiB  (\d+) attempts (\d+)/s([^\r]*)")


def test_on_a_terminal_one_line_shows_how_it_stands_and_how_fast_this_sitting_is(world):
    world.write("load.py", GATE)
    world.write("data.txt", BAD)
    command = ("--", PYTHON, "load.py", "data.txt")
    some = world.rl("shrink", "data.txt", "-j", "1", "--budget", "15", *command)
    assert some.returncode == 0, some.stderr
    os.mkfifo(world.project / "gate")
    words = ("-m", "relaunch", "shrink", "--resume", "--budget", "1h")
    size = (24, 120)
    screen = Screen(PYTHON, *words, env=world.env, cwd=str(world.project), size=size)
    try:
        shown = screen.until(b"no gain for 3").decode() + screen.until(b"\r").decode()
        states = STATE.findall(COLOUR.sub("", shown))
        bars, left, attempts, _, _ = states[0]
        assert bars[0] == "█"
        assert bars[-1] < "█"
        assert left.endswith(" B")
        assert attempts == "16"
        assert max(int(per_s) for _, _, _, per_s, _ in states) <= 1
        rests = {re.sub(r"  no gain for [\d.]+ s", "", rest).strip() for *_, rest in states}
        assert any(" of " in rest for rest in rests), rests
        (world.project / "gate").unlink()
        screen.type(b"\x03")
        screen.until(b"interrupted: ")
    finally:
        screen.close()


@pytest.fixture
def shrunk(world):
    """Search, and return the answer as data."""

    def search(*words, code=0, timeout=300):
        done = world.rl("shrink", "--json", *words, timeout=timeout)
        assert done.returncode == code, done.stderr + done.stdout
        return json.loads(done.stdout)

    return search


COMMAND = ("--", PYTHON, "load.py", "data.txt")


@takes_turns
def test_two_inputs_shrink_together_also_where_one_is_the_program(world, shrunk):
    world.write("config.yaml", CONFIG)
    world.write("train.py", TRAIN)
    world.write("check.py", CHECK)
    world.commit()
    found = shrunk("config.yaml", "train.py", "--", PYTHON, "train.py")
    names = {one["name"]: one for one in found["parts"]}
    assert sorted(names) == ["config.yaml", "train.py"]
    assert all(one["bytes"] < one["bytes_before"] for one in names.values())
    config = (world.project / "config.small.yaml").read_text()
    program = (world.project / "train.small.py").read_text()
    assert "rate" in config
    assert "layers" not in config
    assert "config.yaml" in program
    assert "unused" not in program
    assert (world.project / "train.py").read_text() == TRAIN
    assert (world.project / "config.yaml").read_text() == CONFIG
    world.write("train.py", program)
    world.write("config.yaml", config)
    assert "ValueError: too quick" in world.shell(f"{PYTHON} train.py").stderr


@pytest.mark.parametrize("how", [(), ("--fresh",)], ids=["forked", "fresh"])
def test_an_attempt_that_hangs_is_ended_after_what_the_first_run_took(world, shrunk, how):
    world.write("load.py", HANGS)
    world.write("data.txt", BAD)
    found = shrunk("data.txt", "-j", "1", "--budget", "8", *how, *COMMAND)
    assert found["attempts"] == 8
    assert (world.project / "hung").exists()
    assert left_running(world) == []


@pytest.mark.parametrize("how", [(), ("--fresh",)], ids=["forked", "fresh"])
def test_an_attempt_that_eats_memory_has_what_the_first_run_took_and_no_more(world, shrunk, how):
    world.write("load.py", EATS)
    world.write("data.txt", "line 0\n" + BAD[-200:] + "bad\n")
    shrunk("data.txt", "-j", "1", *how, *COMMAND)
    small = (world.project / "data.small.txt").read_text()
    assert "line 0" in small
    assert len(small) < 20


def test_two_jobs_are_two_attempts_at_once(world, shrunk):
    world.write("load.py", MEETS)
    world.write("data.txt", BAD)
    shrunk("data.txt", "-j", "2", "--budget", "6", *COMMAND)
    assert (world.project / "met").exists()


def test_a_command_that_is_no_python_has_a_process_for_each_attempt(world, shrunk):
    world.write("data.txt", BAD)
    found = shrunk("data.txt", "--exit-code", "0", "--", "grep", "-q", "is bad", "data.txt")
    assert found["way"].startswith("each attempt is a process of its own (")
    assert found["fresh"] >= found["attempts"]
    assert (world.project / "data.small.txt").read_text().strip() == "is bad"


def test_a_shell_script_is_run_as_it_is(world, shrunk):
    world.write("check.sh", "if grep -q bad $1; then echo 'found: bad' >&2; exit 3; fi\n")
    world.write("data.txt", BAD)
    found = shrunk("data.txt", "--", "sh", "check.sh", "data.txt")
    assert found["way"].startswith("each attempt is a process of its own (")
    assert (world.project / "data.small.txt").read_text().strip() == "bad"


def test_what_is_kept_is_told_in_percent(world):
    world.write("load.py", GATE)
    world.write("data.txt", (BAD * 2)[:1000] + "x" * 497 + "bad")
    done = world.rl("shrink", "data.txt", *COMMAND)
    assert done.stdout.splitlines()[0] == "3 B of 1.5 KiB are enough (0.2%)"


# --- stopping


@takes_turns
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_a_stop_the_smallest_so_far_is_there_and_fails_in_the_same_way(world, number):
    """It waits at the gate, so that the stop comes after a gain and before the end."""
    world.write("load.py", GATE)
    world.write("data.txt", BAD)
    os.mkfifo(world.project / "gate")
    process = world.start(["rl", "shrink", "data.txt", "-j", "1", *COMMAND])
    small = world.project / "data.small.txt"
    wait_until(small.exists, patience_s=300)
    (world.project / "gate").unlink()
    process.send_signal(number)
    said = process.communicate(timeout=300)[0].decode()
    is_killed = number == signal.SIGKILL
    assert process.returncode == (-signal.SIGKILL if is_killed else 130)
    assert ("interrupted: " in said) != is_killed
    assert 0 < small.stat().st_size < len(BAD)
    done = world.shell(f"{PYTHON} load.py data.small.txt")
    assert "ValueError: a bad line" in done.stderr
    wait_until(lambda: left_running(world) == [])
    rest = world.rl("shrink", "--resume")
    assert rest.returncode == 0, rest.stderr
    assert small.read_text().strip() == "bad"


def test_who_is_told_to_end_in_the_first_run_begins_no_second_one(world):
    world.write("load.py", "import time\nopen('began', 'a').write('x')\ntime.sleep(600)\n")
    world.write("data.txt", BAD)
    process = world.start(["rl", "shrink", "data.txt", *COMMAND])
    began = world.project / "began"
    wait_until(lambda: began.exists() and began.read_text())
    process.terminate()
    said = process.communicate(timeout=300)[1].decode()
    assert (process.returncode, began.read_text()) == (130, "x"), said
    assert "interrupted before anything was known" in said
    wait_until(lambda: left_running(world) == [])


def test_who_is_interrupted_in_the_last_run_is_told_so_and_goes_on_later(world):
    """The small file is run as a trial at the end, by its own name: there it waits."""
    world.write("load.py", """\
import os, sys, time
if "small" in os.path.basename(sys.argv[1]) and not os.path.exists("go"):
    open("late", "w").close()
    time.sleep(600)
if "bad" in open(sys.argv[1]).read():
    raise ValueError("a bad line")
""")  # fmt: skip
    world.write("data.txt", BAD)
    process = world.start(["rl", "shrink", "data.txt", *COMMAND])
    wait_until((world.project / "late").exists, patience_s=300)
    process.terminate()
    out, err = (text.decode() for text in process.communicate(timeout=300))
    assert process.returncode == 130, out + err
    assert "interrupted: " in out
    assert (world.project / "data.small.txt").read_text().strip() == "bad"
    wait_until(lambda: left_running(world) == [])
    (world.project / "go").touch()
    assert world.rl("shrink", "--resume").returncode == 0


def test_a_program_that_ends_its_own_group_has_failed_and_was_not_interrupted(world):
    world.write("load.sh", "if grep -q bad $1; then kill -TERM 0; sleep 9; fi\n")
    world.write("data.txt", BAD)
    process = world.start(["rl", "shrink", "data.txt", "--", "sh", "load.sh", "data.txt"])
    said = process.communicate(timeout=300)[1].decode()
    assert process.returncode == 0, said
    assert (world.project / "data.small.txt").read_text().strip() == "bad"


def test_a_run_that_takes_longer_than_the_budget_is_one_line(world):
    world.write("load.py", "import time\ntime.sleep(600)\n")
    world.write("data.txt", BAD)
    done = world.rl("shrink", "data.txt", "--budget", "1s", *COMMAND)
    assert done.returncode == 2
    assert "one run takes longer than the budget of 1 s" in done.stderr
    wait_until(lambda: left_running(world) == [])


def left_running(world):
    """Return the processes of attempts that are still there."""
    word, found = str(world.project).encode(), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                env = file.read()
        except OSError:
            continue
        if word in env and b"RELAUNCH_TRIAL=" in env and int(name) != os.getpid():
            found.append(int(name))
    return found
