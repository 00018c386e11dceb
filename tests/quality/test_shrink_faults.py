"""A search that is killed again and again: what lies on the disk fails, and it ends the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys

from tests.supervising import wait_until

PYTHON = sys.executable
LOAD = """\
import json, os, sys

def load(path):
    rows = json.load(open(path))
    with open("count", "a") as file:
        file.write("x")
    for row in rows:
        if row["score"] == "high" and row["tags"][1] > 3:
            raise ValueError("a score that is no number")

load(sys.argv[1])
"""
ROWS = [
    {"id": number, "name": f"row {number}", "tags": [1, number % 7, 3], "score": number * 1.5}
    for number in range(60)
]
ROWS[33]["score"] = "high"
KILLS = 30


def left_running(world):
    """Return the processes that belong to a run of ours in this world."""
    home, found = str(world.root).encode(), []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                env = file.read()
        except OSError:
            continue
        if home in env and int(name) != os.getpid():
            found.append(int(name))
    return found


def fails(world, name):
    done = subprocess.run(
        [PYTHON, "load.py", name], cwd=world.project, env=world.env, capture_output=True, text=True
    )
    return "ValueError: a score that is no number" in done.stderr


def test_thirty_kills_lose_nothing_and_change_nothing(world):
    data = json.dumps(ROWS, indent=1)
    world.write("load.py", LOAD)
    original = world.write("data.json", data)
    world.commit()
    command = ("--", PYTHON, "load.py", "data.json")
    whole = world.rl("shrink", "data.json", "-o", "whole.json", "-j", "1", *command)
    assert whole.returncode == 0, whole.stderr
    runs = len((world.project / "count").read_text())
    shared = random.Random(5)
    count, small = world.project / "count", world.project / "data.small.json"
    begun = 1
    for kill in range(KILLS):
        count.write_text("")
        searches = len(list((world.journal / "searches").iterdir()))
        is_begun = searches > begun
        words = ("--resume",) if is_begun else ("data.json", "-j", "1", *command)
        after = shared.randrange(runs * 2 // 3)
        process = world.start(["rl", "shrink", *words])
        wait_until(lambda p=process, n=after: p.poll() is not None or len(count.read_text()) > n)
        process.send_signal(signal.SIGKILL if kill % 3 else signal.SIGINT)
        process.wait(20)
        process.stdout.close()
        process.stderr.close()
        if process.returncode == 0:  # it was quicker: another one begins
            begun = len(list((world.journal / "searches").iterdir()))
        wait_until(lambda: not left_running(world))
        assert original.read_text() == data
        assert not small.exists() or fails(world, "data.small.json")
    last = world.rl("shrink", "--resume")
    assert last.returncode == 0, last.stderr
    assert small.read_bytes() == (world.project / "whole.json").read_bytes()
    assert not list((world.journal / "searches").glob("*/work"))
    left = world.git("status", "--porcelain").split()
    assert sorted(left[1::2]) == ["count", "data.small.json", "whole.json"]
