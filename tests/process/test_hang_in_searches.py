"""`--hang` in searches: a run that hangs is ended when that is certain, and known by its stacks."""

from __future__ import annotations

import json
import sys

import pytest
from tests.bisecting import PYTHON, add_commits, bisect, user_state

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="--hang needs Linux")

APP = """\
import os, sys, threading

def stuck():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()

n = int(sys.argv[1]) if len(sys.argv) > 1 else 0
"""
HANG = "hung (certain): its only thread waits for a lock"


def program(world, last):
    """Write a program of which the last line says whether it hangs."""
    world.write("app.py", f"{APP}{last}\n")
    return [PYTHON, "app.py"]


def said(world, *words, code):
    done = world.rl(*words)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_repeat_counts_what_hangs_and_says_where(world):
    command = program(
        world,
        "k = len(os.listdir('runs')); open(f'runs/{k}', 'w').close()\nif k % 2: stuck()",
    )
    (world.project / "runs").mkdir()
    words = ("repeat", "4", "--hang", "60", "--budget", "3")
    first = said(world, *words, "--json", "--", *command, code=1)
    assert first["left"] == 1
    rest = world.rl("repeat", "--resume")  # which still knows what a hang is
    assert rest.stdout.startswith("2 of 4 fail"), rest.stdout + rest.stderr
    assert HANG in rest.stdout
    assert "app.py:6 stuck" in rest.stdout


def test_bisect_finds_the_commit_that_hangs_and_skips_another_failure(world):
    def text(number):
        if number == 3:
            return f"{APP}raise OSError('another one')\n"
        return f"{APP}stuck() if {number} >= 5 else print({number})\n"

    ids = add_commits(world, text, 8)
    before = user_state(world)
    said = bisect(world, ids[0], ids[-1], "--hang", "60", command=[PYTHON, "app.py"])
    assert f"{ids[5][:10]} is the first commit where it fails" in said
    assert HANG in said
    assert f"rl bisect --good {ids[4][:10]} --bad {ids[5][:10]} --hang 60 -- " in said
    assert "git bisect" not in said  # which would hang, too
    assert user_state(world) == before


def test_bisect_skips_another_hang(world):
    def text(number):
        if 2 <= number <= 5:
            return f"{APP.replace('stuck', 'elsewhere')}elsewhere() if {number} else print()\n"
        return f"{APP}stuck() if {number} >= 7 else print({number})\n"

    ids = add_commits(world, text, 8)
    words = ("bisect", "--good", ids[0], "--bad", ids[-1], "--hang", "60", "--json")
    answer = said(world, *words, "--", PYTHON, "app.py", code=0)
    assert answer["commit"] == ids[7]
    (other,) = answer["others"]
    assert HANG in other
    assert "app.py:6 elsewhere" in other


def test_grow_finds_from_which_size_on_it_hangs(world):
    command = program(world, "stuck() if n > 5 else print(n)")
    words = ("grow", "n=1..8", "--hang", "60", "--json")
    answer = said(world, *words, "--", *command, "{n}", code=0)
    assert (answer["dimensions"][0]["before"], answer["dimensions"][0]["after"]) == (5, 6)
    assert HANG in answer["dimensions"][0]["failure"]


def test_shrink_keeps_what_it_hangs_for(world):
    command = program(world, "stuck() if 'x' in open('in.txt').read() else print('fine')")
    world.write("in.txt", "one\ntwo\nxyz\nfour\n")
    words = ("shrink", "in.txt", "--hang", "60", "-j", "1", "--json")
    answer = said(world, *words, "--", *command, code=0)
    assert (world.project / "in.small.txt").read_text().strip() == "x"
    assert HANG in answer["failure"]


def test_sweep_tells_which_setting_hangs(world):
    command = program(world, "stuck() if os.environ['FLAG'] == 'b' else print('fine')")
    words = ("sweep", "--env", "FLAG=a,b", "--hang", "60")
    done = world.rl(*words, "--", *command)
    assert done.returncode == 1, done.stderr
    assert "hung (certain)" in done.stdout
    assert "FLAG=b" in done.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("repeat", "3", "--hang", "0.5"), "--hang 0.5: at least one second"),
        (("bisect", "--good", "HEAD", "--hang", "soon"), "--hang takes"),
        (("grow", "n=1..8", "--hang", "9", "--slurm"), "--hang is about this machine"),
        (("sweep", "--env", "A=1,2", "--hang", "9", "--slurm"), "--hang is about this machine"),
    ],
)
def test_what_cannot_be_is_one_line(world, words, line):
    done = world.rl(*words, "--", "sleep", "{n}")
    assert done.returncode == 2
    assert line in done.stderr
    assert done.stderr.count("\n") <= 2
