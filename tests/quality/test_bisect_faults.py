"""A search that is killed again and again: nothing of the user moves, nothing is run twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess

import pytest
from tests.bisecting import (
    PYTHON,
    REPRO,
    Program,
    add_commits,
    outside,
    processes_with,
    steady,
    user_state,
)
from tests.conftest import World
from tests.depth import rounds
from tests.supervising import wait_until

SHARDS = 5
KILLS = rounds(10, 250) // SHARDS
LATEST_S = 1.2
"""About as long as a search takes that nobody stops."""


@pytest.mark.parametrize("shard", range(SHARDS))
def test_killed_at_any_moment_it_goes_on_and_leaves_nothing(world: World, shard: int) -> None:
    rng = random.Random(shard)
    script = outside(world, "import time\ntime.sleep(0.05)\n" + REPRO)
    kills = searches = 0
    while kills < KILLS:
        searches += 1
        culprit = rng.randint(1, 30)
        world.git("reset", "-q", "--hard", world.git("rev-list", "--max-parents=0", "HEAD").strip())
        ids = add_commits(world, steady(culprit), 30)
        world.write("README.md", f"edited {searches}\n")
        world.git("stash", "-q")
        world.write("README.md", f"edited again {searches}\n")
        jobs = ["-j", "2"] if shard % 2 else []
        words = ["--good", ids[0], "--bad", ids[-1], *jobs, "--", PYTHON, script]
        before = user_state(world)
        while True:
            moment, how = rng.uniform(0, LATEST_S), rng.choice([signal.SIGKILL, signal.SIGINT])
            was_stopped, out = run_for(world, ["rl", "bisect", "--json", *words], moment, how)
            assert user_state(world) == before
            wait_until(lambda: not processes_with(script))
            if not was_stopped:
                break
            kills += 1
            if newest(world) == searches:
                words = ["--resume"]
        assert json.loads(out)["commit"] == ids[culprit]
        assert os.listdir(world.journal / "checkouts") == []
        often = how_often(world, searches)
        assert {one for one in often if often[one] > 1} <= {ids[culprit - 1], ids[culprit]}


def run_for(world: World, words: list[str], seconds: float, how: int) -> tuple[bool, bytes]:
    """Run a command and stop it at a moment; says whether it was still running then."""
    process = world.start(words)
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(how)
        out, err = process.communicate(timeout=300)
    was_stopped = process.returncode in (-signal.SIGKILL, -signal.SIGINT, 130)
    # Exit 1: Python was still about to begin, and had not come to us.
    was_stopped |= process.returncode == 1 and b"KeyboardInterrupt" in err
    assert was_stopped or process.returncode == 0, err
    return was_stopped, out


def newest(world: World) -> int:
    numbers = (world.journal / "searches").glob("[0-9]*")
    return max((int(one.name) for one in numbers), default=0)


def how_often(world: World, search: int) -> dict[str, int]:
    """Count the probes of each commit that came to their end."""
    text = (world.journal / f"searches/{search}/probes.jsonl").read_text()
    found: dict[str, int] = {}
    for line in text.splitlines():
        commit = json.loads(line)["commit"]
        found[commit] = found.get(commit, 0) + 1
    return found


@pytest.mark.parametrize("shard", range(2))
def test_bytecode_of_another_revision_is_never_run(world: World, shard: int) -> None:
    """Versions of one size, made in one second: what Python takes for unchanged."""
    script = outside(world, REPRO)
    for culprit in range(1 + shard, 21, rounds(8, 2)):
        world.git("reset", "-q", "--hard", world.git("rev-list", "--max-parents=0", "HEAD").strip())
        ids = add_commits(world, versions(culprit), 20)
        done = world.rl("bisect", "--good", ids[0], "--json", "--no-prior", "--", PYTHON, script)
        assert json.loads(done.stdout)["commit"] == ids[culprit], done.stderr


def versions(culprit: int) -> Program:
    def text(number: int) -> str:
        works = int(number < culprit)
        return f"def work():\n    assert {works}, 'broken'\n\n\nversion = {100 + number}\n"

    return text
