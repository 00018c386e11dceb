"""A search that is killed again and again: what lies on the disk fails, and it ends the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from itertools import cycle

from tests.depth import rounds
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
KILLS = rounds(6, 60)


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


def gains(world):
    """Count the gains that the last search has told of, in all its sittings."""
    searches = [one for one in (world.journal / "searches").iterdir() if one.name.isdecimal()]
    told = max(searches, key=lambda one: int(one.name)) / "probes.jsonl"
    return told.read_bytes().count(b"\n") if told.exists() else 0


def test_kills_lose_nothing_and_change_nothing(world):
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
    ways = cycle([("-j", "1"), ("-j", "2"), ("-j", "2", "--fresh")])
    way: tuple[str, ...] = ()
    killed = told = kept = 0
    for kill in range(KILLS):
        count.write_text("")
        if not way:
            small.unlink(missing_ok=True)
        words = ("--resume",) if way else ("data.json", *(way := next(ways)), *command)
        after = shared.randrange(runs * 2 // 3)
        process = world.start(["rl", "shrink", *words])
        wait_until(lambda p=process, n=after: p.poll() is not None or len(count.read_text()) > n)
        process.send_signal(signal.SIGKILL if kill % 3 else signal.SIGINT)
        process.wait(300)
        process.stdout.close()
        process.stderr.close()
        wait_until(lambda: not left_running(world))
        assert original.read_text() == data
        assert not small.exists() or fails(world, "data.small.json")
        if gains(world):
            told, kept = told + 1, kept + small.exists()
            assert small.exists() or "--fresh" not in way
        killed += process.returncode != 0
        if process.returncode == 0 or (not gains(world) and len(count.read_text()) < 3):
            way = ()  # it was quicker, or had hardly begun: another one begins
    assert killed >= KILLS * 2 // 3
    assert kept >= told // 2  # what forks show is confirmed first, which may just not have ended
    last = world.rl("shrink", "--resume")
    assert last.returncode == 0, last.stderr
    assert small.read_bytes() == (world.project / "whole.json").read_bytes()
    assert not list((world.journal / "searches").glob("*/work"))
    left = world.git("status", "--porcelain").split()
    assert sorted(left[1::2]) == ["count", "data.small.json", "whole.json"]
