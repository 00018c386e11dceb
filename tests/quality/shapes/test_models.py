"""Comments on whole models: names that hold where every size is another, and nothing else changes.

The first run is one in which chance has it all: batch and heads, length and width are the same.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.depth import takes_turns
from tests.needs import python_with_torch

PROGRAMS = Path(__file__).parent / "programs"
ALIKE = "B=4 T=16 D=64 h=4 kv=4 V=64 L=2 M=16 F=128 I=16 p=4 K=16 w=16 S=16"
BATCH = "B=3 T=16 D=64 h=4 kv=4 V=64 L=2 M=16 F=128 I=16 p=4 K=16 w=16 S=16"
OTHER = "B=5 T=14 D=84 h=6 kv=2 V=131 L=3 M=23 F=150 I=36 p=6 K=17 w=22 S=26"


@pytest.fixture
def models(world):
    for name in ("models", "train"):
        world.write(f"{name}.py", (PROGRAMS / name).read_bytes())
    world.commit()
    return world


def look(world, *words, timeout=300):
    done = world.rl("shapes", "--json", *words, timeout=timeout)
    start = done.stdout.index("{\n")
    files = json.loads(done.stdout[start:])["files"]
    return done, done.stdout[:start], {one["line"]: one for one in files[0]["lines"]}


@takes_turns
def test_names_hold_in_a_run_in_which_every_size_is_another(models):
    python = python_with_torch()
    plain = models.shell(f"{python} train.py {ALIKE}")
    assert plain.returncode == 0, plain.stderr
    words = ("--line-length", "140", "models.py")
    also = ("--also", f"{python} train.py {BATCH}")
    done, said, written = look(models, *words, *also, "--", python, "train.py", *ALIKE.split())
    assert done.returncode == 0, done.stderr
    assert said.startswith(plain.stdout), "the numbers of the program are the same"
    ours = {n: row for n, row in written.items() if row["state"] in ("new", "updated")}
    assert len(ours) > 60
    done, _, checked = look(models, "--check", *words, "--", python, "train.py", *OTHER.split())
    # A number that was the same in both runs is no name; it need not be the same elsewhere.
    broken = [row for row in checked.values() if not row["holds"] and " is " in row["why"]]
    told = [row for row in broken if ours[row["line"]]["doubts"] or ours[row["line"]]["steady"]]
    wrong = [(row["line"], row["before"], row["saw"], row["why"]) for row in broken]
    assert len(broken) <= 0.05 * len(ours), wrong
    assert told == broken, wrong
